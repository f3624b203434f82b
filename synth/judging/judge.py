"""The judge: a model's opinion on what code leaves open, from the words and the conversation.

It is asked about the criteria that code does not decide, and about each statement of the assistant
that code left open (`synth.rubrics.statements`), all in one request. It sees the instructions, the
tools, what the calls truly changed and the transcript, and never code's verdicts or the task's
checks.

The answer gives evidence first and the verdict last, and at its end what a failure goes back to.
Each opinion quotes the words that decide it.
A quote that does not stand there is shown to the judge once; if it comes again, the opinion is
unsupported and passes nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from records.errors import ItemError
from records.tables.schemas import Row
from synth.judging.transcript import (
    changes_of,
    instructions_of,
    is_quoted,
    quotable,
    tools_shown,
    transcript_of,
)
from synth.llm.client import LLM
from synth.prompts.templates import render, version_of
from synth.rubrics.criteria import Criterion
from synth.rubrics.standing import STANDING_IDS
from synth.rubrics.statements.statements import ReplyStatement

PROMPT = "judgement"

EVIDENCE_CHARS = 2_000
"""Kept of the judge's evidence on one criterion or statement."""

QUOTE_CHARS = 1_000
"""Longest quote that is looked at and kept."""

JudgeFinding = Literal["shown", "follows", "no_claim", "not_shown", "contradicted"]
"""Of a statement. shown: words elsewhere say it, and are quoted. follows: it follows from several
places, or from what is nowhere done. no_claim: it states nothing that could be false. not_shown:
nothing bears it out. contradicted: something says otherwise."""

TRUE_FINDINGS = frozenset({"shown", "follows", "no_claim"})

CauseOf = Literal["assistant", "user", "task", "tools", "none"]
"""What a failure goes back to. user: who told something false or contradicted themself. task: a
wish that can be read in two ways. tools: a result that was false or impossible."""


@dataclass(frozen=True, slots=True)
class JudgeQuestions:
    """What the judge is asked about one episode."""

    messages: Sequence[Mapping[str, Any]]
    """In wire form, the system prompt first."""
    calls: Sequence[Row]
    """Rows of `tool_calls`, in call order."""
    tools: Sequence[Row]
    """What the agent was offered."""
    criteria: Sequence[Criterion]
    statements: Sequence[ReplyStatement]
    """Those that code left open."""


class Opinion(NamedTuple):
    passed: bool
    """False also where the judge passed it and nothing in the transcript supports that."""

    evidence: str
    quote: str
    """Words of the transcript, as the judge gave them; may be empty where it failed."""

    supported: bool
    """Whether the transcript holds the quote."""


class StatementOpinion(NamedTuple):
    finding: JudgeFinding
    evidence: str
    quote: str
    supported: bool
    """Whether the words that it quotes stand where they are said to; needed for `shown` alone."""

    @property
    def passed(self) -> bool:
        return self.supported and self.finding in TRUE_FINDINGS


class Cause(NamedTuple):
    """What the failures of an episode go back to, as the judge sees it."""

    of: CauseOf
    evidence: str
    quote: str
    supported: bool
    """Whether the material holds the quote; without it the cause counts for nothing."""


class Judgement(NamedTuple):
    criteria: dict[str, Opinion]
    statements: dict[str, StatementOpinion]
    """Both by id, in the order in which they were asked."""

    cause: Cause = Cause("none", "", "", supported=False)
    asked_again: bool = False
    """Whether a quote did not stand there at the first asking."""

    @property
    def wanting(self) -> list[str]:
        """Ids of what is not supported."""
        both = (*self.criteria.items(), *self.statements.items())
        return [name for name, opinion in both if not opinion.supported]


def prompt_version() -> str:
    return version_of(PROMPT)


async def judge(llm: LLM, asked: JudgeQuestions, *, item: str) -> Judgement:
    """The judge's opinion on each criterion and statement. ItemError when it leaves one out."""
    transcript = transcript_of(asked.messages)
    told, changes = instructions_of(asked.messages), changes_of(asked.calls)
    tools = tools_shown(asked.tools)
    said = quotable(told, tools, changes, transcript)
    talk = render(
        PROMPT,
        instructions=told,
        tools=tools,
        changes=changes,
        rubric=[{"criterion_id": c.id, "words": c.words} for c in asked.criteria],
        statements=[_shown(statement) for statement in asked.statements],
        transcript=transcript,
    ).messages
    first = await _ask(llm, talk, asked, item=item, step="judge")
    judged = _judgement(first, said, asked)
    if not (wanting := judged.wanting):
        return judged
    talk += [
        {"role": "assistant", "content": json.dumps(first, ensure_ascii=False)},
        {"role": "user", "content": _UNSUPPORTED.format(ids=", ".join(wanting))},
    ]
    again = _judgement(await _ask(llm, talk, asked, item=item, step="judge_again"), said, asked)
    return Judgement(
        {
            i: _final(again.criteria[i] if i in wanting else opinion)
            for i, opinion in judged.criteria.items()
        },
        {
            i: again.statements[i] if i in wanting else opinion
            for i, opinion in judged.statements.items()
        },
        again.cause,
        asked_again=True,
    )


