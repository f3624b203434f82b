"""Whom a rejected trajectory's failure goes back to: the agent, or somebody around it.

Code tells it from the end of the episode, the errors of calls and the simulator's measured answers;
the judge from what it read (`verdicts.cause`), where its quote stands. Where code rejects what
somebody else may have caused, the judge is asked for the cause alone (`ask_cause`). What nobody
else caused is the agent's, but for what only a judge could have told where none did: that is
undetermined. No cause excuses what only the agent can do: its manners, its language, harm, and the
form of what it writes. The rule reads rows alone, and changes no verdict and no outcome.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from records.errors import ItemError
from records.tables.schemas import Row
from synth.episode.endings import FILTERED
from synth.episode.tools.simulator import SIMULATION_FAILED
from synth.judging.judge import JudgeQuestions, cause_of, cause_schema
from synth.judging.transcript import material_of
from synth.llm.client import LLM
from synth.llm.sending import is_endpoint_failure
from synth.llm.settings.config import RoleConfig
from synth.prompts.templates import render
from synth.rubrics.criteria import ANY_TOOL, CallCheck, CommunicateCheck, Rubric
from synth.rubrics.standing import STANDING_IDS, TRUTH, USER_PART
from synth.rubrics.values import mentions

Party = Literal["agent", "user", "simulator", "environment", "task", "endpoint", "undetermined"]

DROP_REASONS: Mapping[Party, str] = {
    "user": "user_wrong",
    "simulator": "simulator_wrong",
    "environment": "environment_failed",
    "task": "task_unclear",
    "endpoint": "endpoint_failed",
}
"""Why a trajectory is dropped that failed through somebody else."""

BROKEN = frozenset({"internal", "server_ended"})
"""Error codes of calls that failed by what executes them, whatever was asked."""

BY_STATE_OR_VALUES = frozenset({"state", "call", "test", "communicate"})
"""Kinds that a false answer of a tool can make fail."""

BY_WHAT_IS_WANTED = frozenset({"state", "call", "communicate", "policy"})
"""Kinds that a user who misleads the agent, or a wish with two readings, can make fail."""

_EXCUSABLE = frozenset({TRUTH, "answers", "denial", "rules", USER_PART.id})
"""Standing criteria that somebody else's words can make the agent fail."""

PROMPT = "cause"

REASON_CHARS = 400
"""Shown of code's reason why a criterion is not met."""

_LIMITS = frozenset({"format_error", "max_turns", "token_budget"})
"""Ends that are the agent's unless its tools kept it from any other."""


TOLD_BY_END = _LIMITS | {"refused"}
"""Ends of episodes that the agent answers for which say by themselves whose failure it is."""


def is_excusable(row: Row) -> bool:
    """Whether somebody else can have made the agent fail it: the task's own criteria, but not the
    form of what the agent writes, and some of those that always hold."""
    standing = row["criterion_id"] in STANDING_IDS
    return row["criterion_id"] in _EXCUSABLE if standing else row["kind"] != "format"


def may_be_anothers(failed: Iterable[Row]) -> bool:
    """Whether the user or the task may be why one of these verdicts rejects."""
    return any(row["kind"] in BY_WHAT_IS_WANTED for row in failed)


async def ask_cause(
    llm: LLM, asked: JudgeQuestions, failed: Sequence[Row], *, item: str, judge_role: RoleConfig
) -> Row | None:
    """What `failed`, code's verdicts that reject, go back to: a `Cause` by name, and `by`, the
    judge and its prompt. One model of the role is asked. None where it gives no usable answer."""
    material = material_of(asked.messages, asked.calls, asked.tools)
    words = {criterion.id: criterion.words for criterion in asked.criteria}
    shown = [
        {"words": words[row["criterion_id"]], "why": row["evidence"][:REASON_CHARS]}
        for row in failed
    ]
    talk, version = render(PROMPT, **material.shown, user=asked.user, failed=shown)
    model = judge_role.model_of(item, "judge")
    try:
        answer = await llm.playing("judge", model).structured(
            "judge", talk, item=item, step="cause", name="cause", schema=cause_schema()
        )
    except ItemError:  # the rejection stands without it
        return None
    return cause_of(answer, material.said)._asdict() | {"by": f"{model}@{version}"}


@dataclass(frozen=True, slots=True)
class RejectedEpisode:
    """What attribution reads."""

    trajectory: Row
    """The columns `termination_reason`, `error` and `messages` are enough."""
    calls: Sequence[Row]
    """In call order."""
    simulations: Sequence[Row]
    """Rows of the table: how true the simulator's answers were."""
    rubric: Rubric
    failed: Sequence[Row]
    """The verdicts that reject: one, or those that make the score too low. A cause that stands with
    them counts."""
    rejecting: Sequence[Row]
    """Every verdict that would reject by itself."""
    by_judge: Sequence[Row]
    """The judge's verdicts that count."""
    is_undecided: bool = False
    """Whether nothing fails, and the judge left open what has to be passed."""


