"""Attempts to win rights back, or to use what of the kernel needs none."""

import asyncio
import platform
import shutil
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager

import pytest

from sandboxes.core.template import PROGRAM_ID
from sandboxes.local.protections import Protection
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import Scene, of_group, walls

UNSHARE = """
def attack():
    syscall(NUMBERS["unshare"], 0x10000000)
    with open("/proc/self/status") as file:
        return "capabilities " + file.read().partition("CapEff:")[2].split()[0]
"""

CLONE = """
def attack():
    pid = syscall(NUMBERS["clone"], 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return "a child in a user namespace"
"""

CLONE3 = """
def attack():
    arguments = struct.pack("=11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
    pid = syscall(NUMBERS["clone3"], arguments, len(arguments))
    if pid == 0:
        os._exit(0)
    return "a child in a user namespace"
"""

TRACE = """
def attack():
    child = os.fork()
    if child == 0:
        time.sleep(5)
        os._exit(0)
    syscall(NUMBERS["ptrace"], 0x4206, child, None, None)  # PTRACE_SEIZE
    return "another process is traced"
"""

SET_ID = """
def attack(path):
    got = os.popen(path + " -u").read().strip()
    if got == "0":
        return "user 0"
    raise Refused(f"user {got}")
"""

INT_80 = r"""
def attack():
    import mmap
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(b"\xb8\x14\0\0\0\xcd\x80\xc3")  # mov eax, 20; int 0x80; ret: the old getpid
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return f"process {ctypes.CFUNCTYPE(ctypes.c_int)(address)()} by the 32-bit table"
"""

MODULE = """
def attack():
    syscall(NUMBERS["init_module"], b"no module", 9, b"")
    return "a module"
"""


def one(line: str) -> str:
    """A payload of one call; it is won if the call returns."""
    return f"def attack():\n    return {line}\n"


