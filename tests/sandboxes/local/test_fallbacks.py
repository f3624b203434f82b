"""Limits by control groups; and where these or root's rights are missing, by other means."""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from records.errors import ConfigError, TransientError
from sandboxes.core import python_env
from sandboxes.core.owners import PREFIX, namespace, owner_name
from sandboxes.core.sandbox import ExecResult
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.lending.capacity import PoolSettings
from sandboxes.lending.pool import Pool
from sandboxes.local import backend as local
from sandboxes.local import cgroups, clean, doctor
from sandboxes.local.backend import lease
from sandboxes.local.cgroups import Mounts, mounts
from tests.sandboxes.on_host import body_of, pid_of

SMALL = SandboxTemplate(limits=Limits(memory_mb=96, processes=24, cpus=0.3))

BURN = """
import time
started = time.monotonic()
while time.monotonic() - started < 0.7:
    pass
print(time.process_time() / (time.monotonic() - started))
"""


def inside(*argv: str) -> ExecResult:
    async def go() -> ExecResult:
        async with lease(SMALL) as sandbox:
            return await sandbox.exec(argv, timeout_s=20)

    return asyncio.run(go())


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.skipif("cpu" not in cgroups.controllers(), reason="no cpu control group here")
def test_cpu_share_is_bounded() -> None:
    assert float(inside(python_env.base_python(), "-c", BURN).stdout) < 0.6


@pytest.mark.usefixtures("sandboxed")
def test_without_control_groups_each_process_is_bounded_and_the_doctor_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cgroups, "controllers", dict)
    done = inside(python_env.base_python(), "-c", "bytearray(200_000_000)")
    assert b"MemoryError" in done.stderr
    limits = inside("sh", "-c", "ulimit -t; ulimit -d").stdout.split()
    assert limits == [b"91", str(96 << 10).encode()]
    held = {entry.what: entry for entry in doctor.enforceable(None)}
    assert [held[what].holds for what in ("memory", "processes", "cpu")] == ["partly"] * 3
    assert held["time"].holds == held["network"].holds == "yes"
    assert all(entry.how for entry in held.values())
    local.unenforced.cache_clear()
    strict = SMALL.model_copy(update={"limits": Limits(strict=True)})
    with pytest.raises(ConfigError, match=r"limits\.strict: .*cannot wholly enforce memory \("):
        asyncio.run(local.LOCAL.create(strict))
    assert "do not wholly enforce: memory" in caplog.text
    local.unenforced.cache_clear()


def test_macos_is_told_what_it_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    local.unavailable.cache_clear()
    (entry,) = doctor.enforceable(local.unavailable())
    local.unavailable.cache_clear()
    assert entry.holds == "no"
    assert "Linux virtual machine or container; simulated tools work" in entry.how


def test_the_doctor_says_when_nothing_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    local.unavailable.cache_clear()
    (entry,) = doctor.enforceable(local.unavailable())
    local.unavailable.cache_clear()
    assert (entry.what, entry.holds) == ("sandbox", "no")
    assert "apt install bubblewrap" in entry.how


def test_own_groups_are_found_in_both_versions_and_in_a_container() -> None:
    v1 = (
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    )
    own = "4:memory:/jobs/a\n1:cpu,cpuacct:/\n0::/\n"
    root = "/sys/fs/cgroup"
    assert mounts(v1, own).v1 == {
        "memory": Path(root, "memory/jobs/a"), "cpu": Path(root, "cpu,cpuacct"),
    }  # fmt: skip
    v2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"
    user = "user.slice/user-1000.slice/app.scope"
    assert mounts(v2, f"0::/{user}\n") == Mounts({}, Path(root, user), Path(root))
    inside = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"
    assert mounts(inside, "0::/docker/abc/x\n").v2 == Path(root, "x")


@pytest.mark.usefixtures("sandboxed")
def test_a_v2_group_holds_a_sandbox_is_seen_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the machine's own v2 hierarchy, which may be there beside v1 without these controllers:
    joining, looking, killing and removing are real, the limits are not (no files for them)."""
    here = mounts(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    own = here.v2
    if own is None or not cgroups.can_join(own):
        pytest.skip("no v2 hierarchy here in which a group can be made")
    only: dict[cgroups.ControllerName, cgroups.Controller] = {"pids": cgroups.Controller(2, own)}
    monkeypatch.setattr(cgroups, "controllers", lambda: only)

    async def run() -> None:
        async with Pool(PoolSettings(live=1)) as pool:
            for _ in range(2):  # the second time it is proved clean by this very group
                async with pool.lease(SandboxTemplate()) as sandbox:
                    (folder,) = body_of(sandbox).group.folders
                    assert folder.parent == own
                    # `wait` starts nothing: after the line, all that will ever run does
                    server = await sandbox.open_stdio(
                        ["sh", "-c", "setsid sleep 100 & sleep 100 & echo up; wait"]
                    )
                    assert await server.read() == b"up\n"
                    inside = (folder / "cgroup.procs").read_text().split()
                    assert set(clean.descendants(pid_of(sandbox))) == set(map(int, inside))
                    assert len(inside) > 2
                await pool.settled()
            assert pool.accounts.starts == 1
            assert pool.accounts.endings == {"clean": 2}
        assert not list(own.glob(f"{PREFIX}.{owner_name()}.*"))
        lost = await local.LOCAL.create(SandboxTemplate())
        body_of(lost).group.kill()
        with pytest.raises(TransientError):
            await lost.exec(["true"])
        await lost.close()

    asyncio.run(run())
    dead = own / f"{PREFIX}.999999.0.{namespace()}.7"
    dead.mkdir()
    assert dead in cgroups.orphans()
    assert cgroups.ended(dead)
