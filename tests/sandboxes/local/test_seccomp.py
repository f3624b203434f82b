"""The system call filters of both processors, run by an interpreter of BPF written for this."""

import errno
import re
import struct
from pathlib import Path

import pytest

from sandboxes.local import seccomp
from sandboxes.local.seccomp import ARM64, X86_64, Machine, program

ALLOWED, KILLED = "allowed", "killed"
MACHINES = {"x86_64": X86_64, "aarch64": ARM64}
both = pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)


def verdict(code: bytes, arch: int, number: int, first: int = 0) -> str | int:
    """What the kernel would do: ALLOWED, KILLED, or the error number of a refusal. It fails on
    what is no program: an unknown instruction, a jump behind the end."""
    data = struct.pack("=IIQ6Q", number, arch, 0, first, 0, 0, 0, 0, 0)
    instructions = list(struct.iter_unpack("=HBBI", code))
    accumulator = at = 0
    while True:
        operation, yes, no, constant = instructions[at]
        at += 1
        if operation == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            assert constant % 4 == 0
            (accumulator,) = struct.unpack_from("=I", data, constant)
        elif operation in (0x15, 0x35, 0x45):  # BPF_JMP | BPF_JEQ, BPF_JGE, BPF_JSET with BPF_K
            holds = {
                0x15: accumulator == constant,
                0x35: accumulator >= constant,
                0x45: bool(accumulator & constant),
            }[operation]
            at += yes if holds else no
        elif operation == 0x06:  # BPF_RET | BPF_K
            action, value = constant & 0xFFFF_0000, constant & 0xFFFF
            return {0x7FFF_0000: ALLOWED, 0x8000_0000: KILLED, 0x0005_0000: value}[action]
        else:
            raise AssertionError(f"unknown instruction {operation:#x}")


def refused(machine: Machine) -> dict[int, int]:
    eperm = dict.fromkeys(machine.denied.values(), errno.EPERM)
    return eperm | dict.fromkeys(machine.absent.values(), errno.ENOSYS)


@both
def test_every_call_is_decided_as_the_lists_say(machine: Machine) -> None:
    code, expected = program(machine), refused(machine)
    for number in range(600):
        found = verdict(code, machine.audit_arch, number, first=2)  # AF_INET, for socket
        assert found == expected.get(number, ALLOWED), number


@both
def test_other_architectures_are_killed(machine: Machine) -> None:
    for arch in (0x40000003, 0x40000028, 0, 0xFFFF_FFFF):  # i386, arm
        assert verdict(program(machine), arch, 1) == KILLED
    others = {other.audit_arch for other in MACHINES.values()} - {machine.audit_arch}
    assert {verdict(program(machine), other, 1) for other in others} == {KILLED}


def test_the_second_numbering_of_x86_64_is_absent() -> None:
    for number in (0x4000_0000, 0x4000_0000 + 165, 0xFFFF_FFFF):
        assert verdict(program(X86_64), X86_64.audit_arch, number) == errno.ENOSYS


@both
def test_clone_makes_threads_and_processes_but_no_namespace(machine: Machine) -> None:
    code = program(machine)
    for flags in (0, 0x11, 0x003D_0F00, 0x0120_0011):  # fork, pthread_create, posix_spawn
        assert verdict(code, machine.audit_arch, machine.clone, flags) == ALLOWED
    for bit in (17, 25, 26, 27, 28, 29, 30):  # NEWNS, NEWCGROUP, NEWUTS, IPC, USER, PID, NET
        assert verdict(code, machine.audit_arch, machine.clone, 1 << bit) == errno.EPERM
        assert verdict(code, machine.audit_arch, machine.clone, 0x11 | 1 << bit) == errno.EPERM


@both
def test_sockets_only_of_families_that_the_empty_network_holds(machine: Machine) -> None:
    allowed = {
        family
        for family in range(64)
        if verdict(program(machine), machine.audit_arch, machine.socket, family) == ALLOWED
    }
    assert allowed == set(seccomp.FAMILIES)
    vsock = verdict(program(machine), machine.audit_arch, machine.socket, 40)
    assert vsock == errno.EAFNOSUPPORT


@pytest.mark.parametrize(
    ("machine", "header", "macro"),
    [
        (X86_64, "x86_64-linux-gnu/asm/unistd_64.h", "__NR_"),
        (ARM64, "asm-generic/unistd.h", "__NR(?:3264)?_"),
    ],
    ids=MACHINES,
)
def test_numbers_are_the_kernels(machine: Machine, header: str, macro: str) -> None:
    path = Path("/usr/include", header)
    if not path.exists():
        pytest.skip(f"no kernel headers here: {path}")
    numbers = dict(re.findall(rf"#define {macro}(\w+)\s+(\d+)", path.read_text()))
    ours = machine.denied | machine.absent | {"clone": machine.clone, "socket": machine.socket}
    known = {name: int(numbers[name]) for name in ours if name in numbers}
    assert len(known) > 0.9 * len(ours)
    assert {name: ours[name] for name in known} == known
