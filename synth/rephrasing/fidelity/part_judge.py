"""The meaning of rewritten parts, by the judge: differences with their words, the verdict last.

Several parts are asked about at once. A difference counts only where words that it quotes stand in
their text. A verdict of unfaithful without one is shown to the judge once, and if nothing is quoted
then either, it counts as faithful.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from records.digest import digest
from records.tables.schemas import Row
from synth.judging.panel import judge_identity
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.llm.structured import InvalidOutputError
from synth.prompts.templates import render, version_of
from synth.rephrasing.facts.text import squeeze

PROMPT = "judge_part"

VERDICTS = "rephrasing_verdicts"
"""The table of verdicts."""

MIN_QUOTED = 4
"""Letters, digits and signs of a quote that shows anything, blanks left out."""

MAX_QUOTE = 400
"""Characters of a quote, and of what is said of it, that are looked at and kept."""

MOST_DIFFERENCES = 12

PartMeaning = Literal["faithful", "unfaithful"]


class Difference(NamedTuple):
    part: str
    """Words of the source, empty where it has none."""
    rewrite: str
    what: str


class PartVerdict(NamedTuple):
    verdict: PartMeaning
    differences: tuple[Difference, ...]
    """Those whose words stand where they are said to, of an unfaithful rewrite."""
    unproved: int
    """Differences that quote what stands nowhere."""

    def told(self) -> str:
        """What is wrong, for the rewriter."""
        return "; ".join(_told(one) for one in self.differences)


FAITHFUL = PartVerdict("faithful", (), 0)


def _told(one: Difference) -> str:
    sides = [f'the part says "{one.part}"'] if one.part else []
    sides += [f'the rewrite says "{one.rewrite}"'] if one.rewrite else []
    return f"{', '.join(sides)} ({one.what})"


def prompt_version() -> str:
    return version_of(PROMPT)


def judge_id_of(judge: RoleConfig) -> str:
    """What a verdict belongs to: the judge with its settings, whether it is the offline model, and
    its prompt."""
    return digest(VERDICTS, judge_identity(judge), prompt_version())


def verdict_row(judge_id: str, rewrite: Row, part: int, verdict: PartVerdict) -> Row:
    """A row of `rephrasing_verdicts` on a part of a row of `rephrasings`."""
    return {
        "judge_id": judge_id,
        "rephrasing_id": rewrite["rephrasing_id"],
        "part": part,
        "verdict": verdict.verdict,
        "differences": [one._asdict() for one in verdict.differences],
        "split": rewrite["split"],
    }


class PartToJudge(NamedTuple):
    number: int
    """By which the judge names it."""
    source: str
    rewrite: str


async def judged_parts(
    llm: LLM,
    parts: Sequence[PartToJudge],
    *,
    before: str = "",
    form: str,
    item: str,
    step: str,
) -> list[PartVerdict]:
    """By the role `judge`, in the order of the parts. `before`: what the document says just before
    the first of them; `form`: the first line of the style. Raises what `LLM` raises."""
    talk = render(
        PROMPT,
        pairs=[part._asdict() for part in parts],
        before=before,
        form=form,
        asked=_named([part.number for part in parts]),
    ).messages
    answer = await _ask(llm, talk, parts, item=item, step=step)
    verdicts = {part.number: _read(answer[part.number], part) for part in parts}
    unproved = [
        part
        for part in parts
        if answer[part.number]["verdict"] == "unfaithful" and not verdicts[part.number].differences
    ]
    if unproved:
        said = {"parts": [answer[part.number] for part in parts]}
        talk += [
            {"role": "assistant", "content": json.dumps(said, ensure_ascii=False)},
            {"role": "user", "content": _not_there([part.number for part in unproved])},
        ]
        again = await _ask(llm, talk, unproved, item=item, step=f"{step}.again")
        verdicts |= {part.number: _read(again[part.number], part) for part in unproved}
    return [verdicts[part.number] for part in parts]


def _not_there(numbers: Sequence[int]) -> str:
    return (
        f"Of {_named(numbers)} neither text holds the words that you quote as different. Judge"
        f" {_named(numbers)} again, and copy the words on both sides exactly; without any, the"
        " rewrite is faithful."
    )


def _named(numbers: Sequence[int]) -> str:
    return f"part{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


async def _ask(
    llm: LLM,
    talk: Sequence[dict[str, Any]],
    parts: Sequence[PartToJudge],
    *,
    item: str,
    step: str,
) -> dict[int, dict[str, Any]]:
    """What is answered of each part, by number. The number of a single one does not matter."""
    wanted = [part.number for part in parts]

    def check(answer: dict[str, Any]) -> None:
        given = sorted(one["number"] for one in answer["parts"])
        if len(given) != len(wanted) or (len(wanted) > 1 and given != sorted(wanted)):
            raise InvalidOutputError(
                f"`parts` must have one object for each of {_named(wanted)}, it has {given}"
            )

    answer = await llm.structured(
        "judge", talk, item=item, step=step, name="claims", schema=SCHEMA, check=check
    )
    if len(wanted) == 1:
        return {wanted[0]: answer["parts"][0] | {"number": wanted[0]}}
    return {one["number"]: one for one in answer["parts"]}


def _read(answer: dict[str, Any], part: PartToJudge) -> PartVerdict:
    source, rewrite = squeeze(part.source), squeeze(part.rewrite)
    given = [
        Difference(*(one[field][:MAX_QUOTE] for field in Difference._fields))
        for one in answer["differences"]
    ]
    proved = [
        one for one in given if stands_in(one.part, source) or stands_in(one.rewrite, rewrite)
    ]
    is_faithful = answer["verdict"] == "faithful" or not proved
    return PartVerdict(
        "faithful" if is_faithful else "unfaithful",
        () if is_faithful else tuple(proved),
        len(given) - len(proved),
    )


def stands_in(quote: str, text: str) -> bool:
    """Whether quoted words stand in a squeezed text, part for part where "..." leaves some out."""
    parts = [part for part in squeeze(quote).split("...") if part]
    long_enough = len("".join(parts)) >= MIN_QUOTED
    return long_enough and all(part.strip(".,;:") in text for part in parts)


_TEXT = {"type": "string"}
_DIFFERENCE: dict[str, Any] = {
    "type": "object",
    "properties": {"part": _TEXT, "rewrite": _TEXT, "what": _TEXT},
    "required": ["part", "rewrite", "what"],
    "additionalProperties": False,
}
_JUDGED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "differences": {"type": "array", "maxItems": MOST_DIFFERENCES, "items": _DIFFERENCE},
        "verdict": {"type": "string", "enum": ["faithful", "unfaithful"]},
    },
    "required": ["number", "differences", "verdict"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"parts": {"type": "array", "items": _JUDGED}},
    "required": ["parts"],
    "additionalProperties": False,
}
