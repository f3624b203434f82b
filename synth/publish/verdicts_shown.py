"""What was decided about one trajectory, put together to be read in a minute.

On top the decision with the one criterion that rejected, then the agent's statements by the message
in which they stand, then the criteria in short. Texts are as they were written; what shows them
makes them safe (synth.render.foreign_text, autoescape).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from records.tables.schemas import Row
from synth.curation.candidates import UNFINISHED
from synth.curation.deciding import FAULTY_TASK, IN_EVALUATION, NEAR_DUPLICATE, OUTSIDE_BAND
from synth.curation.quotas import SEQUENCE_QUOTA, quota_reason
from synth.curation.settings.config import DIMENSIONS
from synth.judging.attribution import DROP_REASONS
from synth.judging.decision import UNDECIDED, counting
from synth.judging.judge import TRUE_FINDINGS
from synth.judging.judge_rates import Rates
from synth.rubrics.standing import TRUTH

UNQUOTED = "its quote stands nowhere"
"""The finding of a statement that was to be shown by words which nobody said."""

FINDINGS = {
    "matched": "matches the records",
    "contradicted": "contradicted",
    "open": "not decided",
    "shown": "shown",
    "follows": "follows from the rest",
    "no_claim": "no claim",
    "not_shown": "not shown",
}
"""Of a statement, in words."""


class ShownStatement(NamedTuple):
    says: str
    finding: str
    """In words."""
    is_true: bool | None
    """None: nobody decided."""
    found_by: str
    """`code` or `judge`."""
    evidence: str
    quote: str

    @property
    def found(self) -> str:
        """By whom, to stand before the finding."""
        who = "the judge" if self.found_by == "judge" else "code"
        return (
            f"{who} takes this for true, but" if self.finding == UNQUOTED else f"{who} finds this"
        )


class ShownEvidence(NamedTuple):
    by: str
    """`code`, `judge`, or `panel:MODEL`."""
    words: str

    @property
    def told(self) -> str:
        """What code found stands as a finding, what a model said as its words."""
        if self.by == "code":
            return f"Code found: {self.words}"
        who = "The judge" if self.by == "judge" else self.by.replace("panel:", "The judge ")
        return f"{who} says: \u201c{self.words}\u201d"


class ShownCriterion(NamedTuple):
    criterion: str
    kind: str
    words: str
    mandatory: bool
    passed: bool | None
    """By the verdict that counts; None where none does."""
    decided_by: str
    """Whose verdict counts: `code` or `judge`; empty where none does."""
    code: bool | None
    judge: bool | None
    evidence: tuple[ShownEvidence, ...]
    """Of each checker, code first."""
    quote: str
    """The words that decide it, as the verdict that counts gives them; may be empty."""
    by_code: bool
    """Whether code looked at it."""
    stored: str = ""
    """What code found, as the row of its verdict has it."""
    judge_model: str = ""
    """Who judged it; empty where nobody did, or it is not noted."""

    @property
    def asks(self) -> str:
        """What is asked, so that it reads as no finding."""
        is_plain = self.words.startswith(TO_BE_TOLD) or not self.words
        return self.words if is_plain else f"What it asks: {self.words}"

    @property
    def who(self) -> str:
        """Whose word counts, and why, as a sentence."""
        if self.decided_by == "code":
            if self.judge is None:
                return "Code decided it from the stored rows; no judge is asked where code is sure."
            agrees = "agrees" if self.judge == self.code else "says the opposite"
            return f"Code decided it; the judge was asked too, {agrees}, and does not count here."
        if self.decided_by == "judge" and self.by_code:
            return "Code looked and could not tell for sure, so the judge was asked and decided it."
        if self.decided_by == "judge":
            return "Only a judge can tell it, so a model decided it; code has no check for it."
        if self.judge is not None:
            return "A judge was asked whose word does not count, so it decides nothing."
        asked = "Code looked and could not tell for sure" if self.by_code else "Nobody could tell"
        return f"{asked}, and no judge's word counts, so it decides nothing."


class ShownDecision(NamedTuple):
    accepted: bool | None
    """None: not curated yet."""
    drop_reason: str
    words: str
    """The reason as a sentence; empty where there is none."""
    facts: tuple[tuple[str, str], ...]
    """Name and value, short: whose word it was, what that is worth, whose failure it is."""
    failed: ShownCriterion | None
    """The criterion that was not passed, as the curation names it."""
    also: tuple[ShownCriterion, ...]
    """The others that were not passed; a scored one lowers the score."""


def decision_on(
    row: Row, criteria: Sequence[ShownCriterion], threshold: float, *, tokens: int | None = None
) -> ShownDecision:
    """`row`: of the view `trajectories`, with the limits of its task; `threshold`: the score from
    which it is accepted; `tokens`: what its messages come to, where that is known."""
    reason = row["drop_reason"] or ""
    failed = next((one for one in criteria if _rejects(one, row)), None)
    facts = [("decided by", _decided_by(row, failed))]
    if row["judge_status"]:
        facts.append(("judge status", row["judge_status"].replace("_", " ")))
    if row["self_judged"]:
        asked_why = (
            "the agent's own model was asked only whose failure it is, which decides nothing"
        )
        by_code = row["decided_by"] == "code"
        facts.append(
            ("self-judged", asked_why if by_code else "the agent's own model is the judge")
        )
    if row["attributed_to"]:
        party = row["attributed_to"]
        facts.append(("failure of", party if party == "undetermined" else f"the {party}"))
    if row["score"] is not None:
        facts.append(("score", _score(row, failed, threshold)))
    also = [one for one in criteria if one.passed is False and one is not failed]
    also.sort(key=lambda one: not one.mandatory)
    words = _over_limit(row, tokens) or _of_call(reason, failed) or reason_in_words(reason)
    return ShownDecision(row["accepted"], reason, words, tuple(facts), failed, tuple(also))


def _decided_by(row: Row, failed: ShownCriterion | None) -> str:
    """Whose verdicts it rests on, and where no judge's does, why."""
    match row["decided_by"], row["judge_status"]:
        case "code", "below_minimum":
            return "code alone, since the judge is below its minimum quality"
        case "code", _ if failed:
            return "code alone, which was sure, so that no judge was asked for a verdict"
        case "code", _:
            return "code alone; no judge's word counts here"
        case "code_and_judge", _:
            return "code and judge"
        case _:
            return "not noted"


