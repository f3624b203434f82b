"""What curation needs to know of a trajectory: what its verdicts come to, and what it is like.

Pure: rows in, candidates out.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from records.tables.schemas import Row
from synth.curation.settings.config import AgentTurnFault
from synth.curation.turns import (
    BEFORE,
    FaultyTurn,
    as_json,
    false_statements,
    faulty_turns,
    train_turns,
)
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

SPOILED = ("infra_error", "user_error", "format_error", "max_turns", "token_budget")
"""Ends that leave a conversation unfinished; they are the reason, whatever else failed."""

UNFINISHED = "sub_agent_unfinished"
"""Drop reason of a sub-agent's conversation that a limit cut off in an episode that is kept."""


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
    opening: bytes
    """Digest of `first_words`, of which nothing is asked but whether they are the same."""
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
    domain: str | None = None
    """Name of the domain, or of the MCP server."""
    complexity: str | None = None
    variant: str | None = None
    outcome: str | None = None
    executed_by: tuple[str, ...] = ()
    turn_faults: tuple[FaultyTurn, ...] = ()
    """Of the first conversation, as `train_turns`."""

    @property
    def rank(self) -> tuple[float, str]:
        """Best first; the id, a digest, decides between equals."""
        return -self.score, self.trajectory_id


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
    domain: str | None = None,
    no_loss: Collection[AgentTurnFault] = BEFORE,
) -> CurationCandidate | None:
    """The decision over the verdicts, the first reason against the trajectory, and whom that goes
    back to; None while it has yet to be judged.

    Where the judge's `status` is below the minimum quality, or it may not decide here, its word
    does not count: code's verdicts alone decide, and the row says so. `no_loss`: as
    `CurationConfig` has it.
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
    first = conversations_in(trajectory["messages"])[0]
    false_at = false_statements(verdicts, judge_counts=judge_counts)
    faulty = faulty_turns(first, ordered, no_loss, false_at)
    return CurationCandidate(
        trajectory_id=trajectory["trajectory_id"],
        task_id=task["task_id"],
        bug_id=bug_of(task),
        split=trajectory["split"],
        termination_reason=trajectory["termination_reason"],
        score=decision.score,
        drop_reason=reason,
        sequence=tuple(call["name"] for call in ordered),
        opening=_digest_of(first_words(trajectory["messages"])),
        train_turns=train_turns(first, faulty),
        judge_status=status if by_judge else None,
        failed_criterion=decision.named["criterion_id"] if decision.named else None,
        decided_by="code_and_judge" if judge_counts else "code",
        self_judged=self_judged and is_heard,
        attributed_to=party,
        domain=domain or trajectory.get("server"),
        complexity=task.get("complexity"),
        variant=trajectory.get("variant"),
        outcome=trajectory.get("outcome"),
        executed_by=tuple(trajectory.get("executed_by") or ()),
        turn_faults=faulty,
    )


def _fate(episode: RejectedEpisode, reason: str | None) -> tuple[str | None, Party | None]:
    """Drop reason and whom it goes back to, where the verdicts give `reason`; None for what is
    accepted. What others made fail has a reason of its own."""
    end = episode.trajectory["termination_reason"]
    if reason is None and end not in SPOILED:
        return None, None
    party = attributed_to(episode)
    return (end if end in SPOILED else DROP_REASONS.get(party, reason)), party


def first_words(messages: Sequence[Mapping[str, Any]]) -> str:
    """The user's first message without case, punctuation and spacing."""
    text = next((text_of(m) for m in messages if m["role"] == "user"), "")
    return " ".join(re.findall(r"\w+", text.casefold()))


def _digest_of(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest()


class SharedValues:
    """Equal values of candidates as one object: of a hundred thousand most say the same, and what
    is read of each would take two thousand bytes."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Any], Any] = {}

    def of(self, candidate: CurationCandidate) -> CurationCandidate:
        return candidate._replace(**{name: self._first(name, candidate) for name in _SHARED})

    def _first(self, name: str, candidate: CurationCandidate) -> Any:
        value = getattr(candidate, name)
        key = tuple(value) if isinstance(value, list) else value
        return self._known.setdefault((name, key), value)


_SHARED = (
    *("split", "termination_reason", "drop_reason", "sequence", "train_turns"),
    *("failed_criterion", "domain", "complexity", "variant", "outcome", "executed_by"),
)


class FollowingTurns(NamedTuple):
    """A sub-agent's conversation or a later one with the user, which is kept or dropped with its
    episode."""

    trajectory_id: str
    episode_id: str
    is_finished: bool
    """It came to its own end; a sub-agent's that was cut off teaches nothing."""
    train_turns: list[bool]
    turn_faults: tuple[FaultyTurn, ...] = ()

    @classmethod
    def of(
        cls,
        trajectory: Row,
        calls: Sequence[Row],
        *,
        no_loss: Collection[AgentTurnFault] = BEFORE,
        false_at: Collection[int] = (),
    ) -> "FollowingTurns":
        """`calls`: rows of `tool_calls` of its episode. `false_at`: its messages with a false
        statement."""
        with_user = trajectory["parent_call_id"] is None
        messages = trajectory["messages"]
        ordered = sorted(calls, key=lambda call: call["call_index"])
        faulty = faulty_turns(messages, ordered, no_loss, false_at)
        return cls(
            trajectory["trajectory_id"],
            trajectory["episode_id"],
            with_user or trajectory["termination_reason"] == "agent_done",
            train_turns(messages, faulty),
            faulty,
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
            own |= {"turn_faults": as_json(conversation.turn_faults), "repeats": None}
            rows.append(episode | own | {"trajectory_id": conversation.trajectory_id})
    return rows
