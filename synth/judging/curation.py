"""Which graded trajectories are kept for training, and which of their messages carry loss.

A barrier: it looks at the whole committed set, sorted by id, so that quotas and duplicates do not
depend on the order in which trajectories were made. Pure: rows in, rows out. Errors and recovery
are no reason to drop anything.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.tables.schemas import Row
from synth.episode.environment import OUTSIDE
from synth.episode.tools.code_environments import bug_of
from synth.judging.grading import UNSUPPORTED_CLAIMS, scores_of
from synth.judging.judge_rates import JudgeStatus
from synth.rubrics.criteria import JUDGED, decide
from synth.rubrics.reward import rubric_of

STAGE_VERSION = 3
"""Raised when the same graded set would be curated otherwise."""

SPOILED = ("infra_error", "user_error", "format_error", "max_turns", "token_budget")
"""Ends that leave a conversation unfinished; they are the reason, whatever else failed."""

_IN_DIGESTS: dict[str | None, str] = {"below_minimum": "below_floor"}
"""Judge status -> what it was called when the first ids were made of it: they stay as they are."""


class CurationConfig(Config):
    sequence_share: float = Field(default=0.05, gt=0.0, le=1.0)
    """Largest share of the accepted trajectories that call the same tools in the same order."""

    sequence_min: int = Field(default=3, ge=1)
    """So many of one sequence are kept however small the set: there a share means little."""


class CurationCandidate(NamedTuple):
    """What the decision needs to know of a trajectory; small, since all are compared at once."""

    trajectory_id: str
    task_id: str
    bug_id: str | None
    """Of a task on code; None for every other."""
    split: str
    termination_reason: str
    score: float
    drop_reason: str | None
    sequence: tuple[str, ...]
    """The tools called, in call order."""
    opening: str
    train_turns: list[bool]
    judge_status: JudgeStatus | None
    """Of the kind that only the judge decides; None where the rubric asks nothing of it."""

    @property
    def rank(self) -> tuple[float, str]:
        """Best first; the id, a digest, decides between equals."""
        return -self.score, self.trajectory_id


def decide_all(
    candidates: Iterable[CurationCandidate], *, grading_id: str, config: CurationConfig
) -> list[Row]:
    """One `curation` row for each candidate, sorted by id."""
    candidates = sorted(candidates, key=lambda c: c.trajectory_id)
    reasons = {c.trajectory_id: c.drop_reason for c in candidates}
    kept = sorted((c for c in candidates if c.drop_reason is None), key=lambda c: c.rank)
    kept = _without_duplicates(kept, reasons)
    _apply_quota(kept, reasons, config)
    looked_at = [
        (c.trajectory_id, c.termination_reason, _IN_DIGESTS.get(c.judge_status, c.judge_status))
        for c in candidates
    ]
    curation_id = digest("curation", STAGE_VERSION, config.identity(), grading_id, looked_at)
    return [
        {
            "curation_id": curation_id,
            "trajectory_id": c.trajectory_id,
            "grading_id": grading_id,
            "accepted": reasons[c.trajectory_id] is None,
            "drop_reason": reasons[c.trajectory_id],
            "score": c.score,
            "train_turns": c.train_turns,
            "split": c.split,
            "judge_status": c.judge_status,
        }
        for c in candidates
    ]


def candidate_of(
    trajectory: Row,
    calls: Iterable[Row],
    verdicts: Sequence[Row],
    task: Row,
    status: JudgeStatus = "unmeasured",
) -> CurationCandidate | None:
    """The rubric's rule over the verdicts, and the first reason against the trajectory; None while
    it has yet to be judged.

    Where the judge's `status` is below the minimum quality, what only it passed counts as failed;
    whoever would be accepted otherwise is dropped as `judge_below_minimum`.
    """
    if not verdicts and trajectory["termination_reason"] not in OUTSIDE:
        return None
    rubric = rubric_of(task)
    scores = scores_of(verdicts)
    judged = [c.id for c in rubric.criteria if c.kind == JUDGED and c.id in scores]
    decision = by_its_word = decide(rubric, scores)
    if status == "below_minimum":
        decision = decide(rubric, scores | dict.fromkeys(judged, 0.0))
    claims_unsupported = any(
        v["criterion_id"] == UNSUPPORTED_CLAIMS and not v["passed"] for v in verdicts
    )
    reason = None
    if trajectory["termination_reason"] in SPOILED:
        reason = trajectory["termination_reason"]
    elif by_its_word.accepted and not decision.accepted and not claims_unsupported:
        reason = "judge_below_minimum"
    elif decision.failed:
        kinds = {criterion.id: criterion.kind for criterion in rubric.criteria}
        reason = f"failed_{kinds[decision.failed[0]]}"
    elif claims_unsupported:
        reason = f"failed_{UNSUPPORTED_CLAIMS}"
    elif not decision.accepted:
        reason = "low_score"
    ordered = sorted(calls, key=lambda call: call["call_index"])
    return CurationCandidate(
        trajectory_id=trajectory["trajectory_id"],
        task_id=task["task_id"],
        bug_id=bug_of(task),
        split=trajectory["split"],
        termination_reason=trajectory["termination_reason"],
        score=decision.share,
        drop_reason=reason,
        sequence=tuple(call["name"] for call in ordered),
        opening=first_words(trajectory["messages"]),
        train_turns=train_turns(trajectory["messages"], ordered),
        judge_status=status if judged else None,
    )


def _without_duplicates(
    ranked: list[CurationCandidate], reasons: dict[str, str | None]
) -> list[CurationCandidate]:
    """The best of every group that opens with the same words and calls the same tools. Of the
    tasks on one bug only the one with the best trajectory keeps any, whatever their words."""
    seen: set[tuple[Any, ...]] = set()
    task_on: dict[str, str] = {}
    kept = []
    for candidate in ranked:
        key = (candidate.bug_id, candidate.sequence, candidate.opening)
        own = candidate.task_id
        first = task_on.setdefault(candidate.bug_id, own) if candidate.bug_id else own
        if key in seen or own != first:
            reasons[candidate.trajectory_id] = "near_duplicate"
        else:
            seen.add(key)
            kept.append(candidate)
    return kept


def first_words(messages: Sequence[Mapping[str, Any]]) -> str:
    """The user's first message without case, punctuation and spacing."""
    text = next((m["content"] for m in messages if m["role"] == "user"), "")
    return " ".join(re.findall(r"\w+", text.casefold()))