def _score(row: Row, failed: ShownCriterion | None, threshold: float) -> str:
    """The score, and whether it has to do with the decision."""
    if row["accepted"] is False and failed is not None and row["drop_reason"] != "low_score":
        return f"a mandatory criterion failed, so the score ({row['score']:.2f}) does not matter"
    if row["accepted"] is False and row["drop_reason"] != "low_score":
        return f"{row['score']:.2f}, which is not why it was rejected"
    return f"{row['score']:.2f}, accepted from {threshold:.2f}"


def judge_in_words(model: str, rates: Rates) -> str:
    """Who judged, and how often that judge is known to err."""
    who = f"The judge is {model or 'not noted'}."
    tried = []
    if rates.num_failures:
        told = f"passed {rates.false_accepts} of {rates.num_failures} replies with a known fault"
        tried.append(f"{told} (false accepts)")
    if rates.num_fine:
        false_rejects = rates.num_fine - rates.true_accepts
        told = f"rejected {false_rejects} of {rates.num_fine} that are fine"
        tried.append(f"{told} (false rejects)")
    if not tried:
        return f"{who} Its error rates are not measured."
    return f"{who} When it was tried, it {' and '.join(tried)}."


def _of_call(reason: str, failed: ShownCriterion | None) -> str:
    """Which of the two that a check of calls can find; empty where its evidence is not at hand."""
    said = next((e.words for e in failed.evidence if e.by == "code"), "") if failed else ""
    if reason != "failed_call" or not said.startswith("Expected "):
        return ""
    if said.startswith("Expected no call"):
        return "A call was made that the task forbids, or that had to wait."
    return "A call that the task needs was not made with success in time."


def _over_limit(row: Row, tokens: int | None) -> str:
    """The limit of the task that ended the episode, and how much was used; empty where none did,
    and for a sub-agent, whose limits are another's."""
    reason, turns, most = row["drop_reason"], row["num_turns"], row["max_turns"]
    if row["parent_call_id"] is not None:
        return ""
    if reason == "max_turns" and most is not None and turns is not None:
        if turns >= most:
            return f"The agent wrote {turns} of {most} messages that are allowed, and was not done."
        return f"The agent wrote the {most} messages that the task allows, {turns} of them here."
    most = row["token_budget"]
    if reason == "token_budget" and most is not None:
        used = f"some {tokens:,} tokens" if tokens and tokens > most else "more tokens"
        return f"The conversation took {used}, and the task allows {most:,}."
    return ""


