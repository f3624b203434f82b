"""The review of one episode: code's verdicts, the questions that they leave, the judge's answers.

Grading reviews what was rolled out, the judge's trial what was perturbed, and a benchmark what
others wrote; all of them by this.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from records.tables.schemas import Row
from synth.judging.attribution import ask_cause, is_excusable, may_be_anothers
from synth.judging.decision import DecisionConfig
from synth.judging.judge import Judgement, JudgeQuestions, prompt_version
from synth.judging.panel import MEMBER, PanelRule, ask_panel, decided
from synth.llm.client import LLM
from synth.llm.settings.config import RoleConfig
from synth.rubrics.built_in import Verdict
from synth.rubrics.criteria import JUDGED, Criterion, Rubric
from synth.rubrics.economy import economy_of
from synth.rubrics.standing import (
    ECONOMY,
    STANDING,
    STANDING_VERSION,
    TRUTH,
    USER_PART,
    standing_for,
)
from synth.rubrics.statements.statements import (
    STATEMENTS_VERSION,
    ReplyStatement,
    statements_of,
    truth_by_code,
)


@dataclass(frozen=True, slots=True)
class ReviewedEpisode:
    messages: Sequence[Mapping[str, Any]]
    """In wire form, the system prompt first."""
    calls: Sequence[Row]
    """Rows of `tool_calls`, in call order."""
    tools: Sequence[Row]
    """What the agent was offered."""
    rubric: Rubric
    user: Mapping[str, Any] | None = None
    """What the simulated user was to want and know; None where there was none."""
    known_calls: int | None = None
    """So many calls of the agent are known to do; None where nobody knows."""


async def review(
    llm: LLM | None,
    episode: ReviewedEpisode,
    verdicts: Mapping[str, Verdict],
    *,
    item: str,
    judge_role: RoleConfig,
    version: str,
    judge_failed: bool = False,
    ask_for_cause: bool = False,
    rule: PanelRule = "one",
    decision: DecisionConfig = DecisionConfig(),
) -> list[Row]:
    """Rows of `verdicts`, without the keys of their place: code's on each criterion that it checks
    (`verdicts`, made by the checks of `version`), on the truth of the statements and on the economy
    of calls, and the judge's on what code leaves open. The models of `judge_role` decide by `rule`.

    The judge is not asked where code rejects by the rules of `decision`, unless `judge_failed`, and
    not without `llm`. With `ask_for_cause` it is asked there for the cause, too, where the user or
    the task may be it; the cause stands with code's verdicts that reject and that it can excuse.
    """
    statements = statements_of(episode.messages, episode.calls)
    rows = code_rows(episode.rubric, verdicts, statements, version=version)
    rows += _economy_rows(episode)
    failed = [row for row in rows if decision.rejects(row) and row["passed"] is False]
    if llm is None:
        return rows
    if ask_for_cause and may_be_anothers(failed):
        asked = _questions(episode, (*STANDING, *episode.rubric.criteria))
        excusable = [row for row in failed if is_excusable(row)]
        cause = await ask_cause(llm, asked, excusable, item=item, judge_role=judge_role)
        rows = [row | {"cause": cause} if row in excusable else row for row in rows]
    if failed and not judge_failed:
        return rows
    standing = (*standing_for(episode.calls), *([USER_PART] if episode.user else ()))
    left = criteria_left(episode.rubric, rows, standing)
    asked = _questions(episode, left, [s for s in statements if s.outcome == "open"])
    judged = await ask_panel(llm, asked, item=item, role=judge_role, rule=rule)
    return rows + panel_rows(asked, judged, rule)


def _questions(
    episode: ReviewedEpisode,
    criteria: Sequence[Criterion],
    statements: Sequence[ReplyStatement] = (),
) -> JudgeQuestions:
    return JudgeQuestions(
        episode.messages, episode.calls, episode.tools, criteria, statements, episode.user
    )


def panel_rows(
    asked: JudgeQuestions, judged: Mapping[str, Judgement], rule: PanelRule
) -> list[Row]:
    """The judge's rows, and before them those of the members that it decided by, by model; of one
    judge its own word is all."""
    prompt = prompt_version()
    by_member = [
        judge_rows(asked, judgement, version=f"{model}@{prompt}")
        for model, judgement in judged.items()
    ]
    rows = decided(by_member, rule)
    if rule == "one":
        return rows
    members = [
        row | {"checked_by": f"{MEMBER}{model}"}
        for model, own in zip(judged, by_member, strict=True)
        for row in own
    ]
    version = f"{rule}:{'+'.join(judged)}@{prompt}"
    return [*members, *(row | {"checker_version": version} for row in rows)]


def code_rows(
    rubric: Rubric,
    verdicts: Mapping[str, Verdict],
    statements: Sequence[ReplyStatement],
    *,
    version: str,
) -> list[Row]:
    """Code's verdicts, that on the truth of the statements last. What it leaves open is null."""
    rows = [
        _row(c, verdicts[c.id], checked_by="code", version=version)
        for c in rubric.criteria
        if c.id in verdicts
    ]
    (truth,) = (c for c in STANDING if c.id == TRUTH)
    row = _row(truth, truth_by_code(statements), checked_by="code", version=STATEMENTS_VERSION)
    wrong = next((s.text for s in statements if s.outcome == "contradicted"), None)
    details = [
        {"id": s.id, "message": s.message, "says": s.text, "finding": s.outcome}
        | ({"evidence": s.evidence} if s.evidence else {})
        for s in statements
    ]
    return [*rows, row | {"quote": wrong, "details": details}]