_UNSUPPORTED = (
    "What you quote for these does not stand there: {ids}. Judge again, everything, and copy each"
    " quote word for word from one text of the material; where nothing in it shows that a criterion"
    " is met or that a statement is true, say so."
)


def _shown(statement: ReplyStatement) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": statement.id, "says": statement.text}
    return shown | ({"beside": list(statement.beside)} if statement.beside else {})


async def _ask(
    llm: LLM, talk: Sequence[dict[str, Any]], asked: JudgeQuestions, *, item: str, step: str
) -> dict[str, Any]:
    criteria, statements = [c.id for c in asked.criteria], [s.id for s in asked.statements]
    schema = judgement_schema(criteria, statements)
    return await llm.structured(
        "judge", talk, item=item, step=step, name="judgement", schema=schema
    )


def _judgement(answer: Mapping[str, Any], said: str, asked: JudgeQuestions) -> Judgement:
    """The first verdict on each criterion and statement counts."""
    criteria: dict[str, Opinion] = {}
    for verdict in answer["verdicts"]:
        passed, quote = verdict["passed"], verdict["quote"][:QUOTE_CHARS]
        needs_none = not passed or verdict["criterion_id"] in STANDING_IDS
        supported = is_quoted(quote, said) if quote.strip() else needs_none
        evidence = verdict["evidence"][:EVIDENCE_CHARS]
        opinion = Opinion(passed, evidence, quote, supported)
        criteria.setdefault(verdict["criterion_id"], opinion)
    statements: dict[str, StatementOpinion] = {}
    for verdict in answer["statements"]:
        finding, quote = verdict["finding"], verdict["quote"][:QUOTE_CHARS]
        supported = finding != "shown" or is_quoted(quote, said)
        evidence = verdict["evidence"][:EVIDENCE_CHARS]
        found = StatementOpinion(finding, evidence, quote, supported)
        statements.setdefault(verdict["id"], found)
    wanted = [c.id for c in asked.criteria], [s.id for s in asked.statements]
    if missing := [
        i for ids, have in zip(wanted, (criteria, statements), strict=True) for i in ids
        if i not in have
    ]:  # fmt: skip
        raise ItemError("judge_incomplete", f"no verdict on {', '.join(missing)}")
    return Judgement(
        {i: criteria[i] for i in wanted[0]},
        {i: statements[i] for i in wanted[1]},
        _cause(answer["cause"], said),
    )


def _cause(given: Mapping[str, Any], said: str) -> Cause:
    quote = given["quote"][:QUOTE_CHARS]
    return Cause(given["of"], given["evidence"][:EVIDENCE_CHARS], quote, is_quoted(quote, said))


def _final(opinion: Opinion) -> Opinion:
    return opinion if opinion.supported else opinion._replace(passed=False)


def judgement_schema(criterion_ids: Sequence[str], statement_ids: Sequence[str]) -> dict[str, Any]:
    """Evidence comes first in every entry, so that the verdict is drawn from it."""
    text = {"type": "string"}
    verdict = {
        "criterion_id": {"type": "string", "enum": list(criterion_ids)},
        "evidence": text,
        "quote": text,
        "passed": {"type": "boolean"},
    }
    finding = {
        "id": {"type": "string", "enum": list(statement_ids) or ["none"]},
        "evidence": text,
        "quote": text,
        "finding": {"type": "string", "enum": list(JudgeFinding.__args__)},
    }
    return _object(
        {
            "statements": {
                "type": "array",
                "items": _object(finding),
                "minItems": len(statement_ids),
            },
            "verdicts": {
                "type": "array",
                "items": _object(verdict),
                "minItems": len(criterion_ids),
            },
            "cause": _object(
                {
                    "evidence": text,
                    "quote": text,
                    "of": {"type": "string", "enum": list(CauseOf.__args__)},
                }
            ),
        }
    )


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