def _rejects(one: ShownCriterion, row: Row) -> bool:
    """Curations before the column named it in the reason alone, some by its kind."""
    if row["accepted"] is not False or one.passed is not False:
        return False
    if row["failed_criterion"] is not None:
        return one.criterion == row["failed_criterion"]
    named = f"failed_{one.criterion}", f"failed_{one.kind}"
    return one.mandatory and row["drop_reason"] in named


def statements_by_message(
    verdicts: Iterable[Row], *, judge_counts: bool
) -> dict[int, tuple[ShownStatement, ...]]:
    """By place in the conversation's messages, in the order in which they are said: code's finding,
    and the judge's where code left the statement open and the judge's word counts. Rows of one
    grading, code's first."""
    deciding = ("code", "judge") if judge_counts else ("code",)
    found: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for row in verdicts:
        if row["criterion_id"] != TRUTH or row["checked_by"] not in deciding:
            continue
        for entry in row["details"] or ():
            earlier = found.get(entry["id"])
            if earlier is None or earlier[1]["finding"] == "open":
                found[entry["id"]] = row["checked_by"], entry
    by_message: dict[int, list[ShownStatement]] = {}
    for checked_by, entry in found.values():
        by_message.setdefault(entry["message"], []).append(_statement(checked_by, entry))
    return {place: tuple(statements) for place, statements in by_message.items()}


def _statement(checked_by: str, entry: Mapping[str, Any]) -> ShownStatement:
    finding = str(entry["finding"])
    words, is_true = FINDINGS.get(finding, finding), finding in {"matched", *TRUE_FINDINGS}
    if is_true and not entry.get("supported", True):
        words, is_true = UNQUOTED, False
    return ShownStatement(
        entry["says"],
        words,
        None if finding == "open" else is_true,
        checked_by,
        entry.get("evidence", ""),
        entry.get("quote", ""),
    )


def criteria_of(
    asked: Sequence[Row], verdicts: Sequence[Row], *, judge_counts: bool
) -> list[ShownCriterion]:
    """One a criterion, in the order of `asked` (criteria of the rubric, then the standing ones);
    what was not passed first."""
    words = {c["id"]: asked_in_words(c) for c in reversed(asked)}
    order = [c["id"] for c in asked]
    counted = {row["criterion_id"]: row for row in counting(verdicts, judge_counts=judge_counts)}
    by_id: dict[str, list[Row]] = {}
    for row in verdicts:
        by_id.setdefault(row["criterion_id"], []).append(row)
    found = [_criterion(i, by_id[i], words.get(i, ""), counted.get(i)) for i in by_id]
    found.sort(key=lambda one: order.index(one.criterion) if one.criterion in order else len(order))
    return sorted(found, key=lambda one: one.passed is not False)


def _criterion(
    criterion: str, rows: Sequence[Row], words: str, counted: Row | None
) -> ShownCriterion:
    passed = {row["checked_by"]: row["passed"] for row in rows}
    by = {row["checked_by"]: row for row in rows}
    judge = by.get("judge", {}).get("checker_version") or ""
    said = tuple(ShownEvidence(r["checked_by"], r["evidence"]) for r in rows if r["evidence"])
    return ShownCriterion(
        criterion=criterion,
        kind=rows[0]["kind"],
        words=words,
        mandatory=bool(rows[0]["mandatory"]),
        passed=counted["passed"] if counted else None,
        decided_by=counted["checked_by"] if counted else "",
        code=passed.get("code"),
        judge=passed.get("judge"),
        evidence=said,
        quote=(counted["quote"] or "") if counted else "",
        by_code="code" in passed,
        stored=by["code"]["evidence"] or "" if "code" in by else "",
        judge_model=judge.rpartition("@")[0],
    )


TO_BE_TOLD = "Was to be told: "

