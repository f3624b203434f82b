"""Whether a sandbox that was used is as it was before, seen from the host.

Nothing that ran inside can lie here: everything is read from the host's /proc, from the mounted
folders and from the control groups. Only System V objects are counted by the agent, since the host
cannot see another IPC namespace; the agent is not dumpable and no command can trace it.

Compared, field by field, with what was seen before the first use (`SandboxTraces`): the processes
(with their start times), their namespaces, resource limits, nice values, scheduling classes and
slices, I/O classes, CPUs, out-of-memory scores, users, capabilities, signals and threads, the
agent's descriptors (where it has a user of its own), the mounts, every folder that can be written
(owner, mode, attributes, names in it, blocks and inodes used), terminals, sockets (those still
closing too), and the control groups' limits and process count. Memory in use may differ by
MEMORY_SLACK.
POSIX message queues cannot be made at all (`sandboxes.local.rlimits`), settings of the namespaces
are read-only, and of the agent itself no program may change anything (`sandboxes.local.seccomp`).

A used sandbox can still be told from a fresh one, and a holder who wants to can leave numbers in
it for the next: the numbers that processes, inodes, ports, terminals and System V objects get next
only go up; the network namespace counts packets, and process 1 the time and faults of its dead
children; folders bear the time of their last wipe; and what was read from shared files is in the
machine's caches. Nobody who must not hear from the last holder is given a used sandbox
(`SandboxTemplate.recycle`).
"""

import asyncio
import contextlib
import ctypes
import os
import platform
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sandboxes.core.template import WRITABLE
from sandboxes.local.cgroups import ControlGroups
from sandboxes.local.seccomp import MACHINES

MEMORY_SLACK = 16 << 20
"""Bytes more than before: the agent's heap, and what the kernel keeps for speed."""

PATIENCE_S = 0.25
"""How long what is about to go, such as a socket's last state, may take to be gone."""

GROUP_FILES = (
    "pids.current", "pids.max", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
    "memory.kmem.tcp.limit_in_bytes", "memory.max", "memory.swap.max", "cpu.cfs_quota_us",
    "cpu.cfs_period_us", "cpu.max",
)  # fmt: skip


STATUS_LINES = (
    "Threads", "Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "Seccomp_filters", "CapInh",
    "CapPrm", "CapEff", "CapBnd", "CapAmb", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt",
)  # fmt: skip
"""Lines of /proc/<id>/status."""

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "user", "uts")


class Folder(NamedTuple):
    path: str
    mode: int
    owner: tuple[int, int]
    attributes: tuple[str, ...]
    names: tuple[str, ...]
    blocks_used: int
    inodes_used: int


class SandboxTraces(NamedTuple):
    """All but `memory` is equal in equal sandboxes of one start."""

    processes: tuple[tuple[str, ...], ...]
    namespaces: tuple[str, ...]
    limits: tuple[str, ...]
    cpus: tuple[frozenset[int], ...]
    scheduling: tuple[str, ...]
    status: tuple[str, ...]
    descriptors: tuple[str, ...]
    mounts: str
    folders: tuple[Folder, ...]
    terminals: tuple[str, ...]
    sockets: tuple[int, ...]
    groups: tuple[str, ...]
    memory: int
    """Bytes charged to the control group, 0 where there is none."""


class UnseenError(Exception):
    """The sandbox is not there to be looked at, or is not built as one of ours."""


def look(outer: int, group: ControlGroups) -> SandboxTraces:
    """What is seen of the sandbox whose outermost process is `outer`. Raises UnseenError."""
    try:
        tree = descendants(outer)
        if len(tree) < 2:
            raise UnseenError(f"{len(tree)} processes; a sandbox has two of its own")
        agent = tree[1]  # bubblewrap's only child
        members = {pid for folder in group.folders for pid in pids_in(folder)}
        if members and members != set(tree):
            raise UnseenError(f"processes that left the tree: {members ^ set(tree)}")
        proc = Path("/proc", str(agent))
        return SandboxTraces(
            processes=tuple(identity(pid) for pid in tree),
            namespaces=tuple(str((proc / "ns" / name).readlink()) for name in NAMESPACES),
            limits=tuple(Path(f"/proc/{pid}/limits").read_text() for pid in (outer, agent)),
            cpus=tuple(frozenset(os.sched_getaffinity(pid)) for pid in (outer, agent)),
            scheduling=tuple(scheduling(pid) for pid in (outer, agent)),
            status=tuple(status(pid) for pid in (outer, agent)),
            descriptors=descriptors(proc / "fd"),
            mounts=(proc / "mountinfo").read_text(),
            folders=tuple(folder(f"{proc}/root", path) for path in WRITABLE),
            terminals=tuple(sorted(os.listdir(proc / "root/dev/pts"))),  # noqa: PTH208
            sockets=sockets((proc / "net/sockstat").read_text()),
            groups=tuple(text_of(path / name) for path in group.folders for name in GROUP_FILES),
            memory=memory(group),
        )
    except (OSError, ValueError, IndexError) as error:
        raise UnseenError(str(error)) from error


