"""A system call filter, as the BPF program that is loaded before the first program inside.

It lets through the calls that `sandboxes.local.syscalls` lists, and some of these for some
arguments alone (`CHECKS`). What is left out is what the other walls rest on (namespaces, mounts,
tracing, keyrings), what widens the kernel's surface (BPF, io_uring, rare kinds of sockets), what is
charged to nobody (netlink sockets, asynchronous I/O of the old kind) and what steers process 1, the
agent, which may be of the same user.

Of arguments the low half is looked at: those checked are of 32 bits, or their high half has no
meaning. What a pointer leads to no filter sees. On other processors there is no filter, and the
doctor says so.
"""

import errno
import platform
import struct
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from sandboxes.local.syscalls import ABSENT, ALLOWED, ARM64_NUMBERS, DONE, X86_64_NUMBERS

FilterStep = tuple[int, int, int, int]
"""Code, jump if true, jump if false, constant: 8 bytes."""

LOAD, AND, JUMP, JUMP_EQ, JUMP_GE, JUMP_SET, RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCH, ARGUMENTS = 0, 4, 16
"""Offsets in struct seccomp_data; of an argument's low half on these little-endian machines."""

ALLOW, KILL, REFUSE = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
"""What the filter returns; to REFUSE belongs an error, of which 0 is success."""


class Machine(NamedTuple):
    audit_arch: int
    numbers: dict[str, int]
    """Every call that is known."""
    x32: bool
    """Whether the same architecture also has calls numbered from 0x40000000."""


MACHINES = {
    "x86_64": Machine(0xC000003E, X86_64_NUMBERS, x32=True),
    "aarch64": Machine(0xC00000B7, ARM64_NUMBERS, x32=False),
}
MACHINES["arm64"] = MACHINES["aarch64"]


class ArgumentCheck(NamedTuple):
    """A call is refused with `error` where an argument is one of `values`, or, with `only`, where
    it is none of them; with `bits` where it has one of these."""

    argument: int
    values: tuple[int, ...] = ()
    error: int = errno.EPERM
    only: bool = False
    mask: int = 0xFFFF_FFFF
    """What of the argument is compared."""
    bits: int = 0
    where: tuple[int, int] | None = None
    """An argument and its value without which there is nothing to check."""


NEW_NAMESPACES = 0x7E02_0000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""

FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6. Not AF_NETLINK: what waits in such a socket is charged to nobody.
Without it names of network interfaces are not found (`os.networkInterfaces` of Node throws)."""

TYPES, PROTOCOLS = (1, 2, 5), (0, 6, 17)
"""Streams, datagrams, sequenced packets; the usual protocol of a type, TCP, UDP."""

SOCKET = (
    ArgumentCheck(0, FAMILIES, errno.EAFNOSUPPORT, only=True),
    ArgumentCheck(1, TYPES, only=True, mask=0xF),
    ArgumentCheck(2, PROTOCOLS, errno.EPROTONOSUPPORT, only=True),
)

TERMINAL_REQUESTS = (0x5412, 0x541C, 0x541D, 0x5423)
"""TIOCSTI types for others, TIOCLINUX and TIOCCONS are of the console, TIOCSETD loads modules."""

OWN_OPTIONS = (
    *(1, 2, 3, 4, 7, 8, 15, 16),  # death signal, dumpable, capabilities kept, name
    *(21, 23, 24, 27, 29, 30),  # reading the filter's mode, the bounding set, secure bits; timers
    *(36, 37, 38, 39, 40, 41, 42, 47),  # subreaper, no new rights, huge pages, ambient rights
    *(50, 51, 52, 53, 54, 55, 56, 60, 61, 63, 64, 65, 66),  # vectors, speculation, pointers
    *(0x5356_4D41, 0x5961_6D61, 0x4155_5856),  # names of memory, tracers, auxiliary vector
)  # fmt: skip
"""Of prctl. Others are unknown, as on an older kernel: a filter of one's own, a shared core."""

CORE, DONE_INSTEAD = 4, 0
"""RLIMIT_CORE: a program that seems to change it does not. It is 1, for which alone the kernel does
not run the program of the host that `kernel.core_pattern` may name (`sandboxes.local.rlimits`)."""

AGENT = 1
"""Its number inside. The kernel keeps signals that it does not handle from it, nothing else."""

NOT_THE_AGENT = ArgumentCheck(0, (AGENT,))

