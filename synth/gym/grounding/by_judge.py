"""The sentences that code leaves open, and whether the question is answered, by the role `judge`.

A finding counts by the words of the material that it quotes. Supported without words that stand
there is unsupported, and so is contradicted: nobody is punished for what is shown nowhere.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from synth.gym.core.asking import Asking
from synth.gym.grounding.by_code import SentenceFinding
from synth.gym.grounding.material import Material
from synth.llm.structured import object_schema
from synth.prompts.templates import render
from synth.rephrasing.facts.text import squeeze
from synth.rephrasing.fidelity.part_judge import stands_in

PROMPT = "judge_grounding"

JUDGE = "judge"

_QUOTED: tuple[SentenceFinding, ...] = ("supported", "contradicted")
_FINDINGS: tuple[SentenceFinding, ...] = (*_QUOTED, "unsupported", "abstains", "no_claim")
SHORTEST_QUOTE = 4
"""Letters and digits up to which a quote has to be a word of its own in the material."""


class JudgedSentences(NamedTuple):
    findings: Mapping[str, SentenceFinding]
    """By the id of each sentence that was asked about."""
    answered: bool
    unproved: int
    """Findings that quote what does not stand in the material."""


async def judged(
    asking: Asking, material: Material, answer: str, sentences: Mapping[str, str]
) -> JudgedSentences:
    """`sentences`: those that are open, by id. TransientError as `Asking.ask`."""
    shown = [{"id": name, "says": said} for name, said in sentences.items()]
    messages = render(
        PROMPT,
        material=material.shown,
        question=material.question,
        answer=answer,
        sentences=shown,
    ).messages
    given = await asking.ask(JUDGE, messages, schema_of(list(sentences)))
    findings: dict[str, SentenceFinding] = {}
    unproved = 0
    for name in sentences:
        entry = given["sentences"][name]
        finding: SentenceFinding = entry["finding"]
        if finding in _QUOTED and not _is_quoted(entry["quote"], material):
            finding, unproved = "unsupported", unproved + 1
        findings[name] = finding
    return JudgedSentences(findings, bool(given["answered"]["passed"]), unproved)


def schema_of(names: list[str]) -> dict[str, Any]:
    """Of an answer about the sentences with these ids."""
    text = {"type": "string"}
    entry = object_schema(
        {"evidence": text, "quote": text, "finding": {"type": "string", "enum": [*_FINDINGS]}}
    )
    answered = object_schema({"evidence": text, "passed": {"type": "boolean"}})
    return object_schema(
        {"sentences": object_schema(dict.fromkeys(names, entry)), "answered": answered}
    )


def _is_quoted(quote: str, material: Material) -> bool:
    own = squeeze(quote)
    if 0 < len(own) < SHORTEST_QUOTE:  # "no", "5": a short value is quoted as it stands
        return quote.strip().casefold() in material.words
    return stands_in(quote, material.squeezed)
