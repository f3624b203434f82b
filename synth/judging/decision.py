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
from synth.rubrics.standing import RANKING

DecidedBy = Literal["code", "code_and_judge"]
"""Whose verdicts an acceptance rests on. `code`: the judge's word did not count."""


class DecisionConfig(Config):
    """How verdicts become a decision."""

    pass_threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    """Weighted share of the criteria from which a trajectory is accepted; None: what its rubric
    says."""
    scored_only: tuple[str, ...] = ()
    """Kinds of criteria, or ids, whose mandatory criteria are scored and reject nothing."""


class RowDecision(NamedTuple):
    accepted: bool
    score: float
    """Weighted mean of the verdicts that count, in [0, 1]: what ranks."""
    failed: Row | None
    """The verdict that rejects: the first mandatory one that is not passed. None where all are
    passed; then the score may be too low."""
    lacking: Row | None = None
    """Where the score alone rejects, the verdict that takes most from it."""

    @property
    def named(self) -> Row | None:
        """The verdict that a rejection names."""
        return self.failed or self.lacking


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
    stands_aside = set(config.scored_only)
    failed = next(
        (
            row
            for row in rows
            if row["mandatory"]
            and row["score"] < 1.0
            and stands_aside.isdisjoint((row["kind"], row["criterion_id"]))
        ),
        None,
    )
    threshold = pass_threshold if config.pass_threshold is None else config.pass_threshold
    accepted = failed is None and bool(rows) and _share(rows) >= threshold
    lacking = None
    if not accepted and failed is None:
        below = (row for row in rows if row["score"] < 1.0)
        lacking = max(below, key=lambda row: row["weight"] * (1.0 - row["score"]), default=None)
    return RowDecision(accepted, _share(counted), failed, lacking)


def reason_of(decision: RowDecision) -> str | None:
    """The drop reason: the criterion where the judge's kind failed, else the kind."""
    if decision.failed is not None:
        row = decision.failed
        return f"failed_{row['criterion_id'] if row['kind'] == JUDGED else row['kind']}"
    return None if decision.accepted else "low_score"
