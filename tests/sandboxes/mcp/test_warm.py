"""Warm servers: used again with a fresh workspace, and never after they failed somebody."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from records.errors import ConfigError, TransientError
from sandboxes.mcp.joined import LiveServer
from sandboxes.mcp.servers import builtin_servers
from sandboxes.mcp.session import McpServer
from sandboxes.mcp.warm import SHARERS, WarmServers

GIT = builtin_servers()["git"]
NEW_BRANCH = {"repo_path": "/workspace/repo", "branch_name": "other"}


async def change(server: LiveServer) -> tuple[Any, Any]:
    """(state before, state after) of making a branch."""
    before = await server.state()
    assert not (await server.call("git_create_branch", NEW_BRANCH)).is_error
    return before, await server.state()


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_a_server_is_used_again_and_remembers_nothing() -> None:
    async def run() -> None:
        async with WarmServers(live=1) as warm:
            async with warm.open(GIT) as first:
                start, end = await change(first)
            async with warm.open(GIT) as second:
                assert await change(second) == (start, end)
            assert second is first
            assert start != end

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_a_server_that_failed_or_keeps_state_is_not_used_again() -> None:
    async def run() -> None:
        async with WarmServers(live=1) as warm:
            failed: list[LiveServer] = []

            async def fail() -> None:
                async with warm.open(GIT) as server:
                    failed.append(server)
                    raise TransientError("lost")

            with pytest.raises(TransientError):
                await fail()
            async with warm.open(GIT) as second:
                assert second is not failed[0]
            keeps = GIT.model_copy(update={"resettable": False})
            async with warm.open(keeps) as third:
                assert third is not second
            async with warm.open(keeps) as fourth:
                assert fourth is not third

    asyncio.run(run())


async def killed(server: LiveServer) -> None:
    assert isinstance(server, McpServer)
    await server.sandbox.exec(["sh", "-c", "kill -9 -1"])


async def lost(server: LiveServer) -> None:
    assert isinstance(server, McpServer)
    server.sandbox.end("the machine went away")


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize("how", [killed, lost])
def test_a_server_that_died_while_idle_is_replaced(
    how: Callable[[LiveServer], Awaitable[None]],
) -> None:
    async def run() -> None:
        async with WarmServers(live=1) as warm:
            async with warm.open(GIT) as first:
                await first.state()
            await how(first)
            async with warm.open(GIT) as second:
                before, after = await change(second)
            assert second is not first
            assert before != after

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_no_more_than_live_servers_are_lent_at_once() -> None:
    async def run() -> None:
        lent = 0
        both = asyncio.Event()

        async def use(warm: WarmServers) -> None:
            nonlocal lent
            async with warm.open(GIT):
                lent += 1
                assert lent <= 2
                if lent == 2:
                    both.set()
                await both.wait()  # nobody leaves before two are in at once
                lent -= 1

        async with WarmServers(live=2) as warm:
            await asyncio.gather(*(use(warm) for _ in range(4)))

    asyncio.run(run())


TIME = builtin_servers()["time"]
NOON = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_a_server_that_only_reads_serves_several_at_once_in_one_slot() -> None:
    async def run() -> None:
        inside = 0
        all_in = asyncio.Event()
        servers: list[LiveServer] = []

        async def use(warm: WarmServers) -> str:
            nonlocal inside
            async with warm.open(TIME) as server:
                inside += 1
                servers.append(server)
                if inside == SHARERS:
                    all_in.set()
                await all_in.wait()
                return (await server.call("convert_time", NOON)).text

        async with WarmServers(live=1) as warm:
            answers = await asyncio.gather(*(use(warm) for _ in range(SHARERS)))
            assert len(set(answers)) == 1
            assert "21:00" in answers[0]
            assert set(servers) == {servers[0]}
            async with warm.open(TIME) as later:
                assert later is servers[0]
            async with warm.open(GIT):  # the slot is free again
                pass

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_one_users_failure_costs_the_others_nothing_and_no_later_one() -> None:
    async def run() -> None:
        async with WarmServers(live=2) as warm, warm.open(TIME) as first:

            async def fail() -> None:
                async with warm.open(TIME) as same:
                    assert same is first
                    raise TransientError("lost")

            with pytest.raises(TransientError):
                await fail()
            async with warm.open(TIME) as other:
                assert other is not first
            assert not (await first.call("convert_time", NOON)).is_error
        assert warm.starts == 2

    asyncio.run(run())


def test_live_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        WarmServers(live=0)
