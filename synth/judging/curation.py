"""Which graded trajectories are kept for training, and which of their messages carry loss.

A barrier: it looks at the whole committed set, sorted by id, so that quotas and duplicates do not
depend on the order in which trajectories were made. Pure: rows in, rows out. Errors and recovery
are no reason to drop anything.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import Field, model_validator

from records.config import Config
from records.digest import digest
from records.tables.schemas import Row
from synth.episode.environment import OUTSIDE
from synth.episode.sessions import conversations_in
from synth.episode.tools.code_environments import bug_of
from synth.judging.attribution import DROP_REASONS, Party, RejectedEpisode, attributed_to
from synth.judging.decision import (
    DecidedBy,
    DecisionConfig,
    counting,
    decide_rows,
    deciding,
    reason_of,
)
from synth.judging.judge_rates import JudgeStatus
from synth.rubrics.reading.messages import text_of
from synth.rubrics.reward import rubric_of

STAGE_VERSION = 8
"""Raised when the same graded set would be curated otherwise."""

SPOILED = ("infra_error", "user_error", "format_error", "max_turns", "token_budget")
"""Ends that leave a conversation unfinished; they are the reason, whatever else failed."""

UNFINISHED = "sub_agent_unfinished"
"""Drop reason of a sub-agent's conversation that a limit cut off in an episode that is kept."""

_IN_DIGESTS: dict[str | None, str] = {"below_minimum": "below_floor"}
"""Judge status -> what it was called when the first ids were made of it: they stay as they are."""


PassRate = Annotated[float, Field(ge=0.0, le=1.0)]

OUTSIDE_BAND = "outside_band"
"""Drop reason of an attempt at a task that is passed too often, or too seldom."""

FAULTY_TASK = "faulty_task"
"""Drop reason of an attempt at a task that nobody passed, and not through the agent."""


class CurationConfig(Config):
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType({"band": None})

    sequence_share: float = Field(default=0.05, gt=0.0, le=1.0)
    """Largest share of the accepted trajectories that call the same tools in the same order."""

    sequence_min: int = Field(default=3, ge=1)
    """So many of one sequence are kept however small the set: there a share means little."""

    band: tuple[PassRate, PassRate] | None = None
    """Lowest and highest pass rate of the tasks whose trajectories are kept, such as [0.1, 0.9].
    None: all, whatever their pass rates."""

    @model_validator(mode="after")
    def _band_is_not_empty(self) -> Self:
        if self.band is not None and self.band[0] > self.band[1]:
            raise ValueError(f"band is [lowest, highest], got {list(self.band)}")
        return self


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
    """Of the first conversation: the row's own."""
    judge_status: JudgeStatus | None
    """Of the judge that decided what code leaves open; None where nothing was asked of it."""
    failed_criterion: str | None
    decided_by: DecidedBy
    self_judged: bool
    """Whether the judge is the model whose words it judged, or whose failure it named the cause of.
    False where its word does not count."""
    attributed_to: Party | None
    """Whom its failure goes back to; None where it did not fail, also where others of its kind are
    kept in its place."""

    @property
    def rank(self) -> tuple[float, str]:
        """Best first; the id, a digest, decides between equals."""
        return -self.score, self.trajectory_id


def decide_all(
    candidates: Iterable[CurationCandidate],
    *,
    grading_id: str,
    config: CurationConfig,
    decision_config: DecisionConfig = DecisionConfig(),
    faulty: Collection[str] = (),
) -> list[Row]:
    """One `curation` row for each candidate, sorted by id. `faulty`: ids of tasks that count as
    faulty and not as hard."""
    candidates = sorted(candidates, key=lambda c: c.trajectory_id)
    reasons = {c.trajectory_id: c.drop_reason for c in candidates}
    _apply_band(candidates, reasons, config, faulty)
    kept = [c for c in candidates if reasons[c.trajectory_id] is None]
    kept = sorted(kept, key=lambda c: c.rank)
    kept = _without_duplicates(kept, reasons)
    _apply_quota(kept, reasons, config)
    looked_at = [
        (c.trajectory_id, c.termination_reason, _IN_DIGESTS.get(c.judge_status, c.judge_status))
        for c in candidates
    ]
    rules = config.identity(), decision_config.identity()
    known_faulty = [sorted(faulty)] if faulty else []
    curation_id = digest("curation", STAGE_VERSION, rules, grading_id, looked_at, *known_faulty)
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
            "failed_criterion": c.failed_criterion,
            "decided_by": c.decided_by,
            "self_judged": c.self_judged,
            "attributed_to": c.attributed_to,
        }
        for c in candidates
    ]


class FollowingTurns(NamedTuple):
    """A sub-agent's conversation or a later one with the user, which is kept or dropped with its
    episode."""

    trajectory_id: str
    episode_id: str
    is_finished: bool
    """It came to its own end; a sub-agent's that was cut off teaches nothing."""
    train_turns: list[bool]

    @classmethod
    def of(cls, trajectory: Row, calls: Sequence[Row]) -> "FollowingTurns":
        """`calls`: rows of `tool_calls` of its episode."""
        with_user = trajectory["parent_call_id"] is None
        return cls(
            trajectory["trajectory_id"],
            trajectory["episode_id"],
            with_user or trajectory["termination_reason"] == "agent_done",
            train_turns(trajectory["messages"], calls),
        )