CHECKS: dict[str, tuple[ArgumentCheck, ...]] = {
    "clone": (
        ArgumentCheck(0, bits=NEW_NAMESPACES),
        # CLONE_FILES without CLONE_THREAD: locks of a table of files that outlives who took them
        # name no living process, so that too many of them are nobody's
        ArgumentCheck(0, (0x400,), mask=0x1_0400),
    ),
    "socket": SOCKET,
    "socketpair": SOCKET,
    "ioctl": (ArgumentCheck(1, TERMINAL_REQUESTS),),
    "prctl": (ArgumentCheck(0, OWN_OPTIONS, errno.EINVAL, only=True),),
    "personality": (ArgumentCheck(0, (0, 0xFFFF_FFFF), only=True),),
    # locks of an open file (F_OFD_*) name no process, so that too many of them are nobody's; leases
    # and notices (F_SETLEASE, F_NOTIFY) hold up others that open the same shared file
    "fcntl": (ArgumentCheck(1, (36, 37, 38, 1024, 1026), errno.EINVAL),),
    # filters of packets take of what the kernel has for all filters of the machine, and groups of
    # receivers outlive their sockets by seconds
    "setsockopt": (
        ArgumentCheck(2, (26, 51), where=(1, 1)),  # SO_ATTACH_FILTER and _REUSEPORT_CBPF
        ArgumentCheck(2, (20, 42), where=(1, 41)),  # IPV6_JOIN_GROUP, MCAST_JOIN_GROUP
    ),
    "setpriority": (
        ArgumentCheck(0, (2,)),  # PRIO_USER: all processes of one user
        ArgumentCheck(1, (AGENT,)),
    ),
    "ioprio_set": (ArgumentCheck(0, (3,)), ArgumentCheck(1, (AGENT,))),  # IOPRIO_WHO_USER
    "setrlimit": (ArgumentCheck(0, (CORE,), DONE_INSTEAD),),
    "tgkill": (NOT_THE_AGENT, ArgumentCheck(1, (AGENT,))),
    "rt_tgsigqueueinfo": (NOT_THE_AGENT, ArgumentCheck(1, (AGENT,))),
} | dict.fromkeys(
    (
        "kill", "tkill", "rt_sigqueueinfo", "pidfd_open", "prlimit64", "sched_setaffinity",
        "sched_setattr", "sched_setparam", "sched_setscheduler",
    ),
    (NOT_THE_AGENT,),
)  # fmt: skip


CORE_BY_PRLIMIT: tuple[FilterStep, ...] = (
    (LOAD, 0, 0, ARGUMENTS + 8),
    (JUMP_EQ, 0, 5, CORE),
    (LOAD, 0, 0, ARGUMENTS + 16),  # the new value's address: none if the call only reads
    (JUMP_EQ, 0, 2, 0),
    (LOAD, 0, 0, ARGUMENTS + 20),
    (JUMP_EQ, 1, 0, 0),
    (RETURN, 0, 0, REFUSE | DONE_INSTEAD),
)


def filter_program() -> bytes | None:
    """The filter for this machine, None where its system calls are not known here."""
    machine = MACHINES.get(platform.machine())
    return None if machine is None else program(machine)


def program(machine: Machine) -> bytes:
    """All calls in the order of their numbers, as ranges of one outcome, found by halving."""
    code = [(LOAD, 0, 0, ARCH), (JUMP_EQ, 1, 0, machine.audit_arch), (RETURN, 0, 0, KILL)]
    code += [(LOAD, 0, 0, NUMBER)]
    if machine.x32:
        code += [(JUMP_GE, 0, 1, 0x4000_0000), (RETURN, 0, 0, REFUSE | errno.ENOSYS)]
    code += halved(ranges(machine))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def ranges(machine: Machine) -> list[tuple[int, list[FilterStep]]]:
    """First number -> what is done with it and with all up to the next one listed."""
    names = {number: name for name, number in machine.numbers.items()}
    every = [(number, outcome(names.get(number))) for number in range(max(names) + 2)]
    return [every[0], *(new for old, new in pairwise(every) if new[1] != old[1])]


def outcome(name: str | None) -> list[FilterStep]:
    """What is done with a call; None is one that no table names."""
    if name in ALLOWED:
        checks = [step for check in CHECKS.get(name, ()) for step in refusal(check)]
        core = CORE_BY_PRLIMIT if name == "prlimit64" else ()
        return [*checks, *core, (RETURN, 0, 0, ALLOW)]
    if name in DONE:
        return [(RETURN, 0, 0, REFUSE)]
    error = errno.ENOSYS if name is None or name in ABSENT else errno.EPERM
    return [(RETURN, 0, 0, REFUSE | error)]


def refusal(check: ArgumentCheck) -> Iterable[FilterStep]:
    """Return what the check refuses, go on behind it otherwise."""
    if check.where is not None:
        argument, value = check.where
        inner = list(refusal(check._replace(where=None)))
        yield from ((LOAD, 0, 0, ARGUMENTS + 8 * argument), (JUMP_EQ, 0, len(inner), value))
        yield from inner
        return
    yield (LOAD, 0, 0, ARGUMENTS + 8 * check.argument)
    refuse = (RETURN, 0, 0, REFUSE | check.error)
    if check.bits:
        yield from ((JUMP_SET, 0, 1, check.bits), refuse)
        return
    if check.mask != 0xFFFF_FFFF:
        yield (AND, 0, 0, check.mask)
    left = len(check.values)
    for value in check.values:  # those found jump behind the refusal, or else to it
        left -= 1
        if check.only:
            yield (JUMP_EQ, left + 1, 0, value)
        else:
            yield (JUMP_EQ, left, 0 if left else 1, value)
    yield refuse


def halved(found: list[tuple[int, list[FilterStep]]]) -> list[FilterStep]:
    """Code that finds the outcome of the number loaded. Jumps over a half are unconditional: a
    conditional one reaches 255 instructions."""
    if len(found) == 1:
        return found[0][1]
    middle = len(found) // 2
    below, above = halved(found[:middle]), halved(found[middle:])
    return [(JUMP_GE, 0, 1, found[middle][0]), (JUMP, 0, 0, len(below)), *below, *above]
