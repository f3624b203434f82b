"""Rewritten parts against their sources: what is exact by code, the meaning by layers and a judge.

Exact faults come first, since they need nobody. Then the layers flag what may be meant otherwise.
Where there is a judge it looks at the parts that are chosen for it, or at all, in one request for
all that are checked together, and its word stands over the flags. A part that it gave back is
judged again, whatever the new answer looks like.
"""

import asyncio
from collections.abc import Sequence

from records.digest import digest
from synth.llm.client import LLM
from synth.rephrasing.exact.faults import exact_faults
from synth.rephrasing.fidelity.checks import TextKind, asks_judge, fidelity_of, flags_of
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.fidelity.part_judge import PartToJudge, PartVerdict, judged_parts
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.form import PartFault
from synth.rephrasing.writing.instructions import Instruction
from synth.rephrasing.writing.parts import PartCheck, WrittenPart

BEFORE = 600
"""Characters of the document before a part that the judge sees."""

FIXED = FidelityConfig()
"""Thresholds that decide which parts the judge sees while they are written. They are the same in
every run: what comes back for repair decides the text, and a run's own thresholds do not."""

UNFAITHFUL = "unfaithful"
"""The reason of a part that means something else, by the judge."""


class PartChecker:
    """A `CheckParts` for the parts of one rewrite."""

    def __init__(
        self,
        config: RephraseConfig,
        llm: LLM,
        item: str,
        document: str,
        kind: TextKind,
        style: Instruction,
        thresholds: FidelityConfig = FIXED,
    ) -> None:
        """`document`: the source as a whole; `thresholds`: what chooses the judge's parts."""
        self._config = config
        self._llm = llm
        self._item = item
        self._document = document
        self._kind: TextKind = kind
        self._form = style.form
        self._thresholds = thresholds
        self._given_back: set[int] = set()
        """Numbers of the parts whose rewrites the judge found unfaithful."""

    async def __call__(self, parts: Sequence[WrittenPart], /, *, step: str) -> list[PartCheck]:
        """One for each part, in their order."""
        found = await asyncio.to_thread(lambda: [self._by_code(part) for part in parts])
        asked = [
            part
            for part, (check, is_chosen) in zip(parts, found, strict=True)
            if self._is_due(part, check, is_chosen)
        ]
        checks = [check for check, _ in found]
        if not asked:
            return checks
        verdicts = await judged_parts(
            self._llm,
            [PartToJudge(part.number, part.source, part.rewrite) for part in asked],
            before=text_before(self._document, asked[0].start),
            form=self._form,
            item=self._item,
            step=f"judge-{step}",
        )
        judged: dict[int, PartCheck] = {}
        for part, verdict in zip(asked, verdicts, strict=True):
            judged[part.number] = _checked_by(verdict)
            if verdict.verdict == UNFAITHFUL:
                self._given_back.add(part.number)
        return [judged.get(p.number, check) for p, check in zip(parts, checks, strict=True)]

    def _is_due(self, part: WrittenPart, check: PartCheck, is_chosen: bool) -> bool:
        if check.fault is not None or not self._config.asks_judge:
            return False
        return is_chosen or self._config.judge == "all" or part.number in self._given_back

    def _by_code(self, part: WrittenPart) -> tuple[PartCheck, bool]:
        """What is exact and wrong, or the flags; and whether the judge is worth a request."""
        if faults := exact_faults(part.source, part.rewrite, document=self._document):
            words = "; ".join(fault.evidence for fault in faults)
            return PartCheck(PartFault(f"{faults[0].kind}_changed", words, is_of_fact=True)), False
        fidelity = fidelity_of(part.source, part.rewrite, kind=self._kind)
        maths = fidelity.maths
        if self._kind == "maths" and maths is not None and maths.answer_kept is False:
            words = f"the final answer {maths.answer} must stand at the end, as it is"
            return PartCheck(PartFault("answer_lost", words, is_of_fact=True)), False
        measured = fidelity.columns()
        is_chosen = asks_judge(measured, self._thresholds, key=lot_of(self._item, part.source))
        return PartCheck(flags=tuple(flags_of(measured, self._thresholds))), is_chosen


def lot_of(item: str, source: str) -> str:
    """The key by which a part of a rewrite is drawn for the judge, or not."""
    return digest(item, source)


def _checked_by(judged: PartVerdict) -> PartCheck:
    if judged.verdict != UNFAITHFUL:
        return PartCheck(verdict=judged.verdict)
    words = f"it does not say what the part says: {judged.told()}"
    return PartCheck(PartFault(UNFAITHFUL, words, is_of_fact=True), verdict=UNFAITHFUL)


def text_before(document: str, at: int) -> str:
    """What the judge is shown of a document before a place in it, from the beginning of a line."""
    before = document[max(0, at - BEFORE) : at].strip()
    return before.partition("\n")[2] or before if at > BEFORE else before
