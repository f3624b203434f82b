"""Limits of single processes. They stand in, less exactly, for control groups that are missing."""

import os
import re
from collections.abc import Set

from sandboxes.core.template import Limits
from sandboxes.local import users
from sandboxes.local.cgroups import ControllerName

PENDING_SIGNALS = 8192
"""Of a user in its namespace, its timers included: a part of what the caller's own user has, who
may be the same outside."""


def rlimits_for(limits: Limits, *, have: Set[ControllerName]) -> dict[str, int]:
    """Values for the agent, and so for all it starts. `have` are the usable control groups."""
    found = {
        # no file holds so little, and of 1 alone the kernel makes no dump for a pipe either
        "RLIMIT_CORE": 1,
        "RLIMIT_MSGQUEUE": 0,  # POSIX queues would outlive a command, seen by nobody
        "RLIMIT_SIGPENDING": PENDING_SIGNALS,
        "RLIMIT_NICE": 0,
        "RLIMIT_RTPRIO": 0,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_FSIZE": limits.disk_mb << 20,
    }
    if "memory" not in have:
        found["RLIMIT_DATA"] = limits.memory_mb << 20  # not AS: Node reserves far more than it uses
    if "pids" not in have and counts_processes():
        found["RLIMIT_NPROC"] = limits.processes
    if "cpu" not in have:
        found["RLIMIT_CPU"] = int(limits.timeout_s * limits.cpus * 10) + 1
    return found


def counts_processes() -> bool:
    """Whether RLIMIT_NPROC can bound a sandbox: its users are its own, or a namespace of users has
    its own count. Kernels before 5.14 count what the caller runs outside too, so that any useful
    bound would stop the first fork."""
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return users.apart() is None or (
        version is not None and (int(version[1]), int(version[2])) >= (5, 14)
    )
