"""What verdicts decide: whether a trajectory is accepted, by whose word, and what it failed.

The rule reads rows of `verdicts` alone, so every grading, an older one too, is decided alike. Of a
criterion code's verdict counts where code has one, and the judge's elsewhere.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from records.config import Config
from records.tables.schemas import Row
from synth.rubrics.criteria import JUDGED
from synth.rubrics.standing import RANKING, USER_PART

DecidedBy = Literal["code", "code_and_judge"]
"""Whose verdicts an acceptance rests on. `code`: the judge's word did not count."""

UNDECIDED = "undecided"
"""The drop reason where a judge was asked and left open what has to be passed."""


class DecisionConfig(Config):
    """How verdicts become a decision."""

    pass_threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    """Weighted share of the criteria from which a trajectory is accepted; None: what its rubric
    says."""
    scored_only: tuple[str, ...] = ()
    """Kinds of criteria, or ids, whose mandatory criteria are scored and reject nothing."""

    def rejects(self, row: Row) -> bool:
        """Whether the verdict has to be passed."""
        spared = row["kind"] in self.scored_only or row["criterion_id"] in self.scored_only
        return row["mandatory"] and not spared


class RowDecision(NamedTuple):
    accepted: bool
    score: float
    """Weighted mean of the verdicts that count, in [0, 1]: what ranks."""
    failed: Row | None
    """The verdict that rejects: the first mandatory one that is not passed. None where all are
    passed; then one may be undecided, or the score too low."""
    lacking: Row | None = None
    """Where the score alone rejects, the verdict that takes most from it."""
    undecided: Row | None = None
    """Where nothing fails, the first mandatory verdict that the judge was asked for and left open:
    what nobody passed is not accepted."""

    @property
    def named(self) -> Row | None:
        """The verdict that a rejection names."""
        return self.failed or self.undecided or self.lacking


def counting(verdicts: Iterable[Row], *, judge_counts: bool = True) -> list[Row]:
    """The verdict that counts on each criterion, in the order of the rows. A criterion that only
    the judge decides is left out where its word does not count."""
    chosen: dict[str, Row] = {}
    for row in verdicts:
        by_code = row["checked_by"] == "code"
        if row["passed"] is None or not (
            by_code or (row["checked_by"] == "judge" and judge_counts)
        ):
            continue
        earlier = chosen.get(row["criterion_id"])
        if earlier is None or (by_code and earlier["checked_by"] != "code"):
            chosen[row["criterion_id"]] = row
    return list(chosen.values())


def deciding(rows: Iterable[Row]) -> list[Row]:
    """Those that can reject, by themselves or by the threshold: all but what only ranks."""
    return [row for row in rows if row["mandatory"] or row["criterion_id"] not in RANKING]


def _share(rows: Sequence[Row]) -> float:
    total = sum(row["weight"] for row in rows)
    return sum(row["weight"] * row["score"] for row in rows) / total if total else 0.0


def decide_rows(
    verdicts: Sequence[Row],
    *,
    pass_threshold: float,
    config: DecisionConfig,
    judge_counts: bool = True,
) -> RowDecision:
    """`pass_threshold`: of the task's rubric, where the config gives none."""
    counted = counting(verdicts, judge_counts=judge_counts)
    rows = deciding(counted)
    share = _share(counted)
    failed = next((row for row in rows if config.rejects(row) and row["score"] < 1.0), None)
    if failed is not None:
        return RowDecision(False, share, failed)
    if judge_counts and (undecided := _left_open(verdicts, counted, config)) is not None:
        return RowDecision(False, share, None, undecided=undecided)
    threshold = pass_threshold if config.pass_threshold is None else config.pass_threshold
    if rows and _share(rows) >= threshold:
        return RowDecision(True, share, None)
    below = (row for row in rows if row["score"] < 1.0)
    lacking = max(below, key=lambda row: row["weight"] * (1.0 - row["score"]), default=None)
    return RowDecision(False, share, None, lacking)


def _left_open(
    verdicts: Iterable[Row], counted: Iterable[Row], config: DecisionConfig
) -> Row | None:
    """The user's part is no work of the agent: nobody has to show that it is met."""
    settled = {USER_PART.id, *(row["criterion_id"] for row in counted)}
    left = (
        row
        for row in verdicts
        if row["checked_by"] == "judge" and row["passed"] is None and config.rejects(row)
    )
    return next((row for row in left if row["criterion_id"] not in settled), None)


def reason_of(decision: RowDecision) -> str | None:
    """The drop reason: the criterion where the judge's kind failed, else the kind."""
    if decision.failed is not None:
        row = decision.failed
        return f"failed_{row['criterion_id'] if row['kind'] == JUDGED else row['kind']}"
    if decision.undecided is not None:
        return UNDECIDED
    return None if decision.accepted else "low_score"
