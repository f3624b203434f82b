"""Faults that the pool survives, made to happen: one row each, with what became of every lease.

Each fault is real: processes are killed, a disk is filled, an agent is stopped by a signal, starts
are interrupted. A lease that a fault hits ends in a TransientError; that, and no result, is what
its holder sees, so that it is tried again and never scored.
"""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from records.errors import ItemError, TransientError
from records.processes import ProcessId, is_alive
from sandboxes.core.backend import Backend
from sandboxes.core.body import Snapshot
from sandboxes.core.owners import PREFIX, root_folder
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.lending.capacity import PoolSettings
from sandboxes.lending.pool import Pool
from sandboxes.local import cgroups, clean
from sandboxes.local.backend import LOCAL, LocalBackend
from sandboxes.local.body import LocalBody
from sandboxes.local.bwrap import is_root
from sandboxes.local.reaper import reap

SMALL = SandboxTemplate(limits=Limits(memory_mb=96, processes=24, disk_mb=4, timeout_s=20))
LEASES, START_FAILURES = 40, 0.05
FOLDER = Path(__file__).resolve().parents[2]

OWNER = """
import asyncio
from sandboxes.bench.faults import SMALL
from sandboxes.lending.pool import Pool

async def main():
    async with Pool() as pool, pool.lease(SMALL) as sandbox:
        await sandbox.open_stdio(["sh", "-c", "(setsid sleep 1000 &); sleep 1000"])
        await sandbox.snapshot()
        print("ready", flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


class Survival(NamedTuple):
    fault: str
    injected: int
    seen: str
    """What a holder met with."""
    leases: str
    """How they ended, by the pool's accounts, which add up."""
    survived: bool


async def survived() -> list[Survival]:
    """Every fault in turn. AssertionError where accounts do not add up."""
    return [
        await asyncio.to_thread(owner_killed),
        await pooled("sandbox killed in mid-call", killed_in_call),
        await pooled("agent stopped (SIGSTOP) in mid-call", hung_agent),
        await pooled("its own disk filled by a command", full_disk),
        await pooled("snapshot larger than the room for it", no_room),
        *([await asyncio.to_thread(host_disk_full)] if is_root() else []),
        await pooled(f"{START_FAILURES:.0%} of starts die", flaky_starts, FlakyBackend()),
    ]


async def pooled(
    fault: str,
    work: Callable[[Pool], Awaitable[tuple[int, str, bool]]],
    backend: Backend = LOCAL,
) -> Survival:
    async with Pool(PoolSettings(live=4), backend=backend) as pool:
        injected, seen, held = await work(pool)
        await pool.settled()
        held &= await still_works(pool)
        await pool.settled()
    pool.accounts.check()
    accounts = pool.accounts
    ends = ", ".join(f"{count} {ending}" for ending, count in sorted(accounts.endings.items()))
    failed = f"; {accounts.failed_starts} of {accounts.starts} starts failed"
    told = f"{accounts.granted} granted: {ends}" + (failed if accounts.failed_starts else "")
    return Survival(fault, injected, seen, told, held and accounts.alive == 0)


async def still_works(pool: Pool) -> bool:
    """A lease after the fault: an empty sandbox that answers."""
    async with pool.lease(SMALL) as sandbox:
        done = await sandbox.exec(["sh", "-c", "ls -A /workspace /tmp | grep -v :; echo fine"])
        return done.stdout.split() == [b"fine"]


def owner_killed() -> Survival:
    """kill -9; its sandbox dies with it, and the reaper removes its groups and snapshot."""
    process = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, cwd=FOLDER)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        inside = [ProcessId.of(pid) for pid in clean.descendants(process.pid)[1:]]
        held = len(owned(process.pid))
        process.kill()
    deadline = time.monotonic() + 20
    while (left := owned(process.pid)) or any(map(is_alive, inside)):
        reap()
        if time.monotonic() > deadline:
            break
    alive = sum(map(is_alive, inside))
    seen = f"left of {len(inside)} processes: {alive}; of {held} folders after reap: {len(left)}"
    gone = not alive and not left
    return Survival("owner killed (kill -9)", 1, seen, "1 granted: ended with its owner", gone)


def owned(pid: int) -> list[Path]:
    folders = {parent for _, parent in cgroups.controllers().values()}
    groups = [path for parent in folders for path in parent.glob(f"{PREFIX}.{pid}.*")]
    return [*groups, *root_folder().glob(f"{pid}.*")]