def attributed_to(episode: RejectedEpisode) -> Party:
    """The first that is found: by the end of the episode, by its calls, by the judge; else the
    agent, or nobody for sure."""
    if (party := _by_end(episode)) is not None:
        return party
    if episode.is_undecided:
        return "undetermined"
    if [row["criterion_id"] for row in episode.failed] == [USER_PART.id]:
        return "user"
    for row in episode.failed:
        if (party := _by_calls(episode, row)) is not None:
            return party
    if not all(map(is_excusable, (*episode.failed, *episode.rejecting))):
        return "agent"
    return _by_judge(episode) or ("undetermined" if _is_untold(episode) else "agent")


def _by_end(episode: RejectedEpisode) -> Party | None:
    match episode.trajectory["termination_reason"]:
        case "user_error":
            return "user"
        case "infra_error":
            error = episode.trajectory.get("error") or ""
            if error.startswith(SIMULATION_FAILED):
                return "simulator"
            return "endpoint" if is_endpoint_failure(error) else "environment"
        case "refused":
            return "agent" if _refused_itself(episode.trajectory["messages"]) else "endpoint"
        case "budget_stop":  # the run's own limit
            return "endpoint"
        case reason:
            return _by_limit(episode) if reason in _LIMITS else None


def _refused_itself(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the last message is a refusal that the model worded, and no answer that the server's
    filter cut or took away."""
    refusal = messages[-1].get("refusal") if messages else None
    return bool(refusal) and refusal not in (FILTERED, messages[-1].get("content"))


def _by_limit(episode: RejectedEpisode) -> Party:
    """Of an episode that ended at a limit."""
    if any(map(_is_wrong, episode.simulations)):
        return "simulator"
    last = episode.calls[-1] if episode.calls else None
    broke = last is not None and last["is_error"] and last["error_code"] in BROKEN
    return "environment" if broke else "agent"


def _by_calls(episode: RejectedEpisode, failed: Row) -> Party | None:
    if failed["kind"] not in BY_STATE_OR_VALUES:
        return None
    if _simulator_misled(episode, failed):
        return "simulator"
    broken = (c for c in episode.calls if c["is_error"] and c["error_code"] in BROKEN)
    return "environment" if any(not call["recovered"] for call in broken) else None


def _simulator_misled(episode: RejectedEpisode, failed: Row) -> bool:
    """Whether the simulator was measured to be wrong in what the criterion hangs on, before it
    failed. What could not be measured says nothing."""
    end = _failed_at(episode, failed)
    wrong = [row for row in episode.simulations if row["call_index"] < end]
    if any(map(_is_wrong, wrong)):
        return True
    return (
        failed["kind"] == "communicate"
        and any(row["observation_match"] is False for row in wrong)
        and _was_nowhere_told(episode, failed)
    )


def _is_wrong(simulation: Row) -> bool:
    """Whether the simulator was measured to be wrong in what a call changed, or in its error."""
    return simulation["state_match"] is False or simulation["error_match"] is False


def _failed_at(episode: RejectedEpisode, failed: Row) -> int:
    """Index of the call that failed the criterion, as far as one did: the last of a forbidden tool;
    otherwise the number of calls, since everything done before the end counts."""
    check = _check_of(episode, failed)
    if failed["kind"] == "call" and check is not None:
        forbidden = CallCheck.model_validate(check)
        made = [
            call["call_index"]
            for call in episode.calls
            if forbidden.tool in (call["name"], ANY_TOOL)
        ]
        if forbidden.must == "not_occur" and made:
            return made[-1]
    return len(episode.calls)


def _was_nowhere_told(episode: RejectedEpisode, failed: Row) -> bool:
    """Whether some value that the agent was to tell stands in no result that it got."""
    check = _check_of(episode, failed)
    if check is None:
        return False
    seen = "\n".join(call["observation"] for call in episode.calls)
    return any(not mentions(seen, v) for v in CommunicateCheck.model_validate(check).values)


def _check_of(episode: RejectedEpisode, failed: Row) -> dict[str, object] | None:
    own = (c for c in episode.rubric.criteria if c.id == failed["criterion_id"])
    return next((c.check for c in own), None)


def _is_untold(episode: RejectedEpisode) -> bool:
    """Whether somebody else may have caused what failed, and no judge told whether so, or one told
    that the user left its part."""
    failed = [row for row in episode.failed if row["kind"] in BY_WHAT_IS_WANTED]
    left_part = any(
        row["criterion_id"] == USER_PART.id and row["passed"] is False for row in episode.by_judge
    )
    return any(left_part or not row.get("cause") for row in failed)


def _by_judge(episode: RejectedEpisode) -> Party | None:
    """By the cause that stands with failed verdicts, those that reject first."""
    rows = (*episode.failed, *episode.by_judge)
    cause = next((row["cause"] for row in rows if row.get("cause")), None)
    if cause is None or not cause["supported"]:
        return None
    match cause["of"]:
        case "user":
            return "user"
        case "task":
            return "task"
        case "tools":
            is_simulated = any(call["executed_by"] == "llm" for call in episode.calls)
            return "simulator" if is_simulated else "environment"
    return None
