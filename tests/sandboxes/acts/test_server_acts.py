"""What an agent does to a server is the agent's: odd arguments and calls that end the server come
back as observations, and no number of them gets an episode out of being scored.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from records.errors import TransientError
from sandboxes.core.template import Limits
from sandboxes.mcp.launch import server_of_command
from sandboxes.mcp.protocol.results import McpResult
from sandboxes.mcp.session import MAX_ARGUMENTS, McpServer, ServerLostError, open_server
from sandboxes.mcp.warm import WarmServers
from synth.episode.tools.mcp_executor import MOST_LOST, McpExecutor
from synth.episode.tools.tool_result import ToolResult

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

T = TypeVar("T")

SERVER = server_of_command(
    f"python {Path(__file__).parent / 'acting_server.py'}", writes=True
).model_copy(
    update={
        "probes": {"note": ("cat", "/workspace/notes")},
        "limits": Limits(memory_mb=128, disk_mb=16, processes=40, timeout_s=3),
        "resettable": True,
    }
)
HASTY = SERVER.model_copy(update={"call_timeout_s": 1.0})
AT_ONCE = 3
NOTE = {"command": "echo one >> /workspace/notes"}


def with_server(work: Callable[[McpServer], Awaitable[T]]) -> T:
    async def go() -> T:
        async with open_server(SERVER) as server:
            return await work(server)

    return asyncio.run(go())


def nested(depth: int) -> Any:
    return {"a": nested(depth - 1)} if depth else 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": "\ud800"},
        {"\udfff": 1},
        {"a": [{"b": "x\udc80y"}]},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": "x" * 10_000_000},
        {"a": nested(400)},
        {"a": nested(100_000 // 200)},
        {"a": b"\xff"},
    ],
    ids=["half", "half name", "half below", "nan", "inf", "10 MB", "deep", "deeper", "bytes"],
)
def test_arguments_that_no_message_can_hold_are_refused(arguments: dict[str, Any]) -> None:
    async def work(server: McpServer) -> None:
        refused = await server.call("echo", arguments)
        assert (refused.is_error, refused.error_code) == (True, "invalid_arguments")
        refused.text.encode()
        assert len(refused.text) < 500
        assert await server.call("echo", {"a": 1}) == McpResult('{"a": 1}', False)

    with_server(work)


def test_odd_arguments_that_a_message_can_hold_arrive() -> None:
    async def work(server: McpServer) -> None:
        for text in ("a\0b", "", "\u2028\n\r\x1b", "\U0001f600", "x" * (MAX_ARGUMENTS - 100)):
            result = await server.call("echo", {"a": text})
            assert (result.is_error, result.error_code) == (False, None)

    with_server(work)


def test_an_answer_that_does_not_fit_is_an_observation() -> None:
    async def work(server: McpServer) -> None:
        assert await server.call("half", {}) == McpResult("cut ?", False)
        promised = await server.call("promise", {})
        assert (promised.is_error, promised.error_code) == (True, "bad_answer")
        assert "Invalid structured content" in promised.text
        assert await server.call("echo", {"a": 1}) == McpResult('{"a": 1}', False)

    with_server(work)


class Episode:
    """An executor, and how many servers it has started."""

    def __init__(self, config: Any = SERVER) -> None:
        self.config, self.servers = config, list[McpServer]()
        self.executor = McpExecutor(self._opened)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[McpServer]:
        async with open_server(self.config) as server:
            self.servers.append(server)
            yield server

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        return await self.executor.call(tool, arguments, read_only=tool == "echo")


def played(work: Callable[[Episode], Awaitable[None]], config: Any = SERVER) -> Episode:
    episode = Episode(config)

    async def go() -> None:
        try:
            await work(episode)
        finally:
            await episode.executor.close()

    asyncio.run(go())
    return episode


@pytest.mark.parametrize("tool", ["die", "hang", "rubbish", "endless_line"])
def test_a_call_that_ends_every_server_is_answered_and_the_episode_goes_on(tool: str) -> None:
    async def work(episode: Episode) -> None:
        noted = await episode.call("shell", **NOTE)
        assert [change["id"] for change in noted.diff if change["op"] == "create"] == ["one"]
        ended = await episode.call(tool)
        assert (ended.is_error, ended.error_code, ended.diff) == (True, "server_ended", [])
        assert ended.hash_before == ended.hash_after == noted.hash_after
        assert len(episode.servers) == 3
        # the third server has been through the calls before, and lives
        again = await episode.call("shell", command="cat /workspace/notes")
        assert (again.text, again.is_error) == ("0 one\n", False)
        assert again.hash_after == noted.hash_after
        assert len(episode.servers) == 3

    played(work, HASTY if tool in ("hang", "rubbish") else SERVER)


def test_a_server_that_dies_by_itself_costs_the_agent_nothing() -> None:
    async def work(episode: Episode) -> None:
        noted = await episode.call("shell", **NOTE)
        await episode.servers[0].sandbox.exec(["pkill", "-9", "-f", "acting_server"])
        again = await episode.call("shell", **NOTE)
        assert (again.text, again.is_error) == ("0 ", False)
        assert again.hash_before == noted.hash_after
        assert len(episode.servers) == 2

    played(work)


ACTS = {
    "kill everything": "kill -9 -1",
    "kill the server": "pkill -9 -f acting_server",
    "stop everything": "kill -STOP -1",
    "fork bomb": "b() { b | b & }; b",
    "take all memory": "python -c 'x = [bytearray(1 << 20) for _ in range(1000)]'",
    "fill the disks": "for d in /workspace /tmp /dev/shm; do head -c 1G /dev/zero > $d/big; done",
    "remove everything": "rm -rf /workspace/* /tmp/* /dev/shm/* /opt/* 2>/dev/null",
    "close the workspace": "chmod 000 /workspace",
    "a FIFO that the probe reads": "rm -f /workspace/notes; mkfifo /workspace/notes",
    "a hundred thousand lines": "seq 100000 > /workspace/notes",
    "lines that are no text": "head -c 100000 /dev/urandom > /workspace/notes",
}


def test_acts_by_way_of_a_server_are_answered() -> None:
    async def one(command: str, turn: asyncio.Semaphore) -> str | None:
        async with turn:
            return await told(command)

    async def told(command: str) -> str | None:
        episode = Episode(HASTY.model_copy(update={"call_timeout_s": 3.0}))
        try:
            result = await episode.call("shell", command=command)
            result.text.encode()
            after = await episode.call("echo", a=1)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            await episode.executor.close()
        if result.error_code not in (None, "server_ended"):
            return f"{result.error_code}: {result.text}"
        return None if (after.text, after.is_error) == ('{"a": 1}', False) else after.text

    async def go() -> list[str | None]:
        turn = asyncio.Semaphore(AT_ONCE)  # most of their time is waiting for a call to end
        return await asyncio.gather(*(one(command, turn) for command in ACTS.values()))

    assert dict(zip(ACTS, asyncio.run(go()), strict=True)) == dict.fromkeys(ACTS)


def test_after_many_ends_no_server_is_started_and_every_call_is_answered() -> None:
    async def work(episode: Episode) -> None:
        codes = [(await episode.call("die")).error_code for _ in range(MOST_LOST // 2)]
        assert codes == ["server_ended"] * (MOST_LOST // 2)
        started = len(episode.servers)
        assert started <= 2 * MOST_LOST
        over = await episode.call("echo", a=1)
        assert (over.is_error, over.error_code) == (True, "server_ended")
        assert f"ended {MOST_LOST} times and is not started again" in over.text
        assert "dying of something" in over.text
        assert len(episode.servers) == started
        # the past of an episode comes back with it
        snapshot = episode.executor.snapshot()
        await episode.executor.restore(snapshot)
        assert (await episode.call("echo", a=1)) == over._replace(hash_before=None, hash_after=None)

    played(work)


def test_a_sandbox_that_is_lost_is_nobodys_doing() -> None:
    async def work(episode: Episode) -> None:
        await episode.call("echo", a=1)
        episode.servers[0].sandbox.end("the machine went away")
        with pytest.raises(TransientError, match="the machine went away") as lost:
            await episode.call("echo", a=1)
        assert not isinstance(lost.value, ServerLostError)

    played(work)


def test_no_call_is_blamed_where_no_server_starts() -> None:
    async def work(episode: Episode) -> None:
        await episode.call("echo", a=1)
        broken = ("python", "-c", "raise SystemExit('no license today')")
        episode.config = SERVER.model_copy(update={"command": broken})
        with pytest.raises(TransientError, match="no license today"):
            await episode.call("die")

    played(work)


def test_a_lost_server_is_lent_to_nobody_and_shared_no_more() -> None:
    reads = HASTY.model_copy(update={"writes": False, "read_only_tools": ("hang", "die")})

    async def go() -> None:
        async with WarmServers(live=3) as warm:
            async with warm.open(reads) as first, warm.open(reads) as same:
                assert same is first
                with pytest.raises(ServerLostError):
                    await first.call("die", {})
                async with warm.open(reads) as other:
                    assert other is not first
                    assert not (await other.call("echo", {})).is_error
            async with warm.open(reads) as one, warm.open(reads) as two:
                assert len({first, one, two}) == 3

    asyncio.run(go())
