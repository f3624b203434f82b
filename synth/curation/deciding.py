"""Which graded trajectories are kept for training, and why the rest is not.

A barrier: it looks at the whole committed set, sorted by id, so that quotas and duplicates do not
depend on the order in which trajectories were made. Pure: candidates in, rows out. Errors and
recovery are no reason to drop anything.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from records.digest import digest
from records.tables.schemas import Row
from synth.curation.candidates import CurationCandidate
from synth.curation.quotas import SEQUENCE_QUOTA, over_sequences, over_shares, quota_reason
from synth.curation.settings.config import DIMENSIONS, CurationConfig
from synth.curation.turns import as_json
from synth.episode.environment import OUTSIDE
from synth.judging.decision import DecisionConfig

STAGE_VERSION = 9
"""Raised when the same graded set would be curated otherwise."""

_IN_DIGESTS: dict[str | None, str] = {"below_minimum": "below_floor"}
"""Judge status -> what it was called when the first ids were made of it: they stay as they are."""

OUTSIDE_BAND = "outside_band"
"""Drop reason of an attempt at a task that is passed too often, or too seldom."""

FAULTY_TASK = "faulty_task"
"""Drop reason of an attempt at a task that nobody passed, and not through the agent."""

IN_EVALUATION = "in_evaluation"
"""Drop reason of what shares something with an evaluation, whatever else speaks against it: neither
side of a preference pair may come from one."""

NEAR_DUPLICATE = "near_duplicate"
"""Drop reason of what a better trajectory says and does already."""

PASSED_GRADING = (
    *(NEAR_DUPLICATE, SEQUENCE_QUOTA, OUTSIDE_BAND),
    *(quota_reason(dimension) for dimension in DIMENSIONS),
)
"""Drop reasons of attempts that grading accepts: nothing speaks against one by itself."""

SimilarPairs = Callable[[Sequence[CurationCandidate]], Mapping[str, str]]
"""Given candidates, the best first: the id of one that repeats another -> the better one's."""


def no_pairs(ranked: Sequence[CurationCandidate]) -> dict[str, str]:
    return {}


class CurationRules(NamedTuple):
    """What a decision is made by."""

    grading_id: str
    config: CurationConfig = CurationConfig()
    decision: DecisionConfig = DecisionConfig()
    faulty: Collection[str] = ()
    """Ids of tasks that count as faulty and not as hard."""
    evaluations: str | None = None
    """Version of the evaluations that are looked for, and of how; None for none."""


def curation_id_of(candidates: Iterable[CurationCandidate], rules: CurationRules) -> str:
    """Of what is decided about, and by which rules."""
    looked_at = [
        (c.trajectory_id, c.termination_reason, _IN_DIGESTS.get(c.judge_status, c.judge_status))
        for c in sorted(candidates, key=lambda c: c.trajectory_id)
    ]
    settings = rules.config.identity(), rules.decision.identity()
    known_faulty = [sorted(rules.faulty)] if rules.faulty else []
    known_evaluations = [rules.evaluations] if rules.evaluations else []
    return digest(
        "curation",
        STAGE_VERSION,
        settings,
        rules.grading_id,
        looked_at,
        *known_faulty,
        *known_evaluations,
    )


def decide_all(
    candidates: Iterable[CurationCandidate],
    rules: CurationRules,
    *,
    in_evaluation: Collection[str] = (),
    similar: SimilarPairs = no_pairs,
) -> list[Row]:
    """One `curation` row for each candidate, sorted by id. `in_evaluation`: ids of those that share
    something with an evaluation."""
    candidates = sorted(candidates, key=lambda c: c.trajectory_id)
    reasons = {c.trajectory_id: c.drop_reason for c in candidates}
    _apply_band(candidates, reasons, rules)
    reasons |= dict.fromkeys(reasons.keys() & in_evaluation, IN_EVALUATION)
    kept = [c for c in candidates if reasons[c.trajectory_id] is None]
    kept = sorted(kept, key=lambda c: c.rank)
    repeats = _same_words_and_calls(kept)
    kept = [c for c in kept if c.trajectory_id not in repeats]
    repeats |= similar(kept)
    kept = [c for c in kept if c.trajectory_id not in repeats]
    reasons |= dict.fromkeys(repeats, NEAR_DUPLICATE)
    over = over_sequences(kept, rules.config)
    reasons |= dict.fromkeys(over, SEQUENCE_QUOTA)
    kept = [c for c in kept if c.trajectory_id not in over]
    shares = over_shares(kept, rules.config)
    reasons |= {i: quota_reason(dimension) for i, dimension in shares.items()}
    curation_id = curation_id_of(candidates, rules)
    return [
        {
            "curation_id": curation_id,
            "trajectory_id": c.trajectory_id,
            "grading_id": rules.grading_id,
            "accepted": reasons[c.trajectory_id] is None,
            "drop_reason": reasons[c.trajectory_id],
            "score": c.score,
            "train_turns": c.train_turns,
            "split": c.split,
            "judge_status": c.judge_status,
            "failed_criterion": c.failed_criterion,
            "decided_by": c.decided_by,
            "self_judged": c.self_judged,
            "attributed_to": None if c.trajectory_id in in_evaluation else c.attributed_to,
            "repeats": repeats.get(c.trajectory_id),
            "turn_faults": as_json(c.turn_faults),
        }
        for c in candidates
    ]


def _apply_band(
    candidates: Sequence[CurationCandidate], reasons: dict[str, str | None], rules: CurationRules
) -> None:
    """A faulty task's attempts are no sign of an agent's failure; what passes a task outside the
    band is dropped. Attempts that ended outside the agent's reach measure nothing, and one attempt
    alone is no rate. A task that another run's agent passed is not faulty."""
    band = rules.config.band
    counted = [c for c in candidates if c.termination_reason not in OUTSIDE]
    attempts = Counter(c.task_id for c in counted)
    passes = Counter(c.task_id for c in counted if c.drop_reason is None)
    for candidate in candidates:
        task_id, trajectory_id = candidate.task_id, candidate.trajectory_id
        if task_id in rules.faulty and not passes[task_id]:
            reasons[trajectory_id] = FAULTY_TASK
        elif band and candidate.drop_reason is None and attempts[task_id] > 1:
            low, high = band
            if not low <= passes[task_id] / attempts[task_id] <= high:
                reasons[trajectory_id] = OUTSIDE_BAND


def _same_words_and_calls(ranked: Iterable[CurationCandidate]) -> dict[str, str]:
    """What repeats a better one: it opens with the same words and calls the same tools. Of the
    tasks on one bug only the one with the best trajectory keeps any, whatever their words."""
    first: dict[tuple[Any, ...], str] = {}
    best_on: dict[str, CurationCandidate] = {}
    repeats: dict[str, str] = {}
    for candidate in ranked:
        key = (candidate.bug_id, candidate.sequence, candidate.opening)
        best = candidate
        if candidate.bug_id:
            best = best_on.setdefault(candidate.bug_id, candidate)
        if key in first:
            repeats[candidate.trajectory_id] = first[key]
        elif best.task_id != candidate.task_id:
            repeats[candidate.trajectory_id] = best.trajectory_id
        else:
            first[key] = candidate.trajectory_id
    return repeats