@asynccontextmanager
async def set_id_program(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A program of root's that everybody runs as root. Tried outside first: there it works."""
    with scenes.open_folder() as folder:
        program = folder / "id"
        shutil.copy("/usr/bin/id", program)
        program.chmod(0o4755)
        drop = ["setpriv", "--reuid", str(PROGRAM_ID), "--clear-groups", str(program), "-u"]
        process = await asyncio.create_subprocess_exec(*drop, stdout=asyncio.subprocess.PIPE)
        outside, _ = await process.communicate()
        if outside.strip() != b"0":
            pytest.skip("the disk is mounted without set-user-ID programs")
        yield Scene((str(program),), str(folder))


attempt = of_group("privilege")
CALLS = walls("CALLS")
RIGHTS = walls("USER", "CAPABILITIES")
BOTH = CALLS | RIGHTS

FILTERED = [  # name, mechanism, payload, walls that its control lacks
    ("user namespace by unshare", "unshare", UNSHARE, CALLS),
    ("user namespace by clone", "clone", CLONE, CALLS),
    ("tracing another process", "ptrace", TRACE, CALLS),
    ("adding a key to the user's keyring", "add_key",
     one('syscall(NUMBERS["add_key"], b"user", b"attack", b"x", 1, -2)'), CALLS),
    ("session keyring by keyctl", "keyctl", one('syscall(NUMBERS["keyctl"], 1, None)'), CALLS),
    ("performance counters", "perf_event_open", one(
        'syscall(NUMBERS["perf_event_open"], struct.pack("=IIQQQQQ", 1, 112, 0, 0, 0, 0, 0x61)'
        ' + bytes(64), 0, -1, -1, 0)'), CALLS),
    ("page faults handled by a program", "userfaultfd",
     one('syscall(NUMBERS["userfaultfd"], 1)'), CALLS),
    ("addresses without randomness", "personality",
     one('syscall(NUMBERS["personality"], 0x40000)'), CALLS),
    ("watching a file system by fanotify", "fanotify",
     one('syscall(NUMBERS["fanotify_init"], 0x200, 0)'), CALLS),
    ("BPF map", "bpf",
     one('syscall(NUMBERS["bpf"], 0, struct.pack("=IIII", 2, 4, 4, 1) + bytes(64), 80)'),
     BOTH),
    ("the kernel's log", "syslog", one('syscall(NUMBERS["syslog"], 10, None, 0)'), BOTH),
    ("mounting a tmpfs", "mount",
     one('syscall(NUMBERS["mount"], b"none", b"/tmp", b"tmpfs", 0, None)'), BOTH),
    ("mounting a control group, to set its release agent", "mount",
     one('syscall(NUMBERS["mount"], b"none", b"/tmp", b"cgroup", 0, b"pids")'), BOTH),
    ("unmounting what covers a folder", "umount2",
     one('syscall(NUMBERS["umount2"], b"/tmp", 2)'), BOTH),
    ("cloning the mount tree", "open_tree",
     one('syscall(NUMBERS["open_tree"], -100, b"/", 1)'), BOTH),
    ("a file system by fsopen", "fsopen", one('syscall(NUMBERS["fsopen"], b"tmpfs", 0)'), BOTH),
    ("entering a namespace", "setns",
     one('syscall(NUMBERS["setns"], os.open("/proc/self/ns/net", os.O_RDONLY), 0)'), BOTH),
]  # fmt: skip

ATTEMPTS = [
    *(
        attempt(
            name, mechanism=mechanism, payload=payload, without=without, as_root=without is BOTH,
            refusal="EPERM", by="system call filter",
        )
        for name, mechanism, payload, without in FILTERED
    ),
    attempt("user namespace by clone3", mechanism="clone3",
            refusal="ENOSYS", payload=CLONE3, without=CALLS),
    attempt("io_uring, past the filter", mechanism="io_uring", refusal="ENOSYS", without=CALLS,
            payload=one('syscall(NUMBERS["io_uring_setup"], 8, bytes(120))')),
    attempt("chroot", mechanism="chroot",
            refusal="EPERM", payload=one('os.chroot("/tmp") or "another root"'),
            without=BOTH, by="system call filter", as_root=True),
    attempt("becoming another user", mechanism="setuid", refusal="EINVAL",
            payload=one('os.setuid(12345) or "user 12345"'), without=RIGHTS,
            by="unprivileged user", as_root=True),
    attempt("going before all others", mechanism="setpriority", refusal="EACCES",
            payload=one('os.setpriority(os.PRIO_PROCESS, 0, -5) or "a priority above all"'),
            without=RIGHTS, by="no capabilities", as_root=True),
    attempt("set-user-ID program of root", mechanism="set-user-ID programs",
            refusal=f"user {PROGRAM_ID}", payload=SET_ID,
            given=True, without=walls("CAPABILITIES"), scene=set_id_program, as_root=True,
            kernel="bubblewrap sets no_new_privs and no option takes it away;"
            " outside, run by the same user, the program is root"),
    attempt("loading a kernel module", mechanism="init_module",
            refusal="EPERM", payload=MODULE, without=BOTH,
            as_root=True, kernel="kernels without modules know no such call"),
    attempt("writing kernel settings", mechanism="/proc/sys",
            refusal="EACCES", without=RIGHTS, as_root=True,
            payload=one('os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)'),
            kernel="bubblewrap itself covers them read-only"),
    attempt("calls by their x32 numbers", mechanism="other system call tables",
            refusal="ENOSYS", payload=one("syscall(0x40000027)"),
            without=CALLS, kernel="it was built without x32"),
]  # fmt: skip

if platform.machine() == "x86_64":
    ATTEMPTS.append(
        attempt("calls by the 32-bit table, past the filter", mechanism="other system call tables",
            refusal="killed by SIGSYS",
                payload=INT_80, without=CALLS),
    )  # fmt: skip