def _apply_quota(
    ranked: list[CurationCandidate], reasons: dict[str, str | None], config: CurationConfig
) -> None:
    groups: defaultdict[tuple[str, ...], list[CurationCandidate]] = defaultdict(list)
    for candidate in ranked:
        groups[candidate.sequence].append(candidate)
    quota = sequence_quota([len(group) for group in groups.values()], config)
    for group in groups.values():
        for candidate in group[quota:]:
            reasons[candidate.trajectory_id] = "sequence_quota"


def sequence_quota(sizes: Sequence[int], config: CurationConfig) -> int:
    """The largest q such that q is at most its share of what q leaves, sum(min(size, q)).

    At least `sequence_min`, since with few sequences no q above 0 satisfies that.
    """
    for quota in range(max(sizes, default=0), config.sequence_min, -1):
        if quota <= config.sequence_share * sum(min(size, quota) for size in sizes):
            return quota
    return config.sequence_min


def train_turns(messages: Sequence[Mapping[str, Any]], calls: Sequence[Row]) -> list[bool]:
    """Loss flag per message: what the agent wrote, unless a call in it was the agent's own mistake.

    An injected error is not: the call that met it was right, and so is the one that follows it.
    """
    mistakes = {c["tool_call_id"] for c in calls if c["is_error"] and not c["injected_outcome"]}
    return [
        m["role"] == "assistant"
        and mistakes.isdisjoint(call["id"] for call in m.get("tool_calls") or ())
        for m in messages
    ]
