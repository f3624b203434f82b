"""The meaning of a rewritten part, by the judge: differences with their words, the verdict last.

A difference counts only where words that it quotes stand in their text. A verdict of unfaithful
without one is shown to the judge once, and if nothing is quoted then either, it counts as faithful.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from records.digest import digest
from records.tables.schemas import Row
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
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
    """What a verdict belongs to: the judge with its settings, and its prompt."""
    return digest(VERDICTS, judge.identity(), prompt_version())


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


async def judged_part(
    llm: LLM, source: str, rewrite: str, *, before: str = "", form: str, item: str, step: str
) -> PartVerdict:
    """By the role `judge`. `before`: what the document says just before the part; `form`: the first
    line of the style. Raises what `LLM` raises."""
    talk = render(PROMPT, source=source, rewrite=rewrite, before=before, form=form).messages
    texts = squeeze(source), squeeze(rewrite)
    answer = await _ask(llm, talk, item=item, step=step)
    verdict = _read(answer, *texts)
    if answer["verdict"] == "unfaithful" and not verdict.differences:
        talk += [
            {"role": "assistant", "content": json.dumps(answer, ensure_ascii=False)},
            {"role": "user", "content": _NOT_THERE},
        ]
        verdict = _read(await _ask(llm, talk, item=item, step=f"{step}.again"), *texts)
    return verdict


_NOT_THERE = (
    "Neither text holds the words that you quote as different. Judge again, and copy the words on"
    " both sides exactly; without any, the rewrite is faithful."
)


async def _ask(llm: LLM, talk: Sequence[dict[str, Any]], *, item: str, step: str) -> dict[str, Any]:
    return await llm.structured("judge", talk, item=item, step=step, name="claims", schema=SCHEMA)


def _read(answer: dict[str, Any], source: str, rewrite: str) -> PartVerdict:
    given = [
        Difference(*(one[field][:MAX_QUOTE] for field in Difference._fields))
        for one in answer["differences"]
    ]
    proved = [one for one in given if _stands(one.part, source) or _stands(one.rewrite, rewrite)]
    is_faithful = answer["verdict"] == "faithful" or not proved
    return PartVerdict(
        "faithful" if is_faithful else "unfaithful",
        () if is_faithful else tuple(proved),
        len(given) - len(proved),
    )


def _stands(quote: str, text: str) -> bool:
    """`text`: squeezed."""
    parts = [part for part in squeeze(quote).split("...") if part]
    long_enough = len("".join(parts)) >= MIN_QUOTED
    return long_enough and all(part.strip(".,;:") in text for part in parts)


_TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "differences": {
            "type": "array",
            "maxItems": MOST_DIFFERENCES,
            "items": {
                "type": "object",
                "properties": {"part": _TEXT, "rewrite": _TEXT, "what": _TEXT},
                "required": ["part", "rewrite", "what"],
                "additionalProperties": False,
            },
        },
        "verdict": {"type": "string", "enum": ["faithful", "unfaithful"]},
    },
    "required": ["differences", "verdict"],
    "additionalProperties": False,
}
