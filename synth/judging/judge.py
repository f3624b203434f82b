"""The judge: a model's opinion on every criterion, from the rubric's words and the conversation.

It never sees checks, states or the code's verdicts. Its opinions count where code has none (`nl`);
on the others they are kept beside the code's verdicts, which puts the judge itself on trial.

Each opinion quotes the words of the transcript that decide it. A quote that the transcript does
not hold is shown to the judge once; if it comes again, the opinion is unsupported and passes
nothing.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from records.errors import ItemError
from synth.llm.client import LLM
from synth.prompts.templates import render, version_of
from synth.rubrics.criteria import Rubric

PROMPT = "judgement"

EVIDENCE_CHARS = 2_000
"""Kept of the judge's evidence on one criterion."""


QUOTE_CHARS = 1_000
"""Longest quote that is looked at and kept."""


MIN_QUOTED = 4
"""Letters and digits of a quote that shows anything: "Done" does, "e" does not."""


class Opinion(NamedTuple):
    passed: bool
    """False also where the judge passed it and nothing in the transcript supports that."""

    evidence: str
    quote: str
    """Words of the transcript, as the judge gave them; may be empty where it failed."""

    supported: bool
    """Whether the transcript holds the quote."""


def prompt_version() -> str:
    return version_of(PROMPT)


async def judge(
    llm: LLM, rubric: Rubric, messages: Sequence[Mapping[str, Any]], *, item: str
) -> dict[str, Opinion]:
    """The judge's opinion on each criterion by id. ItemError when it leaves one out."""
    ids = [criterion.id for criterion in rubric.criteria]
    asked = [{"criterion_id": c.id, "words": c.words} for c in rubric.criteria]
    told = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
    transcript = transcript_of(messages)
    talk = render(PROMPT, instructions=told, rubric=asked, transcript=transcript).messages
    said = _said(transcript)
    opinions = _opinions(await _ask(llm, talk, ids, item=item, step="judge"), said, ids)
    wanting = [i for i in ids if not opinions[i].supported]
    if not wanting:
        return opinions
    answered = [{"criterion_id": i} | _as_answered(opinions[i]) for i in ids]
    talk += [
        {"role": "assistant", "content": json.dumps({"verdicts": answered}, ensure_ascii=False)},
        {"role": "user", "content": _UNSUPPORTED.format(ids=", ".join(wanting))},
    ]
    again = _opinions(await _ask(llm, talk, ids, item=item, step="judge_again"), said, ids)
    return {i: _final(again[i] if i in wanting else opinions[i]) for i in ids}


_UNSUPPORTED = (
    "The transcript does not hold your quotes for these criteria: {ids}. Judge again, all criteria,"
    " and copy each quote word for word from one text of the transcript; if nothing in it shows"
    " that a criterion is met, the criterion is not passed."
)


async def _ask(
    llm: LLM, talk: Sequence[dict[str, Any]], ids: Sequence[str], *, item: str, step: str
) -> dict[str, Any]:
    schema = judgement_schema(ids)
    return await llm.structured(
        "judge", talk, item=item, step=step, name="judgement", schema=schema
    )


def _opinions(answer: Mapping[str, Any], said: str, ids: Sequence[str]) -> dict[str, Opinion]:
    """The first verdict on each criterion counts."""
    opinions: dict[str, Opinion] = {}
    for verdict in answer["verdicts"]:
        passed, quote = verdict["passed"], verdict["quote"][:QUOTE_CHARS]
        supported = is_quoted(quote, said) if quote.strip() else not passed
        evidence = verdict["evidence"][:EVIDENCE_CHARS]
        opinion = Opinion(passed, evidence, quote, supported)
        opinions.setdefault(verdict["criterion_id"], opinion)
    if missing := [i for i in ids if i not in opinions]:
        raise ItemError("judge_incomplete", f"no verdict on {', '.join(missing)}")
    return opinions


def _as_answered(opinion: Opinion) -> dict[str, Any]:
    return {"passed": opinion.passed, "quote": opinion.quote, "evidence": opinion.evidence}


def _final(opinion: Opinion) -> Opinion:
    return opinion if opinion.supported else opinion._replace(passed=False)


def is_quoted(quote: str, said: str) -> bool:
    """Whether `said` (see `_said`) holds the quote, part for part where it leaves words out.

    Case, spacing, emphasis, kinds of quotation marks and escapes of JSON make no difference. A
    quote of fewer than MIN_QUOTED letters and digits could stand anywhere.
    """
    parts = [part for part in map(_plain, re.split(r"\.{3}|\u2026", quote)) if part]
    long_enough = sum(map(str.isalnum, "".join(parts))) >= MIN_QUOTED
    return long_enough and all(part in said for part in parts)


def _said(transcript: Sequence[Mapping[str, Any]]) -> str:
    """All that a quote may come from, in the form in which quotes are compared."""
    texts: list[str] = []
    for entry in transcript:
        texts.append(entry["content"])
        for call in entry.get("calls", ()):
            texts += [f"{call['name']} {call['arguments']}", json.dumps(call)]
    return "\n".join(map(_plain, texts))


def _plain(text: str) -> str:
    text = text.replace("\\n", " ").replace("\\", "")
    text = text.translate(_MARKS).casefold()
    return " ".join(text.split()).strip(" '")


_MARKS = {ord(mark): "'" for mark in '"\u201c\u201d\u2018\u2019`'} | {ord("*"): ""}
"""Models quote without the emphasis that stands in the text."""


def judgement_schema(criterion_ids: Sequence[str]) -> dict[str, Any]:
    verdict = {
        "type": "object",
        "properties": {
            "criterion_id": {"type": "string", "enum": list(criterion_ids)},
            "passed": {"type": "boolean"},
            "quote": {"type": "string"},
            "evidence": {"type": "string"},
        },
        "required": ["criterion_id", "passed", "quote", "evidence"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "verdicts": {"type": "array", "items": verdict, "minItems": len(criterion_ids)}
        },
        "required": ["verdicts"],
        "additionalProperties": False,
    }


def transcript_of(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was said and done, as the judge reads it: no ids, no reasoning."""
    transcript: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "system":
            continue
        entry: dict[str, Any] = {"role": message["role"], "content": message.get("content") or ""}
        if message["role"] == "tool":
            entry = {"role": "tool", "name": message["name"], "content": entry["content"]}
        if calls := message.get("tool_calls"):
            entry["calls"] = [
                {"name": c["function"]["name"], "arguments": c["function"]["arguments"]}
                for c in calls
            ]
        transcript.append(entry)
    return transcript
