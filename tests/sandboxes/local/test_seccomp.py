"""The system call filters of both processors, run by an interpreter of BPF written for this, and
the filter of this machine, run by its kernel."""

import asyncio
import errno
import itertools
import json
import platform
import re
import resource
import struct
from pathlib import Path

import pytest

from sandboxes.core.python_env import base_python
from sandboxes.core.template import SandboxTemplate
from sandboxes.lending.leases import lease
from sandboxes.local import seccomp
from sandboxes.local.seccomp import MACHINES, Machine, program
from sandboxes.local.syscalls import ABSENT, ALLOWED, DONE

both = pytest.mark.parametrize(
    "machine", [MACHINES["x86_64"], MACHINES["aarch64"]], ids=["x86_64", "aarch64"]
)
HIGH = 0xDEAD_BEEF << 32
"""The half of an argument that no check may look at, but for that of an address."""

WHOLE = -1
"""An argument that is 0 in both halves."""

HARMLESS = {"socket": (2, 1, 0), "socketpair": (1, 1, 0), "prctl": (15,)}
"""Arguments that are allowed, where zeros are not."""


def verdict(code: bytes, arch: int, number: int, *arguments: int) -> str | int:
    """What the kernel would do: "allowed", "killed", or the error number of a refusal, 0 for a
    call that is answered and not carried out. It fails on what is no program: an unknown
    instruction, a jump behind the end."""
    given = (*arguments, *[0] * 6)[:6]
    six = [0 if value == WHOLE else value | HIGH * (value < 1 << 32) for value in given]
    data = struct.pack("=IIQ6Q", number, arch, 0, *six)
    instructions = list(struct.iter_unpack("=HBBI", code))
    accumulator = at = 0
    while True:
        operation, yes, no, constant = instructions[at]
        at += 1
        if operation == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            assert constant % 4 == 0
            (accumulator,) = struct.unpack_from("=I", data, constant)
        elif operation == 0x54:  # BPF_ALU | BPF_AND | BPF_K
            accumulator &= constant
        elif operation == 0x05:  # BPF_JMP | BPF_JA
            at += constant
        elif operation in (0x15, 0x35, 0x45):  # BPF_JMP | BPF_JEQ, BPF_JGE, BPF_JSET with BPF_K
            holds = {
                0x15: accumulator == constant,
                0x35: accumulator >= constant,
                0x45: bool(accumulator & constant),
            }[operation]
            at += yes if holds else no
        elif operation == 0x06:  # BPF_RET | BPF_K
            action, value = constant & 0xFFFF_0000, constant & 0xFFFF
            return {0x7FFF_0000: "allowed", 0x8000_0000: "killed", 0x0005_0000: value}[action]
        else:
            raise AssertionError(f"unknown instruction {operation:#x}")


def expected(name: str | None) -> str | int:
    if name in ALLOWED:
        return "allowed"
    if name in DONE:
        return 0
    return errno.ENOSYS if name is None or name in ABSENT else errno.EPERM


@both
def test_every_call_is_decided_as_the_lists_say(machine: Machine) -> None:
    code, names = program(machine), {number: name for name, number in machine.numbers.items()}
    for number in (*range(700), 0x3FFF_FFFF):
        name = names.get(number)
        found = verdict(code, machine.audit_arch, number, *HARMLESS.get(name or "", ()))
        assert found == expected(name), (number, name)


@both
def test_programs_are_short_enough_for_the_kernel(machine: Machine) -> None:
    assert 100 < len(program(machine)) / 8 <= 4096


def test_each_listed_call_is_one_of_the_kernels_and_is_listed_once() -> None:
    known = MACHINES["x86_64"].numbers.keys() | MACHINES["aarch64"].numbers.keys()
    assert known >= ALLOWED | ABSENT | DONE | seccomp.CHECKS.keys()
    assert not ALLOWED & ABSENT
    assert not DONE & (ALLOWED | ABSENT)
    assert seccomp.CHECKS.keys() <= ALLOWED


@both
def test_other_architectures_are_killed(machine: Machine) -> None:
    for arch in (0x40000003, 0x40000028, 0, 0xFFFF_FFFF):  # i386, arm
        assert verdict(program(machine), arch, 1) == "killed"
    others = {other.audit_arch for other in MACHINES.values()} - {machine.audit_arch}
    assert {verdict(program(machine), other, 1) for other in others} == {"killed"}


def test_the_second_numbering_of_x86_64_is_absent() -> None:
    machine = MACHINES["x86_64"]
    for number in (0x4000_0000, 0x4000_0000 + 165, 0xFFFF_FFFF):
        assert verdict(program(machine), machine.audit_arch, number) == errno.ENOSYS