def descendants(pid: int) -> list[int]:
    """`pid` and all below it, breadth first: in a process namespace nothing can leave the tree."""
    tree = [pid]
    for each in tree:
        for task in Path(f"/proc/{each}/task").iterdir():
            tree += map(int, (task / "children").read_text().split())
    return tree


def descriptors(path: Path) -> tuple[str, ...]:
    """Empty where the agent has the caller's own user: its are shown to nobody then, and are nobody
    else's to change."""
    try:
        return tuple(sorted(f"{fd.name} {fd.readlink()}" for fd in path.iterdir()))
    except PermissionError:
        return ()


def identity(pid: int) -> tuple[str, ...]:
    """Id, name, priority, nice value, start time, real-time priority, policy, memory score."""
    name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    fields = rest.split()
    score = text_of(Path(f"/proc/{pid}/oom_score_adj"))
    return (name, *(fields[place] for place in (15, 16, 19, 37, 38)), score)


@cache
def library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def scheduling(pid: int) -> str:
    """I/O class, and struct sched_attr, which holds the length of a turn; Python asks for neither.
    Empty for processors whose calls are not known here."""
    machine = MACHINES.get(platform.machine())
    if machine is None:
        return ""
    attributes = ctypes.create_string_buffer(64)
    call = library().syscall
    io_class = call(machine.numbers["ioprio_get"], 1, pid)
    failed = call(machine.numbers["sched_getattr"], pid, attributes, len(attributes), 0)
    if io_class < 0 or failed:
        raise OSError(ctypes.get_errno(), f"process {pid} is not seen")
    return f"{io_class} {attributes.raw.hex()}"


def status(pid: int) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return "\n".join(line for line in lines if line.partition(":")[0] in STATUS_LINES)


def folder(root: str, path: str) -> Folder:
    fd = os.open(root + path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found, space = os.fstat(fd), os.fstatvfs(fd)
        attributes: list[str] = []
        with contextlib.suppress(OSError):  # a kernel whose tmpfs has none
            attributes = os.listxattr(fd)
        return Folder(
            path, found.st_mode, (found.st_uid, found.st_gid), tuple(attributes),
            tuple(sorted(os.listdir(fd))),  # noqa: PTH208
            space.f_blocks - space.f_bfree, space.f_files - space.f_ffree,
        )  # fmt: skip
    finally:
        os.close(fd)


def sockets(sockstat: str) -> tuple[int, ...]:
    """Sockets of the network namespace, and TCP connections that are still closing."""
    lines = {
        key: rest.split() for key, _, rest in (s.partition(":") for s in sockstat.splitlines())
    }
    tcp = lines["TCP"]
    return int(lines["sockets"][1]), int(tcp[tcp.index("tw") + 1])


def pids_in(path: Path) -> list[int]:
    return [int(pid) for pid in (path / "cgroup.procs").read_text().split()]


def text_of(path: Path) -> str:
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""


def memory(group: ControlGroups) -> int:
    for path in group.folders:
        for name in ("memory.usage_in_bytes", "memory.current"):
            if text := text_of(path / name):
                return int(text)
    return 0


def give_memory_back(group: ControlGroups) -> None:
    """Ask the kernel to drop what it keeps for this group; its pages of files, mostly."""
    for path in group.folders:
        for name, value in (("memory.force_empty", "0"), ("memory.reclaim", str(1 << 30))):
            with contextlib.suppress(OSError):  # not in this version, or less than all could go
                if (path / name).exists():
                    (path / name).write_text(value)


def differences(before: SandboxTraces, now: SandboxTraces) -> list[str]:
    """Names of the fields that differ. No sandbox has sockets of its own, only bubblewrap's, which
    may still be closing when `before` is seen."""
    before = before._replace(sockets=(0, 0))
    found = [
        name
        for name, old, new in zip(SandboxTraces._fields, before, now, strict=True)
        if name != "memory" and old != new
    ]
    return found + ["memory"] * (now.memory > before.memory + MEMORY_SLACK)


async def proved_clean(outer: int, group: ControlGroups, before: SandboxTraces) -> list[str]:
    """What still differs from `before` after some patience: empty is the proof."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        try:
            found = differences(before, look(outer, group))
        except UnseenError as error:
            found = [f"unseen: {error}"]
        if not found or asyncio.get_running_loop().time() > deadline:
            return found
        if "memory" in found:
            give_memory_back(group)
        await asyncio.sleep(0.002)
