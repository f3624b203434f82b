"""The judge: a model's opinion on what code leaves open, from the words and the conversation.

It is asked about the criteria that code does not decide, and about each statement of the assistant
that code left open (`synth.rubrics.statements`), all in one request. It sees the instructions, the
tools, what the calls truly changed and the transcript, and never code's verdicts or the task's
checks.

The answer gives evidence first and the verdict last, and at its end what a failure goes back to.
Each opinion quotes the words that decide it. Of statements that claim nothing, and of criteria that
always hold and are met, it lists the ids alone.
A quote that does not stand there is shown to the judge once, and so is an id without an answer or
without a word of reason; if it comes again, the opinion is unsupported and passes nothing. What the
assistant itself says shows no statement of it. A criterion that is met where nothing is amiss stays
met without its quote. What fails still fails by its reason, and its quote is not kept; what fails
without a word is left undecided, and so is the user's part without the user's words.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

from records.errors import ItemError
from records.tables.schemas import Row
from synth.judging.transcript import (
    QuotableText,
    QuotedFrom,
    is_quoted,
    letters_in,
    material_of,
)
from synth.llm.client import LLM
from synth.llm.structured import object_schema
from synth.prompts.templates import render, version_of
from synth.rubrics.criteria import Criterion
from synth.rubrics.standing import STANDING_IDS, USER_PART
from synth.rubrics.statements.statements import ReplyStatement

PROMPT = "judgement"

EVIDENCE_CHARS = 2_000
"""Kept of the judge's evidence on one criterion or statement."""

QUOTE_CHARS = 1_000
"""Longest quote that is looked at and kept."""

LONG_TRANSCRIPT = 12_000
"""Characters of a transcript from which on a statement has excerpts of it beside it: in a shorter
one everything is in sight, and they only distract."""

MOST_BESIDE = 2
"""Excerpts beside a statement, the nearest ones."""

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
    user: Mapping[str, Any] | None = None
    """What the simulated user was to want and know; None where there was none."""


class Opinion(NamedTuple):
    passed: bool | None
    """False also where the judge passed it and nothing in the material supports that. None where
    it failed it and gave no reason, twice: that decides nothing."""

    evidence: str
    quote: str
    """Words of the material, as the judge gave them; may be empty where it failed or where nothing
    is amiss, and is where it failed and the material does not hold them."""

    supported: bool
    """Whether the material holds the quote, or none is needed."""


MET = Opinion(True, "", "", supported=True)
"""Of a criterion that always holds, where nothing is amiss."""


class StatementOpinion(NamedTuple):
    finding: JudgeFinding
    evidence: str
    quote: str
    supported: bool
    """Whether the words that it quotes stand where they may: for `shown` anywhere but in what the
    assistant says, for the others anywhere. These may have a reason in place of a quote."""

    @property
    def passed(self) -> bool | None:
        """None where it does not hold by the judge, who gives no reason for that: this decides
        nothing."""
        if self.finding in TRUE_FINDINGS:
            return self.supported
        return False if self.supported or self.evidence.strip() else None


NO_CLAIM = StatementOpinion("no_claim", "", "", supported=True)


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

    def missing(self, asked: JudgeQuestions) -> list[str]:
        """Ids of what is asked and not answered."""
        answered = {*self.criteria, *self.statements}
        ids = (*(c.id for c in asked.criteria), *(s.id for s in asked.statements))
        return [i for i in ids if i not in answered]


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
    shown, said = material_of(asked.messages, asked.calls, asked.tools)
    is_long = len(json.dumps(shown["transcript"], ensure_ascii=False)) >= LONG_TRANSCRIPT
    words = [{"criterion_id": c.id, "words": c.words} for c in asked.criteria]
    talk = render(
        PROMPT,
        **shown,
        rubric=[one for one in words if one["criterion_id"] not in STANDING_IDS],
        standing=[one for one in words if one["criterion_id"] in STANDING_IDS],
        user=asked.user,
        statements=[_shown(s, MOST_BESIDE if is_long else 0) for s in asked.statements],
    ).messages
    first = await _ask(llm, talk, asked, item=item, step=step)
    judged = _judgement(first, said, asked)
    missing = judged.missing(asked)
    if not (wanting := {*judged.wanting, *missing}):
        return judged
    talk += [
        {"role": "assistant", "content": json.dumps(first, ensure_ascii=False)},
        {"role": "user", "content": _complaint(judged, missing, said)},
    ]
    second = await _ask(llm, talk, asked, item=item, step=f"{step}_again")
    again = _judgement(second, said, asked)
    criteria = _mended((c.id for c in asked.criteria), judged.criteria, again.criteria, wanting)
    ids = (s.id for s in asked.statements)
    final = Judgement(
        {i: _final(i, opinion) for i, opinion in criteria.items()},
        {
            i: _final_of_statement(opinion)
            for i, opinion in _mended(ids, judged.statements, again.statements, wanting).items()
        },
        again.cause,
        asked_again=True,
    )
    if left := final.missing(asked):
        raise ItemError("judge_incomplete", f"no verdict on {', '.join(left)}")
    return final


