"""The judge: a model's opinion on what code leaves open, from the words and the conversation.

It is asked about the criteria that code does not decide, and about each statement of the assistant
that code left open (`synth.rubrics.statements`), all in one request. It sees the instructions, the
tools, what the calls truly changed and the transcript, and never code's verdicts or the task's
checks.

The answer gives evidence first and the verdict last, and at its end what a failure goes back to.
Each opinion quotes the words that decide it.
A quote that does not stand there is shown to the judge once; if it comes again, the opinion is
unsupported and passes nothing. What the assistant itself says shows no statement of it. A criterion
that is met where nothing is amiss stays met without its quote, and one that fails without a word
is left undecided.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from records.errors import ItemError
from records.tables.schemas import Row
from synth.judging.transcript import (
    QuotableText,
    QuotedFrom,
    changes_of,
    instructions_of,
    is_quoted,
    letters_in,
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

MOST_STATEMENTS = 120
"""Statements in one request; more of them go in further requests, without the criteria."""

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
    passed: bool | None
    """False also where the judge passed it and nothing in the material supports that. None where
    it failed it and gave no reason, twice: that decides nothing."""

    evidence: str
    quote: str
    """Words of the material, as the judge gave them; may be empty where it failed or where nothing
    is amiss."""

    supported: bool
    """Whether the material holds the quote, or none is needed."""


class StatementOpinion(NamedTuple):
    finding: JudgeFinding
    evidence: str
    quote: str
    supported: bool
    """Whether the words that it quotes stand where they may: for `shown` anywhere but in what the
    assistant says, for `follows` and `no_claim` anywhere, where there is a quote. What does not
    hold needs none."""

    @property
    def passed(self) -> bool:
        return self.supported and self.finding in TRUE_FINDINGS


class Cause(NamedTuple):
    """What the failures of an episode go back to, as the judge sees it."""

    of: CauseOf
    evidence: str
    quote: str
    supported: bool
    """Whether the quote is by whom the cause names; without it the cause counts for nothing."""


class Judgement(NamedTuple):
    criteria: dict[str, Opinion]
    statements: dict[str, StatementOpinion]
    """Both by id, in the order in which they were asked."""

    cause: Cause = Cause("none", "", "", supported=False)
    asked_again: bool = False
    """Whether a quote did not stand there at the first asking."""

    @property
    def wanting(self) -> list[str]:
        """Ids of what is not supported, and needs to be."""
        criteria = [name for name, one in self.criteria.items() if _is_wanting(name, one)]
        return criteria + [name for name, one in self.statements.items() if not one.supported]


def _is_wanting(criterion_id: str, opinion: Opinion) -> bool:
    """What is met where nothing is amiss needs no quote, so a wrong one takes nothing from it."""
    return not opinion.supported and not (opinion.passed and criterion_id in STANDING_IDS)


def prompt_version() -> str:
    return version_of(PROMPT)


async def judge(llm: LLM, asked: JudgeQuestions, *, item: str) -> Judgement:
    """The judge's opinion on each criterion and statement. ItemError when it leaves one out."""
    judged = await _judge(
        llm, replace(asked, statements=asked.statements[:MOST_STATEMENTS]), item=item, step="judge"
    )
    further = range(MOST_STATEMENTS, len(asked.statements), MOST_STATEMENTS)
    for number, start in enumerate(further, 2):
        statements = asked.statements[start : start + MOST_STATEMENTS]
        part = replace(asked, criteria=(), statements=statements)
        judged = _together(judged, await _judge(llm, part, item=item, step=f"judge_{number}"))
    return judged


def _together(first: Judgement, then: Judgement) -> Judgement:
    """The first cause that is shown counts."""
    return Judgement(
        first.criteria,
        first.statements | then.statements,
        then.cause if then.cause.supported and not first.cause.supported else first.cause,
        asked_again=first.asked_again or then.asked_again,
    )


