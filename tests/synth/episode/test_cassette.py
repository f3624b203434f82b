"""Cassettes: what was recorded on a real MCP server stands in for it once it is gone.

The Git server runs in a sandbox to be recorded; where this machine has none, those tests are
skipped. What follows the recording needs no sandbox at all.
"""

import asyncio
import json
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import pytest

from records.digest import canonical_json
from records.errors import TransientError
from records.tables.schemas import Row
from sandboxes.lending.leases import available
from sandboxes.mcp.importing import source_of
from sandboxes.mcp.servers import ServerConfig
from sandboxes.mcp.session import open_server
from synth.episode.environment import EpisodeEnvironment
from synth.episode.replay import replay_rows
from synth.episode.tools.calls import CallRecord
from synth.episode.tools.cassette import Cassette, CassetteServer, NotRecordedError, Tape
from synth.episode.tools.cassette import _Start as Start
from synth.episode.tools.executors import Catalogue
from synth.episode.tools.fault_injection import FaultInjectionConfig
from tests.synth.clinic import QUIET, ScriptedUser, calls, says
from tests.synth.episode.test_mcp_episode import (
    ADD,
    BRANCH,
    COMMIT,
    GIT,
    NO_BRANCH,
    STATUS,
    TASK,
    catalogue_of,
    rows_of,
)
from tool_specs.importing.tool_lists import rows_of_answer

NEEDS_SANDBOX = pytest.mark.skipif(bool(available()), reason=str(available()))
ACTIONS = [calls(STATUS, BRANCH, STATUS), calls(NO_BRANCH), calls(ADD, COMMIT), says("Done.")]
STORMY = QUIET.model_copy(
    update={
        "fault_injection": FaultInjectionConfig(
            weights={"success": 2, "transient_error": 1, "partial": 1}
        )
    }
)


class Recording(NamedTuple):
    tools: list[Row]
    trajectory: Row
    calls: list[Row]
    messages: list[dict[str, Any]]


def gone(config: ServerConfig, fixture: Any = None) -> NoReturn:
    raise AssertionError(f"{config.name} was started")


def recorded(config: Any = QUIET, seed: int = 1) -> Recording:
    async def run() -> Recording:
        async with open_server(GIT) as server:
            tools = rows_of_answer(await server.list_tools(), source_of(GIT))
        env = EpisodeEnvironment(catalogue_of(tools), config, user=lambda *_: ScriptedUser())
        await env.reset(TASK, seed)
        try:
            steps = [await env.step(action) for action in ACTIONS]
        finally:
            await env.close()
        trajectory, made = rows_of(env, steps[-1])
        return Recording(tools, trajectory, made, env.state.messages)

    return asyncio.run(run())


@pytest.fixture(scope="module")
def tape() -> Recording:
    return recorded()


def without_the_server(tools: list[Row]) -> Catalogue:
    """The server's binary does not exist here, and opening it is an error of the test."""
    missing = GIT.model_copy(update={"command": ("no-such-binary",)})
    return replace(catalogue_of(tools, gone), servers={"git": missing})


@pytest.mark.slow
@NEEDS_SANDBOX
@pytest.mark.parametrize("seed", [1, 5])
def test_a_live_trajectory_replays_without_its_server(seed: int) -> None:
    """To the byte: every column of every call, messages, hashes and reward, outcomes included."""
    made = recorded(STORMY, seed)
    assert {call["executed_by"] for call in made.calls} == {"mcp"}
    environment = without_the_server(made.tools)
    report = asyncio.run(
        replay_rows(made.trajectory, made.calls, TASK, environment, STORMY, cassette=True)
    )
    assert report.differences == []
    assert report.num_calls == len(made.calls) > 4


@NEEDS_SANDBOX
@pytest.mark.parametrize("column", ["observation", "state_hash_after", "state_hash_before"])
def test_a_record_that_does_not_hang_together_is_found(tape: Recording, column: str) -> None:
    rows = [dict(row) for row in tape.calls]
    rows[1][column] = "0" * 16
    report = asyncio.run(
        replay_rows(
            tape.trajectory, rows, TASK, without_the_server(tape.tools), QUIET, cassette=True
        )
    )
    assert report.differences


@NEEDS_SANDBOX
def test_a_call_that_is_not_on_the_tape_ends_the_replay_and_says_so(tape: Recording) -> None:
    environment = without_the_server(tape.tools)
    rows = [call for call in tape.calls if call["name"] != "git_create_branch"]
    report = asyncio.run(
        replay_rows(tape.trajectory, rows, TASK, environment, QUIET, cassette=True)
    )
    assert "number of calls" in {found.where for found in report.differences}


