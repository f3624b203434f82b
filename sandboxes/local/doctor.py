"""What this machine can enforce of a sandbox's limits, and how. Data for `synth sandbox doctor`."""

import os
from pathlib import Path
from typing import Literal, NamedTuple

from sandboxes.core import clock
from sandboxes.local import cgroups, rlimits, seccomp, snapshots, subordinates, users, watcher
from sandboxes.local.bwrap import is_root

Holds = Literal["yes", "partly", "no"]


class Enforcement(NamedTuple):
    what: str
    holds: Holds
    how: str
    """By what means, or what is missing and what to do about it."""


def enforceable(unavailable: str | None) -> list[Enforcement]:
    """One entry per promise, in order of importance. Alone "sandbox: no" where none can run, for
    the reason given."""
    if (reason := unavailable) is not None:
        return [Enforcement("sandbox", "no", f"{reason}; nothing is run without one")]
    return [
        Enforcement("sandbox", "yes", "bubblewrap: namespaces of its own, minimal read-only root"),
        Enforcement("environment", "yes", "cleared; a fixed one, and what the template adds"),
        rights(),
        users_apart(),
        agent(),
        Enforcement(
            "network",
            "yes",
            "an empty namespace of its own; a proxy to declared hosts; shared to install packages",
        ),
        system_calls(),
        Enforcement("time", "yes", "the agent inside kills what passes its wall clock"),
        *map(group, cgroups.NAMES),
        kernel_memory(),
        Enforcement("output", "yes", "the agent keeps so many bytes and throws the rest away"),
        disk(),
        Enforcement("open files", "yes", "RLIMIT_NOFILE of each process"),
        watched("file locks", watcher.LOCKS, watcher.MOST_LOCKS),
        watched("terminals", watcher.TERMINALS, watcher.MOST_TERMINALS),
        Enforcement("message queues", "yes", "RLIMIT_MSGQUEUE: none; others are seen and ended"),
        stopped_clock(),
        forks(),
    ]


def gaps() -> list[Enforcement]:
    """What is promised of every sandbox and does not wholly hold here."""
    return [
        found for found in enforceable(None) if found.holds != "yes" and found.what not in NO_LIMITS
    ]


NO_LIMITS = ("users", "clock", "forks")
"""A caller with one user has no other to give; a template asks for a clock; a fork has a slower
way."""


def forks() -> Enforcement:
    if snapshots.overlay_works():
        return Enforcement("forks", "yes", "overlayfs: a snapshot is shared, changes are its own")
    if users.apart() is None:
        how = "each fork copies its snapshot: only root can give files to its users without copying"
        return Enforcement("forks", "partly", how)
    how = "overlayfs cannot be mounted here: each fork copies its snapshot"
    return Enforcement("forks", "partly", how)


def rights() -> Enforcement:
    if users.apart() is None:
        how = "a user namespace without root, entered before any program runs"
        return Enforcement("rights", "yes", how)
    how = "a user namespace: without capabilities, on the host still your own user"
    return Enforcement("rights", "yes", how)


def users_apart() -> Enforcement:
    reason = users.apart()
    if reason is None and is_root():
        return Enforcement("users", "yes", "on the host each sandbox has users of its own")
    if reason is None:
        how = (
            f"each sandbox has users of its own, of your range in {subordinates.SUBUID}; files that"
            " programs watch count as yours too, and one sandbox may have of these a part in"
            f" {subordinates.SHARE}"
        )
        return Enforcement("users", "yes", how)
    how = (
        "your own user in every sandbox: what the kernel counts for a user (watched files, full"
        f" pipes, descriptors on their way) one can use up for all; you have no others: {reason}"
    )
    return Enforcement("users", "partly", how)


def agent() -> Enforcement:
    if users.apart() is None:
        return Enforcement("agent", "yes", "process 1, of another user than programs, not dumpable")
    if seccomp.filter_program() is None:
        how = "process 1 and not dumpable, but of the programs' user, and no filter keeps them off"
        return Enforcement("agent", "partly", how)
    how = "process 1, not dumpable; of the programs' user, and no system call of theirs names it"
    return Enforcement("agent", "yes", how)


def system_calls() -> Enforcement:
    if seccomp.filter_program() is None:
        how = "no filter for this processor; namespaces can be made inside"
        return Enforcement("system calls", "no", how)
    how = "seccomp filter: those that ordinary programs need; no netlink sockets among them"
    return Enforcement("system calls", "yes", how)


def kernel_memory() -> Enforcement:
    """Of what the kernel keeps for a program beside its own memory: sockets, pipes, objects."""
    what, controller = "kernel memory", cgroups.controllers().get("memory")
    if controller is None:
        return Enforcement(what, "no", "no control group: as much as fits into the open files")
    if controller.version == 2:
        how = "in the memory limit, sockets too; 256 bytes of an open file are charged to nobody"
        return Enforcement(what, "yes", how)
    if not (controller.parent / cgroups.SOCKET_LIMIT).exists():
        return Enforcement(what, "partly", "this kernel does not count what waits in sockets")
    how = (
        f"in the memory limit, and {cgroups.SOCKET_BYTES >> 20} MB more for network sockets;"
        " 256 bytes of an open file are charged to nobody"
    )
    return Enforcement(what, "yes", how)


def watched(what: str, source: Path, most: int) -> Enforcement:
    if not os.access(source, os.R_OK):
        return Enforcement(what, "no", f"{source} cannot be read here")
    how = f"counted {1 / watcher.LOOK_S:g} times a second: with over {most} its programs are killed"
    return Enforcement(what, "yes", how)


STAND_INS: dict[cgroups.ControllerName, str] = {
    "memory": "RLIMIT_DATA bounds each process, not all together",
    "pids": "RLIMIT_NPROC bounds those of its user namespace",
    "cpu": "RLIMIT_CPU bounds each process's seconds, not the share",
}


def group(name: cgroups.ControllerName) -> Enforcement:
    what = {"pids": "processes"}.get(name, name)
    if name == "memory" and cgroups.swap_escapes():
        how = "control group, but the kernel does not count swap, and this machine has some"
        return Enforcement(what, "partly", how)
    if controller := cgroups.controllers().get(name):
        return Enforcement(what, "yes", f"control group v{controller.version}")
    missing = "no control group can be made here"
    if name == "pids" and not rlimits.counts_processes():
        return Enforcement(what, "no", f"{missing}, and the kernel is older than 5.14")
    return Enforcement(what, "partly", f"{missing}; {STAND_INS[name]}")


def disk() -> Enforcement:
    if "memory" in cgroups.controllers():
        how = "tmpfs of bounded size; the number of files is bounded by the memory they take"
        return Enforcement("disk", "yes", how)
    return Enforcement(
        "disk", "partly", "tmpfs of bounded size; the number of files is not bounded"
    )


def stopped_clock() -> Enforcement:
    if clock.libfaketime() is not None:
        return Enforcement("clock", "yes", "Python, Node and git by hooks, the rest by libfaketime")
    how = "Python, Node and git by hooks; others see the real time (apt install faketime)"
    return Enforcement("clock", "partly", how)