async def _judge(llm: LLM, asked: JudgeQuestions, *, item: str, step: str) -> Judgement:
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
    first = await _ask(llm, talk, asked, item=item, step=step)
    judged = _judgement(first, said, asked)
    if not (wanting := judged.wanting):
        return judged
    talk += [
        {"role": "assistant", "content": json.dumps(first, ensure_ascii=False)},
        {"role": "user", "content": _complaint(judged, said)},
    ]
    second = await _ask(llm, talk, asked, item=item, step=f"{step}_again")
    again = _judgement(second, said, asked)
    return Judgement(
        {
            i: _final(i, again.criteria[i] if i in wanting else opinion)
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
_OWN_WORDS = " What the assistant itself says does not show that it is true."


def _complaint(judged: Judgement, said: Sequence[QuotableText]) -> str:
    words = _UNSUPPORTED.format(ids=", ".join(judged.wanting))
    quotes = (one.quote for one in judged.statements.values() if not one.supported)
    return words + _OWN_WORDS if any(is_quoted(quote, said) for quote in quotes) else words


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


def _judgement(
    answer: Mapping[str, Any], said: Sequence[QuotableText], asked: JudgeQuestions
) -> Judgement:
    """The first verdict on each criterion and statement counts."""
    criteria: dict[str, Opinion] = {}
    for verdict in answer["verdicts"]:
        criteria.setdefault(verdict["criterion_id"], _opinion(verdict, said))
    statements: dict[str, StatementOpinion] = {}
    for verdict in answer["statements"]:
        statements.setdefault(verdict["id"], _statement_opinion(verdict, said))
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


def _opinion(given: Mapping[str, Any], said: Sequence[QuotableText]) -> Opinion:
    passed, quote = given["passed"], given["quote"][:QUOTE_CHARS]
    evidence = given["evidence"][:EVIDENCE_CHARS]
    is_standing = given["criterion_id"] in STANDING_IDS
    if not quote.strip():
        return Opinion(passed, evidence, quote, is_standing if passed else bool(evidence.strip()))
    supported = is_quoted(quote, said)
    dropped = passed and is_standing and not supported
    return Opinion(passed, evidence, "" if dropped else quote, supported)


def _statement_opinion(given: Mapping[str, Any], said: Sequence[QuotableText]) -> StatementOpinion:
    finding, quote = given["finding"], given["quote"][:QUOTE_CHARS]
    if finding == "shown":
        supported = is_quoted(quote, (text for text in said if text.of != "assistant"))
    elif finding in TRUE_FINDINGS and letters_in(quote):
        supported = is_quoted(quote, said, least=1)
    else:
        supported = True
    return StatementOpinion(finding, given["evidence"][:EVIDENCE_CHARS], quote, supported)


def _cause(given: Mapping[str, Any], said: Sequence[QuotableText]) -> Cause:
    of, quote = given["of"], given["quote"][:QUOTE_CHARS]
    by: QuotedFrom | None = _CAUSED_BY.get(of)
    supported = is_quoted(quote, (text for text in said if by is None or text.of == by))
    return Cause(of, given["evidence"][:EVIDENCE_CHARS], quote, supported)


_CAUSED_BY: Mapping[CauseOf, QuotedFrom] = {"user": "user", "tools": "result"}
"""Whose words a cause must quote; the others may quote any."""


def _final(criterion_id: str, opinion: Opinion) -> Opinion:
    """After the second asking: a pass that nothing supports fails, a failure without a word decides
    nothing."""
    if not _is_wanting(criterion_id, opinion):
        return opinion
    if opinion.passed:
        evidence = opinion.evidence if opinion.evidence.strip() else "Nothing shows that it is met."
        return opinion._replace(passed=False, evidence=evidence)
    return opinion if opinion.evidence.strip() else opinion._replace(passed=None)


def judgement_schema(criterion_ids: Sequence[str], statement_ids: Sequence[str]) -> dict[str, Any]:
    """Evidence comes first in every entry, so that the verdict is drawn from it."""
    text = {"type": "string"}
    verdict = {
        "criterion_id": {"type": "string", "enum": list(criterion_ids) or ["none"]},
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
