"""How long sandboxes take on this machine, beside a plain subprocess of the same run."""

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from sandboxes.bench import memory
from sandboxes.core.owners import PREFIX, owner_name
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.lending.capacity import PoolSettings
from sandboxes.lending.leases import lease
from sandboxes.lending.pool import Pool
from sandboxes.local import cgroups
from sandboxes.local.body import LocalBody

WARM_UP = 3
SMALL = SandboxTemplate(limits=Limits(memory_mb=64, processes=16, disk_mb=4))
AT_ONCE = 4
"""Starts at once while many are opened."""


class Figure(NamedTuple):
    name: str
    value: float
    """The median, where there are several."""
    p95: float | None
    unit: str
    n: int
    aim: str


async def figures(*, repeats: int, live: int) -> list[Figure]:
    """Every figure, the cases of latencies in turns, so that load meets all of them."""
    found = await latencies(repeats)
    for workers in (1, 2):
        rate = await create_destroy(workers, repeats)
        aim = "at least 20" if workers == 2 else ""
        found.append(
            Figure(f"create and destroy, {workers} workers", rate, None, "1/s", repeats, aim)
        )
    return found + await many(live)


async def latencies(repeats: int) -> list[Figure]:
    async with Pool(PoolSettings(live=4)) as pool, lease(SandboxTemplate()) as held:
        await pool.warm(SandboxTemplate(), 1)
        cases: dict[tuple[str, str], Callable[[], Awaitable[None]]] = {
            ("plain subprocess", ""): plain,
            ("fresh sandbox + exec + end", "at most 45"): fresh,
            ("warm lease + exec", "at most 3"): lambda: warm(pool),
            ("its cleaning and proof", ""): pool.settled,  # of the case before it
            ("exec in a held sandbox", "at most 2"): lambda: held_exec(held),
        }
        seconds: dict[tuple[str, str], list[float]] = {case: [] for case in cases}
        for turn in range(WARM_UP + repeats):
            for case, run in cases.items():
                started = time.perf_counter()
                await run()
                if turn >= WARM_UP:
                    seconds[case].append(time.perf_counter() - started)
    return [of(name, aim, values) for (name, aim), values in seconds.items()]


def of(name: str, aim: str, seconds: list[float]) -> Figure:
    taken = sorted(1000 * value for value in seconds)
    high = taken[int(0.95 * (len(taken) - 1))]
    return Figure(name, round(statistics.median(taken), 2), round(high, 2), "ms", len(taken), aim)


async def plain() -> None:
    await (await asyncio.create_subprocess_exec("/bin/true")).wait()


async def fresh() -> None:
    async with lease(SandboxTemplate()) as sandbox:
        await sandbox.exec(["/bin/true"])


async def warm(pool: Pool) -> None:
    async with pool.lease(SandboxTemplate()) as sandbox:
        await sandbox.exec(["/bin/true"])


async def held_exec(sandbox: Sandbox) -> None:
    await sandbox.exec(["/bin/true"])


async def create_destroy(workers: int, count: int) -> float:
    """Sandboxes per second, each with one command, by that many workers in one process."""
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await fresh()

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(workers)))
    return round(count / (time.perf_counter() - started), 1)


class Many(NamedTuple):
    opened_s: float
    answered: int
    exec_s: list[float]
    processes_mb: float
    kernel_mb: float
    """The kernel's own memory, by how much it grew: what others do here meanwhile counts, too."""
    closed_s: float
    left: int
    """Processes below this one, and control groups of it, that are there afterwards."""


async def hold_many(count: int) -> Many:
    """`count` sandboxes alive at once; then a command in every one of them; then none."""
    answers, took = [], []
    before, kernel = remains(), memory.kernel_mb()
    async with AsyncExitStack() as stack:
        started, gate, sandboxes = time.perf_counter(), asyncio.Semaphore(AT_ONCE), []

        async def opened() -> None:
            async with gate:
                sandboxes.append(await stack.enter_async_context(lease(SMALL)))

        await asyncio.gather(*(opened() for _ in range(count)))
        opened_s = time.perf_counter() - started
        for number, sandbox in enumerate(sandboxes):
            begun = time.perf_counter()
            done = await sandbox.exec(["echo", str(number)])
            took.append(time.perf_counter() - begun)
            answers.append(done.stdout == f"{number}\n".encode())
        kernel = memory.kernel_mb() - kernel
        weight = memory.processes_mb(pid for s in sandboxes for pid in processes_of(s))
        closing = time.perf_counter()
        for sandbox in sandboxes:
            sandbox.end("all are ended")
    closed_s = time.perf_counter() - closing
    return Many(opened_s, sum(answers), took, weight, kernel, closed_s, remains() - before)


def processes_of(sandbox: Sandbox) -> tuple[int, int]:
    """bubblewrap's id and the agent's, on the host."""
    body = sandbox.body
    assert isinstance(body, LocalBody)
    assert body.agent is not None
    return body.pid, body.agent.pid


def remains() -> int:
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    below = sum(len((task / "children").read_text().split()) for task in tasks)
    pattern = f"{PREFIX}.{owner_name()}.*"
    folders = {parent for _, parent in cgroups.controllers().values()}
    return below + sum(len(list(parent.glob(pattern))) for parent in folders)


async def many(count: int) -> list[Figure]:
    seen = await hold_many(count)
    own, kernel = seen.processes_mb / count, seen.kernel_mb / count
    return [
        Figure("alive at once", count, None, "sandboxes", 1, ""),
        Figure("- that answered", seen.answered, None, "sandboxes", 1, f"{count}"),
        of("- exec in one of them", "", seen.exec_s),
        Figure("- opening them", round(seen.opened_s, 1), None, "s", 1, ""),
        Figure("- memory of one", round(own + kernel, 2), None, "MB", count, "at most 5"),
        Figure("  - of its two processes (PSS)", round(own, 2), None, "MB", count, ""),
        Figure("  - of the kernel for it", round(kernel, 2), None, "MB", count, ""),
        Figure("- ending them", round(seen.closed_s, 1), None, "s", 1, ""),
        Figure("- processes and groups left behind", seen.left, None, "", 1, "0"),
    ]