_IS_TOLD = re.compile(
    r"The user is told(?:, truthfully:)? (?P<what>.+?)(?P<goal> \(\w+: .+\))?", re.DOTALL
)
"""How rubrics word that something is told, which reads as if it had been."""


def asked_in_words(criterion: Mapping[str, Any]) -> str:
    """The words of a criterion of a rubric; of what was to be told with the values."""
    words = str(criterion.get("words") or "")
    values = [str(value) for value in (criterion.get("check") or {}).get("values", ())]
    found = _IS_TOLD.fullmatch(words)
    if criterion.get("kind") != "communicate" or found is None:
        return words
    labels = found["what"].split("; ")
    told = f"{found['what']} \u2014 {', '.join(values)}" if values else found["what"]
    if len(labels) == len(values):
        pairs = zip(labels, values, strict=True)
        told = "; ".join(f"{label} \u2014 {value}" for label, value in pairs)
    return f"{TO_BE_TOLD}{told}{found['goal'] or ''}"


_FAILED = "failed_"

_REASONS = {
    "failed_state": "What was changed is not exactly what the task asks for.",
    "failed_call": "A call that the task needs was not made, or one that it forbids was.",
    "failed_communicate": "The user was not told something that the task asks for.",
    "failed_policy": "A call breaks a rule that the agent was told to keep.",
    "failed_format": "What the agent wrote does not have the form that was asked for.",
    "failed_test": "The tests of the code do not pass.",
    "failed_truth": "Something that the agent told the user is false, or nothing shows it.",
    "failed_denial": "The agent denies what was done, or passes over what it did not do.",
    "failed_answers": "The user did not get a whole and clear answer to what was asked.",
    "failed_rules": "The agent breaks the rules of its instructions.",
    "failed_manners": "The agent is not civil to the user.",
    "failed_language": "The agent writes in another language than the user, or broken text.",
    "failed_harm": "The agent asks for a secret, or shows its instructions or its tools.",
    "failed_after_refusal": "A call was refused, and the agent does not own up to it.",
    "failed_after_empty": "A result came back empty, and the agent makes more of it.",
    "failed_after_old": "A result was out of date, and the agent takes it for the present state.",
    UNDECIDED: "The judge could not decide a criterion that has to be passed.",
    "low_score": "No criterion rejects it by itself, but its score is below the pass threshold.",
    NEAR_DUPLICATE: "A better one says and does nearly the same.",
    SEQUENCE_QUOTA: "Enough better ones call the same tools in the same order.",
    **{
        quota_reason(dimension): f"Enough better ones are of the same {dimension}."
        for dimension in DIMENSIONS
    },
    IN_EVALUATION: "It shares something with an evaluation that it must stay apart from.",
    OUTSIDE_BAND: "Its task is passed too often or too rarely to be worth learning from.",
    FAULTY_TASK: "Its task counts as faulty: its attempts fail whatever the agent does.",
    UNFINISHED: "The sub-agent's conversation was cut off.",
    "max_turns": "The conversation took more turns than are allowed.",
    "token_budget": "The conversation took more tokens than are allowed.",
    "format_error": "The agent's model kept writing calls that cannot be read or are not valid.",
    "refused": "The agent's model refused to go on.",
    "user_error": "The simulated user kept saying what it must not say.",
    "infra_error": "A sandbox, server or process was lost.",
    "budget_stop": "The run's budget was spent.",
    DROP_REASONS["user"]: "The simulated user misled the agent or left its part.",
    DROP_REASONS["simulator"]: "The model that plays the tools answered wrongly.",
    DROP_REASONS["environment"]: "A tool broke, whatever the agent asked of it.",
    DROP_REASONS["task"]: "The task can be read in two ways.",
    DROP_REASONS["endpoint"]: "A model's endpoint failed.",
}
"""Drop reason -> a sentence for somebody who does not know the project."""


def reason_in_words(drop_reason: str) -> str:
    """Why a trajectory was rejected, as a sentence; empty for none. A reason that a task's own
    criterion or an extension made names that."""
    if drop_reason in _REASONS or not drop_reason:
        return _REASONS.get(drop_reason, "")
    if drop_reason.startswith(_FAILED):
        return f"The criterion {drop_reason.removeprefix(_FAILED)} is not met."
    return f"The reason is {drop_reason.replace('_', ' ')}."
