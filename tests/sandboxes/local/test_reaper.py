"""What a killed owner leaves is found and removed, and nothing of a living one is touched."""

import asyncio
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from records.errors import ConfigError
from records.processes import ProcessId, this_process
from sandboxes.core import owners
from sandboxes.core.owners import owner_is_dead, owner_name
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.local import cgroups
from sandboxes.local.backend import lease
from sandboxes.local.reaper import reap
from sandboxes.local.snapshots import WorkspaceSnapshot
from tests.sandboxes.on_host import body_of, pid_of

ROOT = Path(__file__).parents[3]

OWNER = """
import asyncio, sys
from tests.sandboxes.forks import fork
from sandboxes.lending.capacity import PoolSettings
from sandboxes.lending.pool import Pool
from sandboxes.core.template import SandboxTemplate

MARK = sys.argv[1]

async def use(pool):
    while True:
        async with pool.lease(SandboxTemplate()) as sandbox:
            await sandbox.exec(["sh", "-c", "echo x > file; (setsid sleep $0 &); :", MARK])
            await sandbox.open_stdio(["sleep", MARK])
            snapshot = await sandbox.snapshot()
        async with fork(snapshot) as child:
            print("working", flush=True)
            await child.exec(["timeout", "0.05", "sleep", MARK])
        snapshot.remove()

async def main():
    async with Pool(PoolSettings(live=3)) as pool:
        await asyncio.gather(*(use(pool) for _ in range(3)))

asyncio.run(main())
"""


def processes_with(mark: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in words:
            found.append(int(folder.name))
    return found


def holdings(pid: int) -> list[Path]:
    """Control groups and folders of an owner."""
    groups = [
        folder
        for _, parent in cgroups.controllers().values()
        for folder in parent.glob(f"{owners.PREFIX}.{pid}.*")
    ]
    return [*groups, *owners.root_folder().glob(f"{pid}.*")]


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_owners_killed_at_random_moments_leave_nothing_behind(tmp_path: Path) -> None:
    moments, held = random.Random(5), 0
    for number in range(4):
        mark = f"{os.getpid()}.{600 + number}"
        owner = subprocess.Popen(
            [sys.executable, "-c", OWNER, mark],
            cwd=ROOT, stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=str(ROOT)),
        )  # fmt: skip
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"working\n"
        time.sleep(moments.uniform(0, 0.3))
        owner.kill()
        owner.wait()
        owner.stdout.close()
        held += len(holdings(owner.pid))
        deadline = time.monotonic() + 20
        while processes_with(mark) or holdings(owner.pid):
            assert time.monotonic() < deadline, (processes_with(mark), holdings(owner.pid))
            reap()
    assert held, "every owner happened to hold nothing; the test showed nothing"


@pytest.mark.usefixtures("sandboxed")
def test_a_living_owner_keeps_everything() -> None:
    async def go() -> None:
        async with lease(SandboxTemplate(limits=Limits(memory_mb=96))) as sandbox:
            snapshot = await sandbox.snapshot()
            before = holdings(os.getpid())
            reap()
            assert holdings(os.getpid()) == before
            assert isinstance(snapshot, WorkspaceSnapshot)
            assert snapshot.files.is_dir()
            assert (await sandbox.exec(["echo", "alive"])).stdout == b"alive\n"
            snapshot.remove()

    asyncio.run(go())


@pytest.mark.usefixtures("sandboxed")
def test_a_closed_sandbox_leaves_no_dead_process_to_be_waited_for() -> None:
    """They count for their user, who is given to the next sandbox."""

    async def go() -> list[int]:
        ids = []
        for _ in range(5):
            async with lease(SandboxTemplate(limits=Limits(memory_mb=96))) as sandbox:
                agent = body_of(sandbox).agent
                assert agent is not None
                ids += [agent.pid, pid_of(sandbox)]
        return ids

    assert [pid for pid in asyncio.run(go()) if Path(f"/proc/{pid}").exists()] == []


def test_owners_are_told_apart() -> None:
    me = this_process()
    space = owners.namespace()
    assert not owner_is_dead(f"{owner_name()}.7")
    assert owner_is_dead(f"{me.pid}.{int(me.started or 0) + 1}.{space}")  # the number came again
    assert owner_is_dead(f"{2**22 + 1}.1.{space}")
    assert not owner_is_dead(f"{2**22 + 1}.1.{int(space or 0) + 1}")  # not ours to judge
    assert not any(map(owner_is_dead, ("", "x", "snapshot-0", "12", "12.3", "../12.3.4")))
    assert ProcessId.of(os.getpid()) == me


def test_a_folder_that_others_may_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert owners.own_folder().is_dir()
    owners.root_folder().chmod(0o777)
    with pytest.raises(ConfigError, match="not a closed folder"):
        owners.root_folder()