def cassette_of(tape: Recording) -> Cassette:
    cassette = Cassette()
    cassette.tools["git"] = {tool["tool_id"]: tool for tool in tape.tools}
    cassette.add(Start("git", "default"), tape.calls)
    return cassette


def episode(tape: Recording, *actions: dict[str, Any]) -> tuple[EpisodeEnvironment, list[Any]]:
    """A new episode whose server is answered from the cassette."""
    environment = replace(
        without_the_server(tape.tools), cassette=cassette_of(tape), recorded=frozenset(["git"])
    )
    env = EpisodeEnvironment(environment, QUIET, user=lambda *_: ScriptedUser())

    async def run() -> list[Any]:
        await env.reset(TASK, 7)
        try:
            return [await env.step(action) for action in actions]
        finally:
            await env.close()

    return env, asyncio.run(run())


def as_live(record: CallRecord) -> Row:
    return json.loads(json.dumps(record._asdict() | {"executed_by": "mcp"}))


@NEEDS_SANDBOX
def test_a_new_episode_is_answered_as_the_server_did(tape: Recording) -> None:
    env, _ = episode(tape, *ACTIONS)
    records = env.state.caller.records
    assert {record.executed_by for record in records} == {"cassette"}
    assert canonical_json([as_live(record) for record in records]) == canonical_json(tape.calls)
    assert env.state.messages[1:] == tape.messages[1:]
    assert env.state.hash_final == tape.trajectory["state_hash_final"]


@NEEDS_SANDBOX
def test_another_way_to_a_recorded_state_is_answered_too(tape: Recording) -> None:
    """What counts is the state in which a tool is called, not what was called before it."""
    env, _ = episode(tape, calls(BRANCH), calls(NO_BRANCH, STATUS), says("Done."))
    assert [record.is_error for record in env.state.caller.records] == [False, True, False]
    assert env.state.caller.records[2].observation == tape.calls[2]["observation"]


@NEEDS_SANDBOX
def test_a_call_that_nobody_recorded_is_an_error_of_the_world(tape: Recording) -> None:
    other = ("git_create_branch", {"repo_path": "/workspace/repo", "branch_name": "else"})
    env, [step] = episode(tape, calls(other))
    assert step.info["termination_reason"] == "infra_error"
    assert "is not on the cassette" in step.info["error"]
    assert "else" in step.info["error"]
    assert env.state.hopeless
    assert step.reward == 0.0


@NEEDS_SANDBOX
def test_two_answers_to_one_call_are_none(tape: Recording) -> None:
    cassette = cassette_of(tape)
    assert not cassette.conflicts
    other = [tape.calls[0] | {"observation": "something else"}]
    cassette.add(Start("git", "default"), other)
    assert len(cassette.conflicts) == 1
    first = tape.calls[0]
    with pytest.raises(NotRecordedError, match="two ways"):
        cassette.answer(
            "git", "default", first["tool_id"], first["state_hash_before"], first["arguments"]
        )


@NEEDS_SANDBOX
def test_a_proof_sees_what_the_recorded_calls_changed(tape: Recording) -> None:
    server = CassetteServer(cassette_of(tape), GIT, "default")

    async def run() -> None:
        before = await server.state()
        for tool, arguments in (BRANCH, ADD, COMMIT):
            assert not (await server.call(tool, arguments)).is_error
        after = await server.state()
        changed = {probe for probe in after if before[probe] != after[probe]}
        assert changed == {change["entity"] for call in tape.calls for change in call["state_diff"]}

    asyncio.run(run())


def test_an_empty_cassette_says_what_it_lacks() -> None:
    with pytest.raises(TransientError, match="no call on server git with fixture default"):
        Cassette().start("git", "default")


def test_a_tape_gives_each_call_once_and_can_be_wound_back() -> None:
    call = {"name": "a", "arguments": {"x": 1}, "executed_by": "mcp", "injected_outcome": None}
    tape = Tape([call | {"observation": n} for n in (1, 2)], ["mcp"])
    left = tape.left()
    assert [tape.next("a", {"x": 1})["observation"] for _ in range(2)] == [1, 2]
    with pytest.raises(NotRecordedError, match="not on the tape"):
        tape.next("a", {"x": 1})
    tape.restore(left)
    assert tape.next("a", {"x": 1})["observation"] == 1