def following(decided: Iterable[Row], conversations: Iterable[FollowingTurns]) -> list[Row]:
    """`curation` rows of the conversations whose episodes are among `decided`: theirs but for the
    loss flags, and dropped where the conversation was cut off."""
    by_episode = {row["trajectory_id"]: row for row in decided}
    rows = []
    for conversation in sorted(conversations):
        episode = by_episode.get(conversation.episode_id)
        if episode is not None:
            cut_off = None if conversation.is_finished else UNFINISHED
            reason = episode["drop_reason"] or cut_off
            own = {"accepted": reason is None, "drop_reason": reason}
            own |= {"train_turns": conversation.train_turns}
            rows.append(episode | own | {"trajectory_id": conversation.trajectory_id})
    return rows


def candidate_of(
    trajectory: Row,
    calls: Iterable[Row],
    verdicts: Sequence[Row],
    task: Row,
    status: JudgeStatus = "unmeasured",
    decision_config: DecisionConfig = DecisionConfig(),
    *,
    simulations: Sequence[Row] = (),
    judge_may_decide: bool = True,
    self_judged: bool = False,
) -> CurationCandidate | None:
    """The decision over the verdicts, the first reason against the trajectory, and whom that goes
    back to; None while it has yet to be judged.

    Where the judge's `status` is below the minimum quality, or it may not decide here, its word
    does not count: code's verdicts alone decide, and the row says so.
    """
    if not verdicts and trajectory["termination_reason"] not in OUTSIDE:
        return None
    by_judge = [row for row in verdicts if row["checked_by"] == "judge"]
    is_heard = status != "below_minimum" and judge_may_decide
    judge_counts = bool(by_judge) and is_heard
    rubric = rubric_of(task)
    decision = decide_rows(
        verdicts,
        pass_threshold=rubric.pass_threshold,
        config=decision_config,
        judge_counts=judge_counts,
    )
    ordered = sorted(calls, key=lambda call: call["call_index"])
    counted = counting(verdicts, judge_counts=judge_counts)
    lacking = [row for row in deciding(counted) if not row["passed"]]
    failed = [decision.failed] if decision.failed else lacking
    reason, party = _fate(
        RejectedEpisode(
            trajectory,
            ordered,
            simulations,
            rubric,
            failed=[row if is_heard else row | {"cause": None} for row in failed],
            rejecting=[
                r for r in deciding(counted) if decision_config.rejects(r) and not r["passed"]
            ],
            by_judge=by_judge if judge_counts else (),
            is_undecided=decision.undecided is not None,
        ),
        reason_of(decision),
    )
    return CurationCandidate(
        trajectory_id=trajectory["trajectory_id"],
        task_id=task["task_id"],
        bug_id=bug_of(task),
        split=trajectory["split"],
        termination_reason=trajectory["termination_reason"],
        score=decision.score,
        drop_reason=reason,
        sequence=tuple(call["name"] for call in ordered),
        opening=first_words(trajectory["messages"]),
        train_turns=train_turns(conversations_in(trajectory["messages"])[0], ordered),
        judge_status=status if by_judge else None,
        failed_criterion=decision.named["criterion_id"] if decision.named else None,
        decided_by="code_and_judge" if judge_counts else "code",
        self_judged=self_judged and is_heard,
        attributed_to=party,
    )


def _fate(episode: RejectedEpisode, reason: str | None) -> tuple[str | None, Party | None]:
    """Drop reason and whom it goes back to, where the verdicts give `reason`; None for what is
    accepted. What others made fail has a reason of its own."""
    end = episode.trajectory["termination_reason"]
    if reason is None and end not in SPOILED:
        return None, None
    party = attributed_to(episode)
    return (end if end in SPOILED else DROP_REASONS.get(party, reason)), party


def _apply_band(
    candidates: Sequence[CurationCandidate],
    reasons: dict[str, str | None],
    config: CurationConfig,
    faulty: Collection[str],
) -> None:
    """A faulty task's attempts are no sign of an agent's failure; what passes a task outside the
    band is dropped. Attempts that ended outside the agent's reach measure nothing, and one attempt
    alone is no rate. A task that another run's agent passed is not faulty."""
    counted = [c for c in candidates if c.termination_reason not in OUTSIDE]
    attempts = Counter(c.task_id for c in counted)
    passes = Counter(c.task_id for c in counted if c.drop_reason is None)
    for candidate in candidates:
        task_id, trajectory_id = candidate.task_id, candidate.trajectory_id
        if task_id in faulty and not passes[task_id]:
            reasons[trajectory_id] = FAULTY_TASK
        elif config.band and candidate.drop_reason is None and attempts[task_id] > 1:
            low, high = config.band
            if not low <= passes[task_id] / attempts[task_id] <= high:
                reasons[trajectory_id] = OUTSIDE_BAND


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
    text = next((text_of(m) for m in messages if m["role"] == "user"), "")
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