def _economy_rows(episode: ReviewedEpisode) -> list[Row]:
    """None where the rubric has a criterion of that id."""
    if ECONOMY.id in {c.id for c in episode.rubric.criteria}:
        return []
    verdict = economy_of(episode.messages, episode.calls, episode.tools, episode.known_calls)
    return [_row(ECONOMY, verdict, checked_by="code", version=STANDING_VERSION)]


def criteria_left(
    rubric: Rubric, by_code: Iterable[Row], standing: Iterable[Criterion]
) -> list[Criterion]:
    """What the judge is asked about beside the statements: what no code checks, what code left
    open, and the `standing` criteria. A rubric's own criterion takes the place of a standing one of
    its id."""
    is_open = {row["criterion_id"] for row in by_code if row["passed"] is None}
    own = [c for c in rubric.criteria if c.kind == JUDGED or c.id in is_open]
    taken = {TRUTH, *(c.id for c in rubric.criteria)}
    return [*own, *(c for c in standing if c.id not in taken)]


def judge_rows(asked: JudgeQuestions, judgement: Judgement, *, version: str) -> list[Row]:
    """The judge's verdicts: on the statements, where it was asked of any, and on each criterion."""
    rows = []
    if asked.statements:
        (truth,) = (c for c in STANDING if c.id == TRUTH)
        rows.append(
            _row(truth, _truth_of(asked, judgement), checked_by="judge", version=version)
            | _statement_details(asked, judgement)
        )
    for criterion in asked.criteria:
        opinion = judgement.criteria[criterion.id]
        verdict = Verdict(opinion.passed, float(opinion.passed is True), opinion.evidence)
        row = _row(criterion, verdict, checked_by="judge", version=version)
        if criterion.id == USER_PART.id:
            row["weight"] = 0.0  # no part of what the agent scores
        rows.append(row | {"quote": opinion.quote, "supported": opinion.supported})
    cause = judgement.cause._asdict()
    return [row | {"cause": cause} if row["passed"] is False else row for row in rows]


def _truth_of(asked: JudgeQuestions, judgement: Judgement) -> Verdict:
    """One statement that does not hold fails it; else one that is left undecided leaves it so."""
    if (decisive := _decisive(asked, judgement)) is None:
        return Verdict(True, 1.0, f"All {len(asked.statements)} open statements hold.")
    opinion = judgement.statements[decisive.id]
    why = f"{opinion.finding.replace('_', ' ')}: {opinion.evidence}"
    if not opinion.supported:
        why += f" (by a quote that does not show it: {opinion.quote!r})" if opinion.quote else ""
        why += "" if opinion.quote or opinion.evidence.strip() else "no reason is given"
    return Verdict(opinion.passed, 0.0, f"{decisive.text!r} is {why}")


def _decisive(asked: JudgeQuestions, judgement: Judgement) -> ReplyStatement | None:
    """The statement that fails the truth, or leaves it undecided; None where all hold."""
    opinions = judgement.statements
    doubtful = [s for s in asked.statements if not opinions[s.id].passed]
    failing = (s for s in doubtful if opinions[s.id].passed is False)
    return next(failing, next(iter(doubtful), None))


def _statement_details(asked: JudgeQuestions, judgement: Judgement) -> Row:
    """The words that decide are the assistant's own where a statement fails."""
    opinions = judgement.statements
    wrong = _decisive(asked, judgement)
    details = [
        {"id": s.id, "message": s.message, "says": s.text} | opinions[s.id]._asdict()
        for s in asked.statements
    ]
    supported = all(opinion.supported for opinion in opinions.values())
    return {"quote": wrong.text if wrong else "", "supported": supported, "details": details}


def _row(criterion: Criterion, verdict: Verdict, *, checked_by: str, version: str) -> Row:
    return {
        "criterion_id": criterion.id,
        "kind": criterion.kind,
        "checked_by": checked_by,
        "mandatory": criterion.mandatory,
        "weight": criterion.weight,
        "passed": verdict.passed,
        "score": verdict.score,
        "evidence": verdict.evidence,
        "checker_version": version,
        "quote": None,
        "supported": None,
        "details": None,
        "cause": None,
    }