@both
def test_clone_makes_threads_and_processes_but_no_namespace(machine: Machine) -> None:
    code, clone = program(machine), machine.numbers["clone"]
    for flags in (0, 0x11, 0x003D_0F00, 0x0120_0011):  # fork, pthread_create, posix_spawn
        assert verdict(code, machine.audit_arch, clone, flags) == "allowed"
    assert verdict(code, machine.audit_arch, clone, 0x411) == errno.EPERM  # CLONE_FILES alone
    for bit in (17, 25, 26, 27, 28, 29, 30):  # NEWNS, NEWCGROUP, NEWUTS, IPC, USER, PID, NET
        assert verdict(code, machine.audit_arch, clone, 1 << bit) == errno.EPERM
        assert verdict(code, machine.audit_arch, clone, 0x11 | 1 << bit) == errno.EPERM


@both
def test_an_option_is_refused_at_its_level_alone(machine: Machine) -> None:
    code, arch, number = program(machine), machine.audit_arch, machine.numbers["setsockopt"]
    refused = {(1, 26), (1, 51), (41, 20), (41, 42)}
    for level, option in itertools.product((0, 1, 6, 17, 41), range(80)):
        found = verdict(code, arch, number, 3, level, option)
        assert found == (errno.EPERM if (level, option) in refused else "allowed"), (level, option)


@both
@pytest.mark.parametrize("name", ["socket", "socketpair"])
def test_sockets_of_usual_families_types_and_protocols_alone(machine: Machine, name: str) -> None:
    code, arch, number = program(machine), machine.audit_arch, machine.numbers[name]

    def allowed(place: int) -> set[int]:
        tries = range(300)
        calls = [(*(2, 1, 0)[:place], value, *(2, 1, 0)[place + 1 :]) for value in tries]
        found = zip(tries, (verdict(code, arch, number, *call) for call in calls), strict=True)
        return {value for value, outcome in found if outcome == "allowed"}

    assert allowed(0) == {1, 2, 10}
    assert allowed(1) & set(range(16)) == {1, 2, 5}
    assert allowed(2) == {0, 6, 17}
    assert verdict(code, arch, number, 40, 1, 0) == errno.EAFNOSUPPORT  # vsock
    assert verdict(code, arch, number, 2, 0o2004000 | 1, 6) == "allowed"  # CLOEXEC, NONBLOCK
    assert verdict(code, arch, number, 2, 0o2000000 | 3, 0) == errno.EPERM  # raw


AGENTS = {
    "kill": [(1, 9)],
    "tkill": [(1, 9)],
    "tgkill": [(1, 1, 9), (5, 1, 9)],
    "rt_sigqueueinfo": [(1, 9, 0)],
    "rt_tgsigqueueinfo": [(1, 1, 9, 0), (5, 1, 9, 0)],
    "pidfd_open": [(1, 0)],
    "prlimit64": [(1, 7, 0, 0)],
    "sched_setaffinity": [(1, 8, 0)],
    "sched_setattr": [(1, 0, 0)],
    "sched_setparam": [(1, 0)],
    "sched_setscheduler": [(1, 5, 0)],
    "setpriority": [(0, 1, 19), (1, 1, 19), (2, 0, 19), (2, 65534, 19)],
    "ioprio_set": [(1, 1, 3 << 13), (2, 1, 3 << 13), (3, 0, 3 << 13), (3, 65534, 3 << 13)],
}
"""Calls that would steer process 1, or all processes of its user."""


@both
@pytest.mark.parametrize("name", AGENTS)
def test_nothing_is_aimed_at_process_1(machine: Machine, name: str) -> None:
    code, number = program(machine), machine.numbers[name]
    for call in AGENTS[name]:
        assert verdict(code, machine.audit_arch, number, *call) == errno.EPERM, call
        others = (0 if call[0] in (2, 3) else call[0], 7, 7, 7)
        others = others if name in ("setpriority", "ioprio_set") else (7, 7, 7, 7)
        assert verdict(code, machine.audit_arch, number, *others) == "allowed"


@both
@pytest.mark.parametrize(
    ("name", "allowed", "refused", "error"),
    [
        ("ioctl", [(0, 0x5401), (0, 0x5414)], [(0, 0x5412), (0, 0x5423)], errno.EPERM),
        ("prctl", [(15,), (4,), (38,), (0x5356_4D41,)], [(22,), (62,), (35,)], errno.EINVAL),
        ("personality", [(0,), (0xFFFF_FFFF,)], [(0x40000,), (8,)], errno.EPERM),
        ("fcntl", [(3, 6), (3, 7), (3, 1030)], [(3, 36), (3, 37), (3, 38)], errno.EINVAL),
    ],
)
def test_arguments_decide(
    machine: Machine,
    name: str,
    allowed: list[tuple[int, ...]],
    refused: list[tuple[int, ...]],
    error: int,
) -> None:
    code, number = program(machine), machine.numbers[name]
    for call in allowed:
        assert verdict(code, machine.audit_arch, number, *call) == "allowed", call
    for call in refused:
        assert verdict(code, machine.audit_arch, number, *call) == error, call


