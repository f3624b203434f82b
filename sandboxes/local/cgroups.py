"""Limits on all processes of a sandbox together: one control group per controller, v1 and v2.

A group's folder is named after the process that owns it, so that the folders of owners that were
killed can be told apart and removed later. All of it is best effort by design: what a machine
cannot do is missing from `controllers()`, and `sandboxes.local.doctor` says so.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from sandboxes.core.owners import PREFIX, owner_is_dead, owner_name
from sandboxes.core.template import Limits

PERIOD_US = 100_000

SOCKET_LIMIT, SOCKET_BYTES = "memory.kmem.tcp.limit_in_bytes", 16 << 20
"""What may wait in the network sockets of a sandbox. Version 1 counts it apart from the memory
limit, and not at all where no bound is set; version 2 counts it as memory."""

ControllerName = Literal["memory", "pids", "cpu"]
NAMES: tuple[ControllerName, ...] = ("memory", "pids", "cpu")


class Controller(NamedTuple):
    version: Literal[1, 2]
    parent: Path
    """The folder in which groups of ours can be made."""


class Mounts(NamedTuple):
    """Where the control groups of this process are, from two files of /proc."""

    v1: dict[str, Path]
    """Controller -> our own group's folder."""
    v2: Path | None
    v2_top: Path | None


def mounts(mountinfo: str, own_groups: str) -> Mounts:
    own = {}
    for line in own_groups.splitlines():
        _, names, path = line.split(":", 2)
        own |= dict.fromkeys(names.split(","), path)
    v1, v2, v2_top = {}, None, None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        root, point = left.split()[3:5]
        kind, _, options = right.split()[:3]
        if kind == "cgroup":
            for name in set(options.split(",")) & set(NAMES) & set(own):
                v1[name] = below(point, root, own[name])
        elif kind == "cgroup2" and "" in own:
            v2, v2_top = below(point, root, own[""]), Path(point)
    return Mounts(v1, v2, v2_top)


def below(point: str, root: str, own: str) -> Path:
    """Our own group's folder; in a container the mount shows only what is below `root`."""
    inside = own.removeprefix(root) if root != "/" else own
    return Path(point) / inside.lstrip("/")


@cache
def controllers() -> dict[ControllerName, Controller]:
    """The controllers in which this process can make groups and move processes, by trial."""
    found: dict[ControllerName, Controller] = {}
    here = mounts(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    for name in NAMES:
        if (folder := here.v1.get(name)) and can_join(folder):
            found[name] = Controller(1, folder)
    # a process is in one v2 group only, so that one folder must do for all that are left
    best: tuple[list[ControllerName], Path] = ([], Path())
    for folder in v2_folders(here):
        with contextlib.suppress(OSError):
            given = set((folder / "cgroup.subtree_control").read_text().split())
            new: list[ControllerName] = [
                name for name in NAMES if name in given and name not in found
            ]
            if len(new) > len(best[0]) and can_join(folder):
                best = new, folder
    found.update((name, Controller(2, best[1])) for name in best[0])
    return found


def v2_folders(here: Mounts) -> list[Path]:
    """Our own group's folder and those above it, nearest first."""
    if here.v2 is None or here.v2_top is None:
        return []
    above = [here.v2, *here.v2.parents]
    return [folder for folder in above if folder.is_relative_to(here.v2_top)]


def can_join(folder: Path) -> bool:
    """Whether a group can be made in `folder` and a process of ours moved into it, by doing it."""
    trial = folder / f"{PREFIX}.{owner_name()}.trial-{threading.get_ident()}"
    try:
        trial.mkdir()
    except OSError:
        return False
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", 'echo $$ > "$0"', str(trial / "cgroup.procs")],
            stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        return done.returncode == 0
    finally:
        deadline = time.monotonic() + 5
        while not removed(trial) and time.monotonic() < deadline:
            time.sleep(0.005)


@dataclass(frozen=True, slots=True)
class ControlGroups:
    """The control groups of one sandbox, one folder per controller folder used."""

    folders: tuple[Path, ...]

    @property
    def entries(self) -> list[str]:
        """The files into which a process writes its id to join."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def kill(self) -> None:
        for folder in self.folders:
            with contextlib.suppress(OSError):
                for pid in (folder / "cgroup.procs").read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)

    def out_of_memory(self) -> int:
        """How often the kernel killed a process here because the memory limit was reached."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError):
                    for line in (folder / name).read_text().splitlines():
                        if line.startswith("oom_kill "):
                            return int(line.split()[1])
        return 0

    async def remove(self) -> None:
        """Kill what is left and remove the folders; a group is busy until its dead are reaped."""
        deadline = time.monotonic() + 5
        while left := [folder for folder in self.folders if not removed(folder)]:
            if time.monotonic() > deadline:
                raise OSError(f"control group {left[0]} is still busy after 5 s")
            self.kill()
            await asyncio.sleep(0.005)


def removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def make_group(limits: Limits, name: str) -> ControlGroups:
    """New groups for the sandbox of this name, the limits set; empty where this machine offers no
    controller."""
    folders: list[Path] = []
    try:
        for controller, (version, parent) in controllers().items():
            if (folder := parent / f"{PREFIX}.{name}") not in folders:
                folder.mkdir()
                folders.append(folder)
            for file, value in settings(controller, version, limits).items():
                if (folder / file).exists():
                    (folder / file).write_text(value)
    except OSError:
        for folder in folders:
            removed(folder)
        raise
    return ControlGroups(tuple(folders))


def settings(controller: ControllerName, version: int, limits: Limits) -> dict[str, str]:
    memory, quota = str(limits.memory_mb << 20), str(int(limits.cpus * PERIOD_US))
    if controller == "pids":
        return {"pids.max": str(limits.processes)}
    if controller == "memory":
        if version == 1:  # memsw may be missing; it must be set second, since it cannot be lower
            return {
                "memory.limit_in_bytes": memory,
                "memory.memsw.limit_in_bytes": memory,
                SOCKET_LIMIT: str(SOCKET_BYTES),
            }
        return {"memory.max": memory, "memory.swap.max": "0"}
    if version == 1:
        return {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": quota}
    return {"cpu.max": f"{quota} {PERIOD_US}"}


def swap_escapes() -> bool:
    """Whether memory of a group may be swapped out beyond its limit: the machine has swap, and
    its kernel does not count it."""
    controller, swaps = controllers().get("memory"), Path("/proc/swaps")
    if controller is None or not swaps.exists() or len(swaps.read_text().splitlines()) < 2:
        return False
    own = "memory.memsw.limit_in_bytes" if controller.version == 1 else "memory.swap.max"
    trial = controller.parent / f"{PREFIX}.{owner_name()}.trial-swap"
    try:
        trial.mkdir()
        return not (trial / own).exists()
    finally:
        removed(trial)


def orphans() -> list[Path]:
    """Folders of groups whose owner no longer runs."""
    found: dict[Path, None] = {}
    for _, parent in controllers().values():
        # an owner's own group may have been a sibling of ours
        for folder in (*parent.glob(f"{PREFIX}.*"), *parent.parent.glob(f"*/{PREFIX}.*")):
            if owner_is_dead(folder.name.removeprefix(f"{PREFIX}.")):
                found[folder] = None
    return list(found)


def ended(folder: Path) -> bool:
    """Kill what is in the group and remove it; False while it is busy with its dead."""
    ControlGroups((folder,)).kill()
    return removed(folder)
