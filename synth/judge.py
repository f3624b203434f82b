"""The judge: a model's opinion on every criterion, from the rubric's words and the conversation.

It never sees checks, states or the code's verdicts. Its opinions count where code has none (`nl`);
on the others they are kept beside the code's verdicts, which puts the judge itself on trial.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from records.errors import ItemError
from synth.llm.client import LLM
from synth.prompts import render, version_of
from synth.rubric import Rubric

PROMPT = "judgement"

EVIDENCE_CHARS = 2_000
"""Kept of the judge's evidence on one criterion."""


class Opinion(NamedTuple):
    passed: bool
    evidence: str


def prompt_version() -> str:
    return version_of(PROMPT)


async def judge(
    llm: LLM, rubric: Rubric, messages: Sequence[Mapping[str, Any]], *, item: str
) -> dict[str, Opinion]:
    """The judge's opinion on each criterion by id. ItemError when it leaves one out."""
    ids = [criterion.id for criterion in rubric.criteria]
    asked = [{"criterion_id": c.id, "words": c.words} for c in rubric.criteria]
    told = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
    prompt = render(PROMPT, instructions=told, rubric=asked, transcript=transcript_of(messages))
    answer = await llm.structured(
        "judge",
        prompt.messages,
        item=item,
        step="judge",
        name="judgement",
        schema=judgement_schema(ids),
    )
    opinions: dict[str, Opinion] = {}
    for verdict in answer["verdicts"]:
        opinion = Opinion(verdict["passed"], verdict["evidence"][:EVIDENCE_CHARS])
        opinions.setdefault(verdict["criterion_id"], opinion)
    if missing := [i for i in ids if i not in opinions]:
        raise ItemError("judge_incomplete", f"no verdict on {', '.join(missing)}")
    return opinions


def judgement_schema(criterion_ids: Sequence[str]) -> dict[str, Any]:
    verdict = {
        "type": "object",
        "properties": {
            "criterion_id": {"type": "string", "enum": list(criterion_ids)},
            "passed": {"type": "boolean"},
            "evidence": {"type": "string"},
        },
        "required": ["criterion_id", "passed", "evidence"],
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
