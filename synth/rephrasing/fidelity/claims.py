"""Claims added or lost, sentence by sentence, by the judge: each verdict cites its words.

The judge is shown one text whole and some sentences of the other. A sentence counts as said only
where the words that it quotes stand in the text; a quote that is not there is shown to the judge
once, and if it comes again the sentence counts as not said.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from records.errors import ItemError
from synth.llm.client import LLM
from synth.prompts.templates import render, version_of
from synth.rephrasing.facts.text import ReadText, squeeze

PROMPT = "judge_claims"

AT_ONCE = 20
"""Sentences a request: their verdicts fit any limit of an answer."""

MIN_QUOTED = 4
"""Letters and digits of a quote that shows anything."""

MAX_QUOTE = 300
"""Characters of a quote that are looked at and kept."""

Answered = Literal["said", "absent", "contradicted"]


class ClaimFinding(NamedTuple):
    """A sentence that the other text does not say."""

    sentence: str
    answered: Answered
    """As the judge put it; `said` where its quote is not in the text."""
    quote: str


class Claims(NamedTuple):
    sentences: int
    """Of both texts, each judged against the other text."""
    added: tuple[ClaimFinding, ...]
    """Sentences of the rewrite that the source does not say."""
    lost: tuple[ClaimFinding, ...]
    """Sentences of the source that the rewrite does not say."""

    @property
    def unproved(self) -> int:
        """Sentences that the judge found said, with a quote that is not there."""
        return sum(finding.answered == "said" for finding in (*self.added, *self.lost))

    def columns(self) -> dict[str, Any]:
        return {
            "sentences": self.sentences,
            "added": [_row(finding) for finding in self.added[:AT_ONCE]],
            "lost": [_row(finding) for finding in self.lost[:AT_ONCE]],
            "num_added": len(self.added),
            "num_lost": len(self.lost),
            "unproved": self.unproved,
        }


def prompt_version() -> str:
    return version_of(PROMPT)


async def judged_claims(llm: LLM, source: str, rewrite: str, *, item: str, step: str) -> Claims:
    """By the role `judge`. ItemError where it leaves sentences out, and what `LLM` raises."""
    ours = [sentence.text for sentence in ReadText(source).sentences]
    theirs = [sentence.text for sentence in ReadText(rewrite).sentences]
    added = await _unsaid(llm, source, theirs, item=item, step=f"{step}.added")
    lost = await _unsaid(llm, rewrite, ours, item=item, step=f"{step}.lost")
    return Claims(len(ours) + len(theirs), tuple(added), tuple(lost))


async def _unsaid(
    llm: LLM, text: str, sentences: Sequence[str], *, item: str, step: str
) -> list[ClaimFinding]:
    """Of all the sentences those that the text does not say."""
    found: list[ClaimFinding] = []
    for start in range(0, len(sentences), AT_ONCE):
        part = sentences[start : start + AT_ONCE]
        found += await _asked(llm, text, part, item=item, step=f"{step}.{start}")
    return found


async def _asked(
    llm: LLM, text: str, sentences: Sequence[str], *, item: str, step: str
) -> list[ClaimFinding]:
    ids = [str(number) for number in range(1, len(sentences) + 1)]
    numbered = dict(zip(ids, sentences, strict=True))
    talk = render(PROMPT, text=text, sentences=numbered).messages
    said = squeeze(text)
    verdicts = _verdicts(await _ask(llm, talk, ids, item=item, step=step), ids)
    wanting = [i for i in ids if not _holds(verdicts[i], said)]
    if wanting:
        answer = json.dumps({"verdicts": [*verdicts.values()]}, ensure_ascii=False)
        talk += [
            {"role": "assistant", "content": answer},
            {"role": "user", "content": _NOT_THERE.format(ids=", ".join(wanting))},
        ]
        again = _verdicts(await _ask(llm, talk, ids, item=item, step=f"{step}.again"), ids)
        verdicts |= {i: again[i] for i in wanting}
    return [
        ClaimFinding(numbered[i], verdicts[i]["verdict"], verdicts[i]["quote"][:MAX_QUOTE])
        for i in ids
        if verdicts[i]["verdict"] != "said" or not _holds(verdicts[i], said)
    ]


_NOT_THERE = (
    "The text does not hold the words that you quote for these sentences: {ids}. Judge all of them"
    " again, and copy each quote word for word from the text; what it does not say is absent."
)


async def _ask(
    llm: LLM, talk: Sequence[dict[str, Any]], ids: Sequence[str], *, item: str, step: str
) -> dict[str, Any]:
    schema = claims_schema(ids)
    return await llm.structured("judge", talk, item=item, step=step, name="claims", schema=schema)


def _verdicts(answer: Mapping[str, Any], ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """By id, in order; the first on each sentence counts."""
    first: dict[str, dict[str, Any]] = {}
    for verdict in answer["verdicts"]:
        first.setdefault(verdict["id"], verdict)
    if missing := [i for i in ids if i not in first]:
        raise ItemError("judge_incomplete", f"no verdict on sentences {', '.join(missing)}")
    return {i: first[i] for i in ids}


def _holds(verdict: Mapping[str, Any], said: str) -> bool:
    """Whether the quote of what is said, or is contradicted, stands in the text."""
    if verdict["verdict"] == "absent":
        return True
    parts = [part for part in squeeze(verdict["quote"][:MAX_QUOTE]).split("...") if part]
    long_enough = sum(map(str.isalnum, "".join(parts))) >= MIN_QUOTED
    return long_enough and all(part.strip(".,;:") in said for part in parts)


def claims_schema(ids: Sequence[str]) -> dict[str, Any]:
    verdict = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "enum": list(ids)},
            "verdict": {"type": "string", "enum": ["said", "absent", "contradicted"]},
            "quote": {"type": "string"},
        },
        "required": ["id", "verdict", "quote"],
        "additionalProperties": False,
    }
    verdicts = {"type": "array", "items": verdict, "minItems": len(ids)}
    return {
        "type": "object",
        "properties": {"verdicts": verdicts},
        "required": ["verdicts"],
        "additionalProperties": False,
    }


def _row(finding: ClaimFinding) -> dict[str, str]:
    return {
        "sentence": finding.sentence[:MAX_QUOTE],
        "verdict": finding.answered,
        "quote": finding.quote,
    }
