"""How long sandboxes and MCP servers in them take, beside a plain subprocess.

    python benchmarks/bench_sandbox.py [--repeats 30] [--live 60] [--servers time,git]

Prints one JSON line per measurement: median and 95th percentile, all limits on that this machine
can enforce. The figures of sandboxes are those of `synth sandbox bench`; run by root, they are of
root and of normal users. Cases take turns, so that a change of the machine's load meets all of
them. A plain subprocess is the baseline of the same run: `true` for a command, the same server over
the SDK's own stdio client for a server.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measured import show, spread
from sandboxes.bench.callers import all_three
from sandboxes.bench.measure import figures
from sandboxes.code.projects import builtin_projects
from sandboxes.code.workspace import open_workspace
from sandboxes.lending.capacity import PoolSettings
from sandboxes.lending.leases import LeaseSandbox, available, lease
from sandboxes.lending.pool import Pool
from sandboxes.local.doctor import enforceable
from sandboxes.mcp.servers import ServerConfig, builtin_servers
from sandboxes.mcp.session import McpServer, open_server
from sandboxes.mcp.warm import WarmServers

Case = Callable[[], Awaitable[float]]
"""Runs once and returns the seconds of the part that is measured."""

WARM_UP = 3
ARGUMENTS = {
    "time": ("get_current_time", {"timezone": "Europe/Paris"}),
    "git": ("git_status", {"repo_path": "/workspace/repo"}),
}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--live", type=int, default=60)
    parser.add_argument("--servers", default="time,git")
    options = parser.parse_args()
    if (reason := available()) is not None:
        sys.exit(f"no sandbox can run here: {reason}")
    measured = all_three if os.geteuid() == 0 else figures
    for figure in await measured(repeats=options.repeats, live=options.live):
        show(figure._asdict() | limits())
    for name in options.servers.split(","):
        await measure_server(name, options.repeats)
    await measure_pools(options.repeats)


EPISODES = 16


async def measure_pools(repeats: int) -> None:
    """What a run's episodes save: a server that several share, a workspace that is used again."""
    rounds = max(2, repeats // 10)
    own = builtin_servers()["time"].model_copy(update={"writes": True})  # so it is not shared
    tool, arguments = ARGUMENTS["time"]

    async def episodes(warm: WarmServers, config: ServerConfig) -> None:
        async def one() -> None:
            async with warm.open(config) as server:
                await server.state()
                await server.call(tool, arguments)

        await asyncio.gather(*(one() for _ in range(EPISODES)))

    for case, config in (("own servers", own), ("shared servers", builtin_servers()["time"])):
        taken: list[float] = []
        starts = 0
        for _ in range(rounds):
            async with WarmServers() as warm:
                taken.append(await timed(episodes(warm, config)))
                starts += warm.starts
        name = f"{EPISODES} episodes at once, {case}"
        show({"name": name, **spread(taken), "unit": "s", "starts": starts / rounds})

    project = builtin_projects()["textgrid"]
    async with Pool(PoolSettings(live=2)) as pool:
        cases: dict[str, LeaseSandbox] = {"fresh": lease, "from the pool": pool.lease}
        seconds: dict[str, list[float]] = {case: [] for case in cases}
        for turn in range(WARM_UP + repeats):
            for case, how in cases.items():
                started = time.perf_counter()
                async with open_workspace(project, project.files, how):
                    pass
                await pool.settled()
                if turn >= WARM_UP:
                    seconds[case].append(time.perf_counter() - started)
    for case, values in seconds.items():
        show({"name": f"workspace opened and left, {case}", **spread(values), "unit": "s"})


async def timed(work: Awaitable[Any]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


async def measure_server(name: str, repeats: int) -> None:
    config = builtin_servers()[name]
    tool, arguments = ARGUMENTS[name]

    async def started(open_it: Callable[[], Any]) -> float:
        """To the first list of tools."""
        begun = time.perf_counter()
        async with open_it() as server:
            await server.list_tools()
            return time.perf_counter() - begun

    async def call(server: McpServer | Client) -> float:
        return await timed(server.call(tool, arguments) if isinstance(server, McpServer)
                           else server.call_tool(tool, arguments))  # fmt: skip

    async with open_server(config) as held, bare(name) as plain:
        starts: dict[str, Case] = {
            f"{name}_start_subprocess": lambda: started(lambda: bare(name)),
            f"{name}_start_sandbox": lambda: started(lambda: open_server(config)),
        }
        report(await measured(starts, max(3, repeats // 6), warm_up=1))
        calls: dict[str, Case] = {
            f"{name}_call_subprocess": lambda: call(plain),
            f"{name}_call_sandbox": lambda: call(held),
            f"{name}_reset_sandbox": lambda: timed(held.reset()),
            f"{name}_state_sandbox": lambda: timed(held.state()),
        }
        report(await measured(calls, repeats))


@asynccontextmanager
async def bare(name: str) -> AsyncIterator[Client]:
    """The same server as a plain subprocess; without a repository it answers with an error."""
    command = str(Path(sys.executable).parent / builtin_servers()[name].command[0])
    async with Client(StdioServerParameters(command=command, args=[]), cache=None) as client:
        yield client


async def measured(
    cases: dict[str, Case], repeats: int, warm_up: int = WARM_UP
) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(warm_up + repeats):
        for name, case in cases.items():
            took = await case()
            if turn >= warm_up:
                seconds[name].append(took)
    return seconds


def report(seconds: dict[str, list[float]]) -> None:
    for name, values in seconds.items():
        milliseconds = sorted(1000 * value for value in values)
        p95 = round(milliseconds[int(0.95 * (len(milliseconds) - 1))], 2)
        show({"name": name, **spread(milliseconds), "unit": "ms", "p95": p95, **limits()})


def limits() -> dict[str, list[str]]:
    """Those that this machine can hold: a sandbox without them starts sooner."""
    return {"limits": [entry.what for entry in enforceable(None) if entry.holds == "yes"]}


if __name__ == "__main__":
    asyncio.run(main())
