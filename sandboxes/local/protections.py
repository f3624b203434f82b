"""The walls of a sandbox, each of which can be left out alone.

Only the attack suite leaves any out: an attempt that fails proves nothing until it has been seen
to succeed where the wall is missing. Everything else uses them all; a test holds it to that.
"""

from enum import StrEnum


class Protection(StrEnum):
    """One wall. The value is its name in the table of attempts."""

    NETWORK = "network namespace"
    PROCESSES = "process namespace"
    IPC = "IPC namespace"
    HOSTNAME = "UTS namespace"
    GROUPS = "cgroup namespace"
    ENVIRONMENT = "cleared environment"
    DEVICES = "minimal /dev"
    MASKS = "masked /proc"
    READ_ONLY = "read-only binds"
    SIZES = "bounded tmpfs"
    CALLS = "system call filter"
    USER = "unprivileged user"
    CAPABILITIES = "no capabilities"
    HIDDEN_AGENT = "agent not dumpable"
    APART = "agent's own user"
    TERMINALS = "bounded terminals"
    ORPHANS = "leftovers killed"


NOTHING: frozenset[Protection] = frozenset()
