"""Live servers in sandboxes: real ones, and one written to misbehave."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from records.errors import ConfigError, TransientError
from sandboxes.mcp.importing import import_server
from sandboxes.mcp.launch import launch_of, server_of_command
from sandboxes.mcp.protocol.results import MAX_TEXT, McpResult
from sandboxes.mcp.servers import ServerConfig, ServerGoal, builtin_servers, fill, slots_in
from sandboxes.mcp.session import McpServer, open_server

pytestmark = pytest.mark.usefixtures("sandboxed")

T = TypeVar("T")

TINY = server_of_command(f"python {Path(__file__).parent / 'tiny_server.py'}", writes=True)
REPO = {"repo_path": "/workspace/repo"}


def tiny(manners: str = "", **changes: Any) -> ServerConfig:
    return TINY.model_copy(update={"command": (*TINY.command, manners), **changes})


def with_server(config: ServerConfig, work: Callable[[McpServer], Awaitable[T]]) -> T:
    async def go() -> T:
        async with open_server(config) as server:
            return await work(server)

    return asyncio.run(go())


def test_pages_are_joined_and_answers_of_every_kind_come_back() -> None:
    async def work(server: McpServer) -> None:
        tools = await server.list_tools()
        assert [tool["name"] for tool in tools][:4] == ["echo", "write", "fail", "refuse"]
        assert len(tools) == 10
        assert tools[0]["inputSchema"] == {"type": "object"}
        assert await server.call("echo", {"a": 1}) == McpResult('{"a": 1}', False)
        assert await server.call("fail", {}) == McpResult("it failed", True)
        assert await server.call("refuse", {}) == McpResult("no tools/call", True)
        assert await server.call("wrong_name", {}) == McpResult("it has spaces", False)
        echoed = await server.call("HuiSheng", {"Hua": "hi", "other": 1})
        assert json.loads(echoed.text) == {"\u8bdd": "hi", "other": 1}
        flood = await server.call("flood", {})
        assert flood.text.endswith(f"[{200_000 - MAX_TEXT} more characters]")

    with_server(tiny(), work)


def test_state_is_what_the_probes_print_and_a_broken_probe_shows() -> None:
    async def work(server: McpServer) -> None:
        assert list((await server.state())["row"]) == ["the probe ended with exit code 1"]
        for _ in range(2):
            await server.call("write", {"n": 1})
        assert await server.state() == {"row": {'{"n": 1}': {"line": '{"n": 1}'}}}
        await server.reset()
        assert list((await server.state())["row"]) == ["the probe ended with exit code 1"]

    with_server(tiny(probes={"row": ("cat", "written")}, resettable=True), work)


def test_calls_from_many_tasks_at_once_keep_apart() -> None:
    async def work(server: McpServer) -> list[McpResult]:
        return await asyncio.gather(*(server.call("echo", {"n": i}) for i in range(50)))

    assert [json.loads(r.text)["n"] for r in with_server(tiny(), work)] == list(range(50))


def test_death_in_a_call_is_not_the_callers_fault_and_says_why() -> None:
    async def work(server: McpServer) -> None:
        with pytest.raises(TransientError, match="exit code 7, stderr: dying of something"):
            await server.call("die", {})
        with pytest.raises(TransientError):
            await server.call("echo", {})

    with_server(tiny(), work)


def test_a_call_that_hangs_is_bounded_and_ends_the_server() -> None:
    async def work(server: McpServer) -> None:
        with pytest.raises(TransientError, match=r"did not answer hang within 0\.2 s"):
            await server.call("hang", {})
        with pytest.raises(TransientError, match="does not run"):
            await server.call("echo", {})

    with_server(tiny(call_timeout_s=0.2), work)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("manners", "message"),
    [
        ("hang", r"tiny_server did not answer within 1 s$"),
        ("rubbish", r"lines on stdout are no messages, the first: 'Welcome to the server!'"),
        ("exit", r"exit code 1, stderr: no license key"),
    ],
)
def test_a_server_that_does_not_start_is_bounded_and_explained(manners: str, message: str) -> None:
    config = tiny(manners, start_timeout_s=1.0)
    with pytest.raises(TransientError, match=message):
        with_server(config, McpServer.list_tools)
    with pytest.raises(ConfigError, match="cannot import tools: server tiny_server"):
        asyncio.run(import_server(config))


def test_a_command_that_does_not_exist_is_named_before_anything_starts() -> None:
    config = ServerConfig(name="nope", command=("mcp-server-nope", "--x"))
    with pytest.raises(ConfigError, match="server nope: command 'mcp-server-nope' does not exist"):
        with_server(config, McpServer.list_tools)
    with pytest.raises(ConfigError, match="a container is not started in a sandbox"):
        with_server(server_of_command("docker run some-server"), McpServer.list_tools)
    for line in ("/no/such/server", "", "mcp 'unbalanced"):
        with pytest.raises(ConfigError, match=f"server command '?\"?{line}"):
            server_of_command(line)


@pytest.mark.slow
def test_import_marks_what_varies_and_maps_names() -> None:
    rows = {row["name"]: row for row in asyncio.run(import_server(importable()))}
    assert rows["uptime"]["drop_reason"] == "varies"
    assert rows["echo"]["drop_reason"] is None
    assert rows["write"]["drop_reason"] is None
    assert rows["wrong_name"]["annotations"]["originalName"] == "wrong name"
    assert rows["HuiSheng"]["annotations"]["originalName"] == "\u56de\u58f0"
    assert rows["HuiSheng"]["annotations"]["originalParameters"] == {"Hua": "\u8bdd"}


def importable() -> ServerConfig:
    """The tiny server without the tools that end it."""
    script = TINY.binds[0].source
    text = Path(script).read_text().replace('"die", "hang", ', "")
    fixture = {"files": {"server.py": text}}
    config = {"name": "tiny", "command": ("python", "/workspace/server.py"), "writes": True}
    return ServerConfig.model_validate(config | {"fixtures": {"default": fixture}})


@pytest.fixture(scope="module")
def real() -> dict[str, ServerConfig]:
    return {name: config for name, config in builtin_servers().items() if is_installed(config)}


def is_installed(config: ServerConfig) -> bool:
    try:
        launch_of(config)
    except ConfigError:
        return not config.optional  # then it is a failure and not a choice
    return True


WRITES: list[tuple[str, dict[str, Any]]] = [
    ("git_create_branch", REPO | {"branch_name": "fix/leap-day"}),
    ("git_checkout", REPO | {"branch_name": "fix/leap-day"}),
    ("git_add", REPO | {"files": ["config/limits.toml", "docs/onboarding.md"]}),
    ("git_commit", REPO | {"message": "Allow more stations"}),
    ("git_commit", REPO | {"message": "Nothing is staged now"}),
    ("git_log", REPO | {"max_count": 2}),
]


async def write_all(server: McpServer) -> list[Any]:
    return [*[await server.call(*one) for one in WRITES], await server.state()]


@pytest.mark.slow
def test_git_writes_are_real_and_the_same_in_two_sandboxes_and_after_a_reset(
    real: dict[str, ServerConfig],
) -> None:
    async def work(server: McpServer) -> tuple[list[Any], list[Any], Any]:
        first = await server.state()
        done = await write_all(server)
        await server.reset()
        assert await server.state() == first
        return done, await write_all(server), first

    async def both() -> tuple[Any, list[Any]]:
        async with open_server(real["git"]) as one, open_server(real["git"]) as two:
            return await asyncio.gather(work(one), write_all(two))

    (one, again, before), other = asyncio.run(both())
    assert one == again == other
    after = one[-1]
    assert list(after["head"]) == ["fix/leap-day"]
    assert "?? docs/onboarding.md" in set(before["status"]) - set(after["status"])
    new = set(after["commit"]) - set(before["commit"])
    assert [line.startswith("Agent: Allow more stations (") for line in new] == [True]
    assert one[4] == McpResult(
        "Error executing tool git_commit: No changes staged for commit. Use git_add to stage "
        "changes first; git_status shows what is currently staged.", True,
    )  # fmt: skip


@pytest.mark.slow
def test_import_of_a_real_server_keeps_all_its_tools(real: dict[str, ServerConfig]) -> None:
    rows = asyncio.run(import_server(real["git"]))
    assert len(rows) == 12
    assert {row["drop_reason"] for row in rows} == {None}
    assert {row["license"] for row in rows} == {"MIT"}
    reads = {row["name"] for row in rows if row["annotations"]["readOnlyHint"]}
    assert {"git_status", "git_log"} <= reads < {row["name"] for row in rows}


async def reach(server: McpServer, goals: list[ServerGoal], values: dict[str, Any]) -> list[str]:
    """What stopped these goals from being reached one after the other, nothing if all were."""
    faults = []
    for goal in goals:
        seen = []
        for one in goal.calls:
            result = await server.call(one.tool, fill(one.arguments, values))
            seen.append(result.text)
            if result.is_error:
                faults.append(f"{goal.id} {values}: {result.text}")
        if None in goal.told(seen):
            faults.append(f"{goal.id} {values} tells nothing: {seen}")
    return faults


async def answers_of_time(server: McpServer) -> None:
    now = await server.call("get_current_time", {"timezone": "Europe/Paris"})
    assert json.loads(now.text)["datetime"] == "2026-03-06T19:30:00+01:00"
    assert (await server.call("get_current_time", {"timezone": "Mars/North"})).is_error
    assert (await server.call("convert_time", {})).is_error
    assert await server.call("no_tool", {}) == McpResult("Unknown tool: no_tool", True)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(builtin_servers()))
def test_every_goal_is_reached_for_a_sample_of_values(
    name: str, real: dict[str, ServerConfig]
) -> None:
    if name not in real:
        pytest.skip(f"server {name} is not installed here")
    config = real[name]
    by_id = {goal.id: goal for goal in config.goals}

    async def work(server: McpServer) -> list[str]:
        faults, first = [], await server.state()
        if name == "time":
            await answers_of_time(server)  # here, because a start takes a second
        for number, goal in enumerate(config.goals):
            chain = [*(by_id[other] for other in goal.requires), goal]
            calls = [one.arguments for each in chain for one in each.calls]
            # another value of every slot for every goal, and so all of them over all goals
            values = {s: config.slots[s][number % len(config.slots[s])] for s in slots_in(calls)}
            faults += await reach(server, chain, values)
            changed = await server.state() != first
            if changed and not any(each.writes for each in chain):
                faults.append(f"{goal.id} writes without saying so")
            if changed:
                await server.reset()
        return faults

    assert with_server(config, work) == []