FULL = """
import asyncio
from records.errors import TransientError
from sandboxes.bench.faults import SMALL
from sandboxes.core.owners import own_folder
from sandboxes.lending.pool import Pool

async def main():
    async with Pool() as pool:
        async with pool.lease(SMALL) as sandbox:
            await sandbox.write_file("base", bytes(3 << 20))
            try:
                await sandbox.snapshot()
            except TransientError as error:
                print(error, "|", len(list(own_folder().glob("snapshot-*"))), end=" | ")
        async with pool.lease(SMALL) as sandbox:
            await sandbox.exec(["true"])
        await pool.settled()
    ends = pool.accounts.endings
    print(", ".join(f"{count} {ending}" for ending, count in ends.items()))

asyncio.run(main())
"""


def host_disk_full() -> Survival:
    """The host's temporary folder, a small disk mounted for one process, has no room."""
    with tempfile.TemporaryDirectory() as folder:
        mount = 'mount -t tmpfs -o size=1m tmpfs "$1" && TMPDIR=$1 exec "$2" -c "$3"'
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", mount, "sh", folder, sys.executable, FULL],
            capture_output=True, text=True, cwd=FOLDER, check=False,
        )  # fmt: skip
    error, left, ends = [*done.stdout.strip().split(" | "), "", "", ""][:3]
    held = "No space left" in error and left == "0" and ends == "2 clean"
    seen = f"TransientError: {error}" if held else done.stderr[-200:]
    return Survival("the host's disk full at a snapshot", 1, seen, f"2 granted: {ends}", held)


def pid_of(sandbox: Sandbox) -> int:
    """The host's id of a sandbox's outermost process."""
    assert isinstance(sandbox.body, LocalBody)
    return sandbox.body.pid


async def killed_in_call(pool: Pool) -> tuple[int, str, bool]:
    errors = 0
    for _ in range(4):
        async with pool.lease(SMALL) as sandbox:
            call = asyncio.create_task(sandbox.exec(["sleep", "15"]))
            await sandbox.ping()
            os.kill(clean.descendants(pid_of(sandbox))[1], signal.SIGKILL)
            with contextlib.suppress(TransientError):
                await call
                errors -= 1
            errors += 1
    return 4, f"{errors} TransientErrors", errors == 4


async def hung_agent(pool: Pool) -> tuple[int, str, bool]:
    """Nothing answers any more; the lease runs out."""
    async with pool.lease(SMALL, lease_s=1.0) as sandbox:
        os.kill(clean.descendants(pid_of(sandbox))[1], signal.SIGSTOP)
        try:
            await sandbox.exec(["true"])
        except TransientError as error:
            return 1, f"TransientError: {error}", True
    return 1, "an answer", False


async def full_disk(pool: Pool) -> tuple[int, str, bool]:
    async with pool.lease(SMALL) as sandbox:
        fill = "for i in 1 2 3 4; do head -c 3000000 /dev/zero > /workspace/$i; done; echo $?"
        done = await sandbox.exec(["sh", "-c", fill])
    held = b"No space left" in done.stderr
    return 1, "the command's own error: No space left on device", held


async def no_room(pool: Pool) -> tuple[int, str, bool]:
    """More than a snapshot may take, by a fork that fills its own disk beside what it came with."""
    async with pool.lease(SMALL) as sandbox:
        await sandbox.write_file("base", bytes(3 << 20))
        snapshot = await sandbox.snapshot()
    try:
        async with pool.lease(SMALL, snapshot=snapshot) as child:
            try:
                await child.write_file("more", bytes(3 << 20))
                await child.snapshot()
            except ItemError as error:
                return 1, str(error), True
        return 1, "a snapshot", False
    finally:
        snapshot.remove()


class FlakyBackend(LocalBackend):
    """Some of its sandboxes are killed before anyone gets them."""

    def __init__(self) -> None:
        super().__init__()
        self._draws = random.Random(5)

    async def create(self, template: SandboxTemplate, snapshot: Snapshot | None = None) -> Sandbox:
        sandbox = await super().create(template, snapshot)
        if self._draws.random() < START_FAILURES:
            os.kill(pid_of(sandbox), signal.SIGKILL)
            await sandbox.close()
            raise TransientError("the sandbox ended at its start")
        return sandbox


async def flaky_starts(pool: Pool) -> tuple[int, str, bool]:
    fresh, done = SMALL.model_copy(update={"recycle": False}), 0

    async def one() -> None:
        nonlocal done
        async with pool.lease(fresh) as sandbox:
            worked = (await sandbox.exec(["true"])).exit_code == 0
            done += worked

    await asyncio.gather(*(one() for _ in range(LEASES)))
    return pool.accounts.failed_starts, f"{done} of {LEASES} leases worked", done == LEASES