@both
def test_the_limit_of_core_dumps_is_read_and_never_set(machine: Machine) -> None:
    code, numbers = program(machine), machine.numbers

    def found(name: str, *arguments: int) -> str | int:
        return verdict(code, machine.audit_arch, numbers[name], *arguments)

    assert found("setrlimit", 4, 0x1000) == 0
    assert found("setrlimit", 7, 0x1000) == "allowed"
    assert found("prlimit64", 0, 4, 0x1000, 0) == 0
    assert found("prlimit64", 0, 4, 0x7F00 << 32, 0) == 0
    assert found("prlimit64", 0, 4, WHOLE, 0x1000) == "allowed"
    assert found("prlimit64", 0, 7, 0x1000, 0) == "allowed"


@pytest.mark.parametrize(
    ("machine", "header", "macro", "renamed"),
    [
        (MACHINES["x86_64"], "x86_64-linux-gnu/asm/unistd_64.h", "__NR_", {}),
        (
            MACHINES["aarch64"], "asm-generic/unistd.h", "__NR(?:3264)?_",
            {"fstatat": "newfstatat", "sync_file_range2": "sync_file_range"},
        ),
    ],
    ids=["x86_64", "aarch64"],
)  # fmt: skip
def test_numbers_are_the_kernels(
    machine: Machine, header: str, macro: str, renamed: dict[str, str]
) -> None:
    path = Path("/usr/include", header)
    if not path.exists():
        pytest.skip(f"no kernel headers here: {path}")
    pairs = re.findall(rf"#define {macro}(\w+)\s+(\d+)", path.read_text())
    theirs = {
        renamed.get(name, name): int(number)
        for name, number in pairs
        # of 32-bit machines, and two words of the header's own
        if "time64" not in name and name not in ("arch_specific_syscall", "syscalls")
    }
    newest = max(theirs.values())
    assert newest > 400
    assert {k: v for k, v in machine.numbers.items() if v <= newest} == theirs


CORE = """
import resource
before = resource.getrlimit(resource.RLIMIT_CORE)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print(before, resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.mark.usefixtures("sandboxed")
def test_a_crash_inside_runs_no_program_of_the_host() -> None:
    """By its limit, for which the kernel makes no dump; no test can set `kernel.core_pattern`."""

    async def go() -> bytes:
        async with lease(SandboxTemplate()) as sandbox:
            return (await sandbox.exec([base_python(), "-I", "-S", "-c", CORE])).stdout

    most = min(1, resource.getrlimit(resource.RLIMIT_CORE)[1] % (1 << 64))  # -1 is no bound
    assert asyncio.run(go()).decode() == f"({most}, {most}) ({most}, {most})\n"


CALLS = """
import ctypes, errno, json, sys
libc = ctypes.CDLL(None, use_errno=True)
found = {}
for name, number, arguments in json.load(sys.stdin):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    found[name] = ctypes.get_errno() if result == -1 else 0
print(json.dumps(found))
"""


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.skipif(platform.machine() not in MACHINES, reason="no filter for this processor")
def test_a_program_inside_is_refused_as_the_lists_say() -> None:
    """Every call that is refused whatever its arguments, and those that name process 1."""
    numbers = MACHINES[platform.machine()].numbers
    every = [(name, number, [0] * 6) for name, number in numbers.items() if name not in ALLOWED]
    wanted = {name: expected(name) for name, _, _ in every}
    for name, calls in AGENTS.items():
        for call in calls:
            every.append((f"{name}{call}", numbers[name], list(call)))
            wanted[f"{name}{call}"] = errno.EPERM
    every += [("newer", 700, [0] * 6), ("vsock", numbers["socket"], [40, 1, 0])]
    wanted |= {"newer": errno.ENOSYS, "vsock": errno.EAFNOSUPPORT}

    async def go() -> dict[str, int]:
        async with lease(SandboxTemplate()) as sandbox:
            argv = [base_python(), "-I", "-S", "-c", CALLS]
            done = await sandbox.exec(argv, stdin=json.dumps(every).encode())
            assert done.exit_code == 0, done.stderr
            return json.loads(done.stdout)

    assert asyncio.run(go()) == wanted