_Answered = TypeVar("_Answered", Opinion, StatementOpinion)


def _mended(
    ids: Iterable[str],
    first: Mapping[str, _Answered],
    again: Mapping[str, _Answered],
    wanting: Collection[str],
) -> dict[str, _Answered]:
    """The first opinions, those of `again` in place of what was wanting; without what neither
    answers."""
    chosen = {i: again if i in wanting else first for i in ids}
    return {i: opinions[i] for i, opinions in chosen.items() if i in opinions}


_UNSUPPORTED = (
    "What you quote for these does not stand there: {ids}. Copy each quote word for word from one"
    " text of the material; where nothing in it shows that a criterion is met or that a statement"
    " is true, say so."
)
_WORDLESS = "For these you give neither a reason nor a quote: {ids}."
_OWN_WORDS = "What the assistant itself says does not show that it is true."
_MISSING = "These are nowhere answered: {ids}."
_AGAIN = "Judge again, everything."


def _complaint(judged: Judgement, missing: Sequence[str], said: Sequence[QuotableText]) -> str:
    words: list[str] = []
    opinions = {**judged.criteria, **judged.statements}
    wordless = [i for i in judged.wanting if _fails_or_follows_without_a_word(opinions[i])]
    if quoting := [i for i in judged.wanting if i not in wordless]:
        words.append(_UNSUPPORTED.format(ids=", ".join(quoting)))
    if wordless:
        words.append(_WORDLESS.format(ids=", ".join(wordless)))
    quotes = (one.quote for one in judged.statements.values() if not one.supported)
    if any(is_quoted(quote, said) for quote in quotes):
        words.append(_OWN_WORDS)
    if missing:
        words.append(_MISSING.format(ids=", ".join(missing)))
    return " ".join((*words, _AGAIN))


def _fails_or_follows_without_a_word(opinion: Opinion | StatementOpinion) -> bool:
    """Of what is wanting: whether a reason would be enough, and neither it nor a quote is given."""
    needs_quote = (
        opinion.finding == "shown" if isinstance(opinion, StatementOpinion) else opinion.passed
    )
    return not (needs_quote or opinion.evidence.strip() or opinion.quote.strip())


def _shown(statement: ReplyStatement, excerpts: int) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": statement.id, "says": statement.text}
    beside = list(statement.beside[:excerpts])
    return shown | ({"beside": beside} if beside else {})


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
    """What is answered, in the order asked. The first entry on each criterion and statement counts,
    and an entry before a mention in a list."""
    criteria: dict[str, Opinion] = {}
    for verdict in answer["verdicts"]:
        criteria.setdefault(verdict["criterion_id"], _opinion(verdict, said))
    for i in answer["met"]:
        criteria.setdefault(i, MET)
    statements: dict[str, StatementOpinion] = {}
    for verdict in answer["statements"]:
        statements.setdefault(verdict["id"], _statement_opinion(verdict, said))
    for i in answer["no_claim"]:
        statements.setdefault(i, NO_CLAIM)
    return Judgement(
        {c.id: criteria[c.id] for c in asked.criteria if c.id in criteria},
        {s.id: statements[s.id] for s in asked.statements if s.id in statements},
        cause_of(answer["cause"], said),
    )


