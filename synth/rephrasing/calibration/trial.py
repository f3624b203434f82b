"""One trial of the judge of rewrites: a changed part or a control, and what the judge says of it.

A changed part is tried only where a second reading, which is not told what was changed, finds that
the change is one. What came to nothing is tried on the next part of the item.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from records.errors import ItemError
from records.store.dataset import ItemStatus
from records.tables.schemas import Row
from synth.engine.stages import KEPT, Item, ItemResult
from synth.judging.perturbation.edited_words import edited_words
from synth.llm.client import LLM
from synth.rephrasing.calibration.kinds import PARAPHRASE, UNTOUCHED
from synth.rephrasing.calibration.planning import TRIED
from synth.rephrasing.calibration.writing import SentenceEdit, read_edit, write_edit
from synth.rephrasing.exact.faults import exact_faults
from synth.rephrasing.facts.text import words_of
from synth.rephrasing.fidelity.part_judge import PartToJudge, PartVerdict, judged_parts
from synth.rephrasing.writing.instructions import form_of
from synth.rephrasing.writing.part_checks import text_before

TABLE = "rephrasing_calibration"

MIN_SHARED = 0.5
"""Share of the shorter quotation's words that two quotations of the same words have in common."""

TrialOutcome = Literal["tried", "no_place", "not_written", "not_confirmed"]


class TrialPart(NamedTuple):
    """A part of a kept rewrite, with what the judge is shown of it."""

    rephrasing_id: str
    part: int
    source: str
    rewrite: str
    before: str
    """What the document says just before the part."""
    form: str
    """The first line of the style."""
    document: str
    """The source as a whole."""
    language: str | None
    split: str

    @classmethod
    def of(cls, row: Row, number: int) -> "TrialPart":
        """From a row of `rephrasings`."""
        chunk, document = row["chunks"][number], row["source_text"]
        start, end = chunk["source"]
        return cls(
            row["rephrasing_id"],
            number,
            document[start:end],
            row["text"][slice(*chunk["text"])],
            text_before(document, start),
            form_of(row["kind"], row["style"]),
            document,
            row["source_language"],
            row["split"],
        )


class EditAttempt(NamedTuple):
    part: TrialPart
    outcome: TrialOutcome
    detail: str
    """What was changed, or why nothing came of it."""
    edit: SentenceEdit | None = None
    quote: str | None = None
    """The words of the source by which the second reading decides."""

    @property
    def text(self) -> str:
        """What the judge is asked about."""
        rewrite = self.part.rewrite
        return self.edit.made_in(rewrite) if self.edit else rewrite


async def try_judge(
    item: Item, llm: LLM, parts: Sequence[TrialPart], *, place: Row, judge: str
) -> ItemResult:
    """The row of `rephrasing_calibration` for one item of `plan_trial`. `place`: the ids of trial
    and writer; `judge`: the model that plays the judge. Raises what `LLM` raises."""
    sort = item.data["sort"]
    attempts: list[EditAttempt] = []
    for number, part in enumerate(parts):
        attempts.append(await attempt(llm, part, sort, item=item.item_id, number=number))
        if attempts[-1].outcome == TRIED:
            break
    last = attempts[-1]
    row = _row(item, place, sort, attempts)
    if last.outcome != TRIED:
        return ItemResult({TABLE: [row]}, ItemStatus("dropped", last.outcome))
    verdict = await _judged(llm, last, item=item.item_id)
    passed = verdict.verdict == "faithful"
    row |= {
        "judge_passed": passed,
        "named": None if row["expected"] else is_named(verdict, last),
        "found_by_code": await asyncio.to_thread(_is_found_by_code, last),
        "differences": [one._asdict() for one in verdict.differences],
        "judge": judge,
    }
    return ItemResult({TABLE: [row]}, KEPT)


async def attempt(
    llm: LLM, part: TrialPart, sort: str, *, item: str, number: int = 0
) -> EditAttempt:
    """One kind of change, or a control, on one part: written and confirmed. `number`: of the
    attempt within the item."""
    if sort == UNTOUCHED:
        return EditAttempt(part, "tried", "as it stands")
    try:
        edit = await write_edit(
            llm, part.source, part.rewrite, sort, item=item, step=f"write-{number}"
        )
    except ItemError as error:
        return EditAttempt(part, "not_written", str(error))
    if edit is None:
        return EditAttempt(part, "no_place", "the writer finds no place for it")
    try:
        read = await read_edit(llm, part.source, edit, item=item, step=f"read-{number}")
    except ItemError as error:
        return EditAttempt(part, "not_confirmed", str(error), edit)
    if not read.confirms(sort):
        detail = f"{edit.why}; second reading: {read.agrees} agrees, {read.why}"
        return EditAttempt(part, "not_confirmed", detail, edit, read.quote)
    return EditAttempt(part, "tried", edit.why, edit, read.quote)


async def _judged(llm: LLM, tried: EditAttempt, *, item: str) -> PartVerdict:
    """The judge, asked as it is asked about any part."""
    part = tried.part
    [verdict] = await judged_parts(
        llm,
        [PartToJudge(1, part.source, tried.text)],
        before=part.before,
        form=part.form,
        item=item,
        step="judge",
    )
    return verdict


def is_named(verdict: PartVerdict, tried: EditAttempt) -> bool:
    """Whether a difference touches what was changed: it quotes changed words of the rewrite, or the
    words of the source by which the change was confirmed, which is all there is to quote where
    something was left out."""
    words = edited_words(tried.part.rewrite, tried.text)
    told = set(words_of(tried.quote or ""))
    for one in verdict.differences:
        said = set(words_of(one.part))
        shared = len(said & told) / min(len(said), len(told)) if said and told else 0.0
        if shared >= MIN_SHARED or words.are_named_in(one.rewrite):
            return True
    return False


def _is_found_by_code(tried: EditAttempt) -> bool:
    part = tried.part
    return bool(exact_faults(part.source, tried.text, document=part.document))


def _row(item: Item, place: Row, sort: str, attempts: Sequence[EditAttempt]) -> Row:
    """Of an item that the judge has not been asked about yet."""
    last = attempts[-1]
    return place | {
        "rephrasing_id": last.part.rephrasing_id,
        "part": last.part.part,
        "perturbation": sort,
        "expected": sort in (PARAPHRASE, UNTOUCHED),
        "outcome": last.outcome,
        "judge_passed": None,
        "named": None,
        "found_by_code": None,
        "differences": None,
        "edit": {"old": last.edit.old, "new": last.edit.new} if last.edit else None,
        "quote": last.quote,
        "detail": last.detail,
        "attempts": [_told(one) for one in attempts],
        "candidates": item.data["parts"],
        "judge": None,
        "language": last.part.language,
        "split": last.part.split,
    }


def _told(one: EditAttempt) -> Mapping[str, Any]:
    part = one.part
    place = {"rephrasing_id": part.rephrasing_id, "part": part.part}
    return place | {"outcome": one.outcome, "detail": one.detail}
