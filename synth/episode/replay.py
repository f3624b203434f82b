"""Replay: the recorded actions of a trajectory, executed again in a fresh environment.

Draws, user turns and answers to what servers asked are the recorded ones; every result, state hash
and state change is made anew and compared, and so is the reward. No model is asked: what one
answered as a tool is taken from the record, and its changes are checked and made again. A cassette
does so for live servers, too.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from records.digest import canonical_json
from records.errors import ItemError
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.episode.config import EpisodeConfig
from synth.episode.delegation import NAME
from synth.episode.endings import OUTSIDE
from synth.episode.environment import EpisodeEnvironment
from synth.episode.sessions import conversations_in, whole_episode
from synth.episode.tools.cassette import NotRecordedError, Tape
from synth.episode.tools.executors import Catalogue, RecordedCalls
from synth.episode.tools.fault_injection import RecordedFaults
from synth.episode.users.user import Scene, UserCall, UserError, UserTurn
from synth.llm.wire.request import Message
from synth.rubrics.reward import evidence_of, objective_reward, rubric_of

COMPARED = (
    "tool_call_id",
    "tool_id",
    "name",
    "executed_by",
    "arguments",
    "observation",
    "is_error",
    "error_code",
    "policy_violations",
    "injected_outcome",
    "state_hash_before",
    "state_hash_after",
    "state_diff",
    "actor",
    "exchanges",
)
"""Columns of `tool_calls` that an execution decides."""


LIVE = ("mcp", "cassette")
"""Fidelities that `--cassette` answers from the record."""


class ReplayDifference(NamedTuple):
    where: str
    """`call 3: observation`, `message 5`, `state_hash_final`, `objective_reward`."""
    recorded: Any
    replayed: Any


class ReplayReport(NamedTuple):
    trajectory_id: str
    num_calls: int
    differences: list[ReplayDifference]


class RecordedUser:
    """Says what the user said and makes the calls that it made, turn by turn."""

    def __init__(self, messages: Sequence[Message], calls: Sequence[Row], reason: str) -> None:
        self._turns = [m["content"] for m in messages if m["role"] == "user"]
        self._calls = [call for call in calls if call["actor"] == "user"]
        self._reason = reason

    async def reply(self, scene: Scene) -> UserTurn:
        for call in (c for c in self._calls if c["turn"] == scene.turn):
            given = call["arguments"]
            text = given if isinstance(given, str) else canonical_json(given)
            await scene.act([UserCall(call["tool_call_id"], call["name"], text)])
        said = sum(m["role"] == "user" for m in scene.messages)
        if said < len(self._turns):
            return UserTurn(self._turns[said], False)
        if self._reason == "user_error":
            raise UserError("as recorded")
        return UserTurn("", True)


class RecordedSubAgents:
    """Say what the sub-agents of an episode said, by the call that began each."""

    def __init__(self, conversations: Sequence[Row]) -> None:
        self._said = {
            row["parent_call_id"]: [m for m in row["messages"] if m["role"] == "assistant"]
            for row in conversations
        }

    async def answer(
        self,
        call_id: str,
        messages: Sequence[Message],
        tools: Sequence[dict[str, Any]],
        turn: int,
    ) -> Message:
        said = self._said.get(call_id, [])
        if turn >= len(said):
            raise NotRecordedError(f"the sub-agent of {call_id} has no message {turn} on record")
        return said[turn]


async def replay(
    dataset: Dataset,
    trajectory_id: str,
    catalogue: Catalogue,
    config: EpisodeConfig = EpisodeConfig(),
    *,
    cassette: bool = False,
) -> ReplayReport:
    """Execute the trajectory again. ItemError when the dataset does not hold it.

    With `cassette` live servers are not started: the recorded calls answer for them.
    """
    trajectory = _row(dataset, "trajectories", trajectory_id)
    task = _row(dataset, "tasks", trajectory["task_id"])
    if trajectory["parent_call_id"] is not None or trajectory["session"]:
        raise ItemError(
            "not_found",
            f"{trajectory_id} tells one conversation of an episode; its calls are replayed with "
            f"the whole, {trajectory['episode_id']}",
        )
    calls = [c for c in dataset.rows("tool_calls") if c["trajectory_id"] == trajectory_id]
    own = [t for t in dataset.rows("trajectories") if t["episode_id"] == trajectory_id]
    conversations = [row for row in own if row["parent_call_id"] is not None]
    trajectory = whole_episode(trajectory, {row["trajectory_id"]: row for row in own}, task)
    return await replay_rows(
        trajectory, calls, task, catalogue, config, cassette=cassette, conversations=conversations
    )


async def replay_rows(
    trajectory: Row,
    calls: Sequence[Row],
    task: Row,
    catalogue: Catalogue,
    config: EpisodeConfig = EpisodeConfig(),
    *,
    cassette: bool = False,
    conversations: Sequence[Row] = (),
) -> ReplayReport:
    """`trajectory` has the messages of the whole episode (`sessions.whole_episode`); `calls` are
    its rows of `tool_calls`, in call order; `conversations` the rows of its sub-agents."""
    kinds = [
        (c["name"], c["arguments"], c["injected_outcome"] or "success")
        for c in calls
        if c["actor"] == "agent" and c["executed_by"] != "sub_agent"
    ]
    reason = trajectory["termination_reason"]
    sessions = conversations_in(trajectory["messages"])
    delegates = any(tool["function"]["name"] == NAME for tool in trajectory["tools"])

    def user(task: Row, _: Row) -> RecordedUser:
        session = task["user_brief"].get("session", 0)
        is_last = session == len(sessions) - 1
        said = sessions[session] if session < len(sessions) else []
        return RecordedUser(said, calls, reason if is_last else "user_done")

    env = EpisodeEnvironment(
        catalogue,
        config,
        sub_agents=RecordedSubAgents(conversations) if delegates else None,
        user=user,
        faults=lambda seed: RecordedFaults(kinds, seed),
        recorded=RecordedCalls(
            Tape(calls, ["llm"]), Tape(calls, LIVE) if cassette else None, asked=Tape(calls, LIVE)
        ),
    )
    await env.reset(task, trajectory["seed"])
    try:
        for message in trajectory["messages"]:
            if message["role"] == "assistant" and env.state.reason is None:
                await env.step(message)
    finally:
        await env.close()
    differences = list(_differences(trajectory, calls, env))
    differences += list(_in_conversations(conversations, env))
    differences += await _reward_difference(trajectory, task, env, catalogue)
    return ReplayReport(trajectory["trajectory_id"], len(calls), differences)


def _differences(
    trajectory: Row, calls: Sequence[Row], env: EpisodeEnvironment
) -> Iterator[ReplayDifference]:
    state = env.state
    replayed = [record._asdict() for record in state.caller.records]
    for index in range(max(len(calls), len(replayed))):
        if index >= min(len(calls), len(replayed)):
            yield ReplayDifference("number of calls", len(calls), len(replayed))
            break
        for column in COMPARED:
            old, new = calls[index][column], replayed[index][column]
            if canonical_json(old) != canonical_json(new):
                yield ReplayDifference(f"call {index}: {column}", old, new)
    yield from _in_messages("", trajectory["messages"], state.messages)
    if trajectory["state_hash_final"] != state.hash_final:
        yield ReplayDifference("state_hash_final", trajectory["state_hash_final"], state.hash_final)


def _in_conversations(
    conversations: Sequence[Row], env: EpisodeEnvironment
) -> Iterator[ReplayDifference]:
    replayed = {c.call_id: c for c in env.state.conversations}
    for row in conversations:
        call_id = row["parent_call_id"]
        where, again = f"sub-agent of {call_id}: ", replayed.get(call_id)
        yield from _in_messages(where, row["messages"], again.messages if again else [])
        if again and again.reason != row["termination_reason"]:
            end = f"{where}termination_reason"
            yield ReplayDifference(end, row["termination_reason"], again.reason)


def _in_messages(
    where: str, recorded: Sequence[Message], replayed: Sequence[Message]
) -> Iterator[ReplayDifference]:
    for index, (old, new) in enumerate(zip(recorded, replayed, strict=False)):
        if canonical_json(old) != canonical_json(new):
            yield ReplayDifference(f"{where}message {index}", old, new)
    if len(recorded) != len(replayed):
        yield ReplayDifference(f"{where}number of messages", len(recorded), len(replayed))


async def _reward_difference(
    trajectory: Row, task: Row, env: EpisodeEnvironment, catalogue: Catalogue
) -> list[ReplayDifference]:
    """The reward of the recorded conversation with the results made anew."""
    reward = 0.0
    if trajectory["termination_reason"] not in OUTSIDE:
        rubric = rubric_of(task)
        replayed = [record._asdict() for record in env.state.caller.records]
        tests = await catalogue.bench.tests_of(task, rubric, replayed)
        evidence = evidence_of(trajectory["messages"], replayed, tests)
        reward = objective_reward(rubric, catalogue.kinds.check_all(rubric, evidence))
    recorded = trajectory["objective_reward"]
    return [] if recorded == reward else [ReplayDifference("objective_reward", recorded, reward)]


def _row(dataset: Dataset, table: str, row_id: str) -> Row:
    """The row of the table by its primary key."""
    key = {"trajectories": "trajectory_id", "tasks": "task_id"}[table]
    found = next((row for row in dataset.rows(table) if row[key] == row_id), None)
    if found is None:
        raise ItemError("not_found", f"{dataset.root} holds no {key} {row_id!r}")
    return found
