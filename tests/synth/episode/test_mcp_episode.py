"""Episodes on a real MCP server: real effects, and failures of its own that nobody is blamed for.

The Git server runs in a sandbox; where this machine has none, these tests are skipped.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from records.errors import TransientError
from records.store.journal import ShardJournal
from records.tables.schemas import Row
from sandboxes.lending.leases import available
from sandboxes.mcp.importing import source_of
from sandboxes.mcp.servers import ServerConfig, builtin_servers
from sandboxes.mcp.session import McpServer, open_server
from sandboxes.mcp.warm import WarmServers
from synth.episode.environment import EpisodeEnvironment
from synth.episode.replay import replay_rows
from synth.episode.tools.executors import Catalogue, OpenServer
from tests.synth.clinic import PERSONA, QUIET, ScriptedUser, calls, says
from tool_specs.importing.tool_lists import rows_of_answer

pytestmark = pytest.mark.skipif(bool(available()), reason=str(available()))

GIT = builtin_servers()["git"]
REPO = "/workspace/repo"
BRANCH = ("git_create_branch", {"repo_path": REPO, "branch_name": "feature/dark-mode"})
STATUS = ("git_status", {"repo_path": REPO})
ADD = ("git_add", {"repo_path": REPO, "files": ["docs/faq.md"]})
COMMIT = ("git_commit", {"repo_path": REPO, "message": "Answer the question"})
NO_BRANCH = ("git_checkout", {"repo_path": REPO, "branch_name": "no/such"})

RUBRIC = {
    "criteria": [
        {
            "id": "goal",
            "kind": "state",
            "words": "There is a branch feature/dark-mode.",
            "weight": 1.0,
            "mandatory": True,
            "check": {
                "changes": [{"op": "create", "entity": "branch", "match": {}}],
                "incidental": [],
            },
        }
    ]
}
TASK: Row = {
    "task_id": "task",
    "agent_id": "agent",
    "persona_id": "persona",
    "domain_id": None,
    "server": "git",
    "variant": "normal",
    "solvable": True,
    "user_brief": {"opening": "Please make a branch.", "wishes": [], "facts": []},
    "rubric": RUBRIC,
    "initial_state": {"fixture": "default"},
    "token_budget": 50_000,
    "max_turns": 20,
}


@pytest.fixture(scope="module")
def tools() -> list[Row]:
    async def listed() -> list[dict[str, Any]]:
        async with open_server(GIT) as server:
            return await server.list_tools()

    return rows_of_answer(asyncio.run(listed()), source_of(GIT))


def environment(
    tools: list[Row], opened: OpenServer = open_server, **options: Any
) -> EpisodeEnvironment:
    return EpisodeEnvironment(catalogue_of(tools, opened), QUIET, **options)


def catalogue_of(tools: list[Row], opened: OpenServer = open_server) -> Catalogue:
    agent = {
        "agent_id": "agent",
        "tool_ids": [tool["tool_id"] for tool in tools],
        "system_prompt": "You look after a repository.",
    }
    return Catalogue(
        agents={"agent": agent},
        personas={"persona": PERSONA},
        tools={tool["tool_id"]: tool for tool in tools},
        domains={},
        servers={"git": GIT},
        open_server=opened,
    )


async def play(env: EpisodeEnvironment, *actions: dict[str, Any]) -> list[Any]:
    await env.reset(TASK, 1)
    try:
        return [await env.step(action) for action in actions]
    finally:
        await env.close()


@pytest.mark.slow
def test_real_effects_are_seen_by_the_probes_and_replayed(tools: list[Row], tmp_path: Path):
    """One episode told in full, then run again from its journal and from its rows, both on a warm
    server."""

    async def episode(opened: OpenServer) -> tuple[EpisodeEnvironment, list[Any]]:
        with ShardJournal(tmp_path / "journal.sqlite") as journal:
            env = environment(
                tools, opened, user=lambda *_: ScriptedUser(), journal=journal, episode_id="e"
            )
            actions = [calls(STATUS, BRANCH, STATUS), calls(NO_BRANCH), says("I made it.")]
            return env, await play(env, *actions)

    async def run() -> None:
        env, steps = await episode(open_server)
        check_told_episode(env, steps)
        async with WarmServers(live=1) as warm:
            again, _ = await episode(warm.open)
            assert again.state.drifts == []
            assert again.state.messages == env.state.messages
            trajectory, records = rows_of(env, steps[-1])
            catalogue = catalogue_of(tools, warm.open)
            report = await replay_rows(trajectory, records, TASK, catalogue, QUIET)
            assert report.differences == []

    asyncio.run(run())


def check_told_episode(env: EpisodeEnvironment, steps: list[Any]) -> None:
    first, second, last = steps
    status, branch, _, wrong = env.state.caller.records
    assert "On branch main" in first.observation[0]["content"]
    assert {record.executed_by for record in env.state.caller.records} == {"mcp"}
    assert status.state_diff == []
    assert [(c["op"], c["entity"]) for c in branch.state_diff] == [("create", "branch")]
    assert branch.state_diff[0]["id"].startswith("feature/dark-mode: ")
    assert branch.state_hash_before == status.state_hash_before != branch.state_hash_after
    assert (wrong.is_error, wrong.error_code, wrong.state_diff) == (True, "tool_error", [])
    assert "no/such" in second.observation[0]["content"]
    assert (last.reward, last.info["termination_reason"]) == (1.0, "user_done")


def rows_of(env: EpisodeEnvironment, last: Any) -> tuple[Row, list[Row]]:
    trajectory = {
        "trajectory_id": "t",
        "messages": env.state.messages,
        "tools": [],
        "seed": env.state.seed,
        "termination_reason": env.state.reason,
        "state_hash_final": env.state.hash_final,
        "objective_reward": last.reward,
    }
    return trajectory, json.loads(json.dumps([r._asdict() for r in env.state.caller.records]))


@pytest.mark.slow
def test_a_snapshot_of_a_live_server_is_restored_by_replay(tools: list[Row]):
    async def compare() -> None:
        async with WarmServers(live=2) as warm:
            await compare_on(warm)

    async def compare_on(warm: WarmServers) -> None:
        first, second = environment(tools, warm.open), environment(tools, warm.open)
        await first.reset(TASK, 1)
        await first.step(calls(BRANCH, ADD))
        snapshot = first.snapshot()
        await second.restore(snapshot)
        for env in (first, second):
            await env.step(calls(COMMIT, first=2))
        assert first.state.caller.records == second.state.caller.records
        assert first.state.messages == second.state.messages
        for env in (first, second):
            await env.close()

    asyncio.run(compare())


def test_arguments_that_do_not_fit_never_start_a_server(tools: list[Row]):
    def never(config: ServerConfig, fixture: Any) -> Any:
        raise AssertionError("started")

    env = environment(tools, never)
    (step,) = asyncio.run(play(env, calls(("git_log", {"repo_path": 5}))))
    assert json.loads(step.observation[0]["content"])["error"]["code"] == "invalid_arguments"
    assert env.state.hash_final is None


def fragile(breaks: Callable[[McpServer], Awaitable[object]]) -> OpenServer:
    """Servers to which `breaks` happens at every new branch."""

    @asynccontextmanager
    async def opened(config: ServerConfig, fixture: Any) -> AsyncIterator[McpServer]:
        async with open_server(config, fixture) as server:
            call = server.call

            async def breaks_at_branch(name: str, arguments: Any, answers: Any) -> Any:
                if name == BRANCH[0]:
                    await breaks(server)
                return await call(name, arguments, answers)

            server.call = breaks_at_branch  # type: ignore[method-assign]
            yield server

    return opened


@pytest.mark.slow
def test_a_sandbox_that_is_lost_ends_the_episode_as_infra_error(tools: list[Row]):
    async def breaks(server: McpServer) -> None:
        server.sandbox.end("the machine went away")

    env = environment(tools, fragile(breaks))
    first, last = asyncio.run(play(env, calls(STATUS), calls(BRANCH)))
    assert not first.truncated
    assert (last.truncated, last.info["termination_reason"]) == (True, "infra_error")
    assert last.observation == []
    assert len(env.state.caller.records) == 1


@pytest.mark.slow
def test_an_episode_whose_calls_end_its_server_is_scored(tools: list[Row]):
    async def breaks(server: McpServer) -> None:
        await server.sandbox.exec(["pkill", "-9", "-f", "mcp"])

    env = environment(tools, fragile(breaks))
    ended, works, last = asyncio.run(play(env, calls(BRANCH), calls(STATUS), says("I made it.")))
    assert ended.info["calls"][0].error_code == "server_ended"
    assert "On branch main" in works.observation[0]["content"]
    assert (last.truncated, last.info["termination_reason"]) == (False, "agent_done")
    assert last.reward == 0.0
    assert not last.info["verdicts"]["goal"].passed


def test_a_server_that_cannot_start_now_is_an_infra_error(tools: list[Row]):
    @asynccontextmanager
    async def down(config: ServerConfig, fixture: Any) -> AsyncIterator[McpServer]:
        raise TransientError("no sandbox free")
        yield  # pyright: ignore[reportUnreachable]

    (step,) = asyncio.run(play(environment(tools, down), calls(STATUS)))
    assert step.info["termination_reason"] == "infra_error"
    assert step.info["error"] == "no sandbox free"
