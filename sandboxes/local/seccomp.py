"""A system call filter, as the BPF program that bubblewrap loads before the first program inside.

It denies what the other walls rest on or what widens the kernel's surface: new namespaces (a user
namespace would give rights back), mounts, keyrings, tracing, BPF, io_uring, and sockets beyond
those that the empty network holds (vsock and others are not confined by it). Everything else is
allowed, so that ordinary programs, compilers and Node run.

Numbers: the kernel's tables for x86-64 (arch/x86/entry/syscalls/syscall_64.tbl) and arm64
(include/uapi/asm-generic/unistd.h). On other machines there is no filter, and the doctor says so.
"""

import errno
import platform
import struct
from typing import NamedTuple


class Machine(NamedTuple):
    audit_arch: int
    denied: dict[str, int]
    """Refused with EPERM."""
    absent: dict[str, int]
    """Refused with ENOSYS, upon which programs take the older way."""
    clone: int
    socket: int
    x32: bool
    """Whether the same architecture also has calls numbered from 0x40000000."""


X86_64 = Machine(
    audit_arch=0xC000003E,
    denied={
        "ptrace": 101, "syslog": 103, "personality": 135, "pivot_root": 155, "acct": 163,
        "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
        "init_module": 175, "delete_module": 176, "quotactl": 179, "lookup_dcookie": 212,
        "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272,
        "perf_event_open": 298, "fanotify_init": 300, "name_to_handle_at": 303,
        "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
        "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
        "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
        "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
    },
    absent={"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435},
    clone=56,
    socket=41,
    x32=True,
)  # fmt: skip

ARM64 = Machine(
    audit_arch=0xC00000B7,
    denied={
        "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "quotactl": 60,
        "acct": 89, "personality": 92, "unshare": 97, "kexec_load": 104, "init_module": 105,
        "delete_module": 106, "syslog": 116, "ptrace": 117, "reboot": 142, "add_key": 217,
        "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225, "perf_event_open": 241,
        "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265, "setns": 268,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
        "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, "open_tree": 428,
        "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
        "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
    },
    absent={"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435},
    clone=220,
    socket=198,
    x32=False,
)  # fmt: skip

MACHINES = {"x86_64": X86_64, "aarch64": ARM64, "arm64": ARM64}

NEW_NAMESPACES = 0x7E02_0000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""

FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: each ends at the sandbox's own empty network."""

LOAD, JUMP_EQ, JUMP_GE, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCH, FIRST_ARGUMENT = 0, 4, 16
"""Offsets in struct seccomp_data; the argument's low half on these little-endian machines."""

ALLOW, KILL, REFUSE = 0x7FFF_0000, 0x8000_0000, 0x0005_0000


def filter_program() -> bytes | None:
    """The filter for this machine, None where its system calls are not known here."""
    machine = MACHINES.get(platform.machine())
    return None if machine is None else program(machine)


def program(machine: Machine) -> bytes:
    """Instructions of 8 bytes: code, jump if true, jump if false, constant. Each test jumps over
    its own return, so that no jump depends on what stands elsewhere."""
    code = [(LOAD, 0, 0, ARCH), (JUMP_EQ, 1, 0, machine.audit_arch), (RETURN, 0, 0, KILL)]
    code += [(LOAD, 0, 0, NUMBER)]
    if machine.x32:
        code += [(JUMP_GE, 0, 1, 0x4000_0000), (RETURN, 0, 0, REFUSE | errno.ENOSYS)]
    for numbers, error in ((machine.denied, errno.EPERM), (machine.absent, errno.ENOSYS)):
        for number in sorted(numbers.values()):
            code += [(JUMP_EQ, 0, 1, number), (RETURN, 0, 0, REFUSE | error)]
    code += [
        (JUMP_EQ, 0, 4, machine.clone),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (JUMP_SET, 0, 1, NEW_NAMESPACES),
        (RETURN, 0, 0, REFUSE | errno.EPERM),
        (RETURN, 0, 0, ALLOW),
        (JUMP_EQ, 0, 2 + len(FAMILIES), machine.socket),
        (LOAD, 0, 0, FIRST_ARGUMENT),
    ]
    for left, family in zip(range(len(FAMILIES), 0, -1), FAMILIES, strict=True):
        code += [(JUMP_EQ, left, 0, family)]
    code += [(RETURN, 0, 0, REFUSE | errno.EAFNOSUPPORT), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
