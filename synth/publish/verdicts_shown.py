"""What was decided about one trajectory, put together to be read in a minute.

On top the decision with the one criterion that rejected, then the agent's statements by the message
in which they stand, then the criteria in short. Texts are as they were written; what shows them
makes them safe (synth.render.foreign_text, autoescape).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from records.tables.schemas import Row
from synth.judging.decision import counting
from synth.judging.judge import TRUE_FINDINGS
from synth.rubrics.standing import TRUTH

_FINDINGS = {
    "matched": "matches the records",
    "contradicted": "contradicted",
    "open": "not decided",
    "shown": "shown",
    "follows": "follows from the rest",
    "no_claim": "no claim",
    "not_shown": "not shown",
}

_DECIDED_BY = {
    "code": "code alone; no judge's word counted",
    "code_and_judge": "code and judge",
    None: "not noted",
}


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
    evidence: tuple[str, ...]
    """Of each checker, with its name."""
    quote: str
    """The words that decide it, as the verdict that counts gives them; may be empty."""


class ShownDecision(NamedTuple):
    accepted: bool | None
    """None: not curated yet."""
    drop_reason: str
    facts: tuple[tuple[str, str], ...]
    """Name and value, short: whose word it was, what that is worth, whose failure it is."""
    failed: ShownCriterion | None
    """The criterion that was not passed, as the curation names it."""


def decision_on(row: Row, criteria: Sequence[ShownCriterion], threshold: float) -> ShownDecision:
    """`row`: of the view `trajectories`; `threshold`: the score from which it is accepted."""
    facts = [("decided by", _DECIDED_BY[row["decided_by"]])]
    if row["judge_status"]:
        facts.append(("judge status", row["judge_status"].replace("_", " ")))
    if row["self_judged"]:
        facts.append(("self-judged", "the agent's own model is the judge"))
    if row["attributed_to"]:
        party = row["attributed_to"]
        facts.append(("failure of", party if party == "undetermined" else f"the {party}"))
    if row["score"] is not None:
        facts.append(("score", f"{row['score']:.2f}, accepted from {threshold:.2f}"))
    reason = row["drop_reason"] or ""
    failed = next((one for one in criteria if _rejects(one, row)), None)
    return ShownDecision(row["accepted"], reason, tuple(facts), failed)


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
    words, is_true = _FINDINGS.get(finding, finding), finding in {"matched", *TRUE_FINDINGS}
    if is_true and not entry.get("supported", True):
        words, is_true = "its quote stands nowhere", False
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
    words = {c["id"]: c.get("words", "") for c in reversed(asked)}
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
    said = tuple(f"{r['checked_by']}: {r['evidence']}" for r in rows if r["evidence"])
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
    )