def _opinion(given: Mapping[str, Any], said: Sequence[QuotableText]) -> Opinion:
    passed, quote = given["passed"], given["quote"][:QUOTE_CHARS]
    evidence = given["evidence"][:EVIDENCE_CHARS]
    is_standing = given["criterion_id"] in STANDING_IDS
    if given["criterion_id"] == USER_PART.id and not passed:
        by_user = (text for text in said if text.of == "user")
        return Opinion(passed, evidence, quote, is_quoted(quote, by_user))
    if not quote.strip():
        return Opinion(passed, evidence, quote, is_standing if passed else bool(evidence.strip()))
    supported = is_quoted(quote, said)
    dropped = passed and is_standing and not supported
    return Opinion(passed, evidence, "" if dropped else quote, supported)


def _statement_opinion(given: Mapping[str, Any], said: Sequence[QuotableText]) -> StatementOpinion:
    finding, quote = given["finding"], given["quote"][:QUOTE_CHARS]
    if finding == "shown":
        supported = is_quoted(quote, (text for text in said if text.of != "assistant"))
    elif letters_in(quote):
        supported = is_quoted(quote, said, least=1)
    else:
        supported = bool(given["evidence"].strip())
    return StatementOpinion(finding, given["evidence"][:EVIDENCE_CHARS], quote, supported)


def cause_of(given: Mapping[str, Any], said: Sequence[QuotableText]) -> Cause:
    """A cause as it was answered, and whether its quote is by whom it names."""
    of, quote = given["of"], given["quote"][:QUOTE_CHARS]
    by = _CAUSED_BY.get(of)
    supported = is_quoted(quote, (text for text in said if by is None or text.of in by))
    return Cause(of, given["evidence"][:EVIDENCE_CHARS], quote, supported)


_CAUSED_BY: Mapping[CauseOf, frozenset[QuotedFrom]] = {
    "user": frozenset({"user"}),
    "task": frozenset({"user", "instructions"}),
    "tools": frozenset({"result"}),
}
"""Whose words a cause must quote; the others may quote any."""


def _final(criterion_id: str, opinion: Opinion) -> Opinion:
    """After the second asking: a pass that nothing supports fails, a failure without a word decides
    nothing, and neither does the user's without the user's words. Of none the quote is kept."""
    if not _is_wanting(criterion_id, opinion):
        return opinion
    opinion = opinion._replace(quote="")
    if opinion.passed:
        evidence = opinion.evidence if opinion.evidence.strip() else "Nothing shows that it is met."
        return opinion._replace(passed=False, evidence=evidence)
    decides = opinion.evidence.strip() and criterion_id != USER_PART.id
    return opinion if decides else opinion._replace(passed=None)


def _final_of_statement(opinion: StatementOpinion) -> StatementOpinion:
    """After the second asking: what does not hold does not show a quote that stands nowhere."""
    if opinion.supported or opinion.finding in TRUE_FINDINGS:
        return opinion
    return opinion._replace(quote="")


def judgement_schema(criterion_ids: Sequence[str], statement_ids: Sequence[str]) -> dict[str, Any]:
    """Evidence comes first in every entry, so that the verdict is drawn from it."""
    own = [i for i in criterion_ids if i not in STANDING_IDS]
    verdict = {
        "criterion_id": _one_of(criterion_ids),
        "evidence": _TEXT,
        "quote": _TEXT,
        "passed": {"type": "boolean"},
    }
    claiming = [finding for finding in JudgeFinding.__args__ if finding != NO_CLAIM.finding]
    finding = {
        "id": _one_of(statement_ids),
        "evidence": _TEXT,
        "quote": _TEXT,
        "finding": _one_of(claiming),
    }
    return object_schema(
        {
            "statements": {"type": "array", "items": object_schema(finding)},
            "no_claim": {"type": "array", "items": _one_of(statement_ids)},
            "verdicts": {"type": "array", "items": object_schema(verdict), "minItems": len(own)},
            "met": {
                "type": "array",
                "items": _one_of([i for i in criterion_ids if i in STANDING_IDS]),
            },
            "cause": cause_schema(),
        }
    )


def cause_schema() -> dict[str, Any]:
    return object_schema({"evidence": _TEXT, "quote": _TEXT, "of": _one_of(CauseOf.__args__)})


_TEXT = {"type": "string"}


def _one_of(values: Sequence[str]) -> dict[str, Any]:
    """An enum has at least one value."""
    return {"type": "string", "enum": list(values) or ["none"]}
