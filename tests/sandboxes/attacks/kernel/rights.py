"""Attempts to win rights back: capabilities, users, limits, devices, and file systems to mount."""

from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import Attempt, of_group, walls
from tests.sandboxes.attacks.kernel.privilege import BOTH, CALLS, RIGHTS, one

CAPSET = """
def attack():
    header = struct.pack("=Ii", 0x20080522, 0)
    syscall(NUMBERS["capset"], header, struct.pack("=6I", MASK, MASK, 0, 0, 0, 0))
    with open("/proc/self/status") as file:
        found = file.read().partition("CapEff:")[2].split()[0]
    if int(found, 16) == 0:
        raise Refused("no capability")
    return "capabilities " + found
"""

AMBIENT = """
def attack():
    header = struct.pack("=Ii", 0x20080522, 0)
    syscall(NUMBERS["capset"], header, struct.pack("=6I", 32, 32, 32, 0, 0, 0))  # CAP_KILL
    if libc.prctl(47, 2, 5, 0, 0):  # PR_CAP_AMBIENT_RAISE
        raise OSError(ctypes.get_errno(), "prctl")
    return "a capability that is handed on"
"""

PRCTL = """
def attack():
    if libc.prctl(OPTION, VALUE, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    return "it is set"
"""

OWN_FILTER = """
def attack():
    allow = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7fff0000))
    program = struct.pack("=HxxxxxxQ", 1, ctypes.addressof(allow))
    if libc.prctl(22, 2, program, 0, 0):  # PR_SET_SECCOMP
        raise OSError(ctypes.get_errno(), "prctl")
    syscall(NUMBERS["unshare"], 0x10000000)
    return "its own filter counts, and lets it"
"""

SUPERVISOR = """
def attack():
    notify = ctypes.create_string_buffer(
        struct.pack("=HBBIHBBIHBBIHBBI", 0x20, 0, 0, 0, 0x15, 0, 1, NUMBERS["unshare"],
                    6, 0, 0, 0x7fc00000, 6, 0, 0, 0x7fff0000))
    program = struct.pack("=HxxxxxxQ", 4, ctypes.addressof(notify))
    listener = syscall(NUMBERS["seccomp"], 1, 8, program)  # NEW_LISTENER
    child = os.fork()
    if child == 0:
        try:
            syscall(NUMBERS["unshare"], 0x10000000)
            os._exit(0)
        except OSError:
            os._exit(1)
    import fcntl, select
    asked = select.poll()
    asked.register(listener, select.POLLIN)
    if any(event & select.POLLIN for _, event in asked.poll(2000)):
        notice = bytearray(80)
        fcntl.ioctl(listener, 0xC0502100, notice)
        ident = struct.unpack_from("=Q", notice)[0]
        fcntl.ioctl(listener, 0xC0182101, struct.pack("=QqiI", ident, 0, 0, 1))  # go on
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise OSError(errno.EPERM, "")
    return "a supervisor lets it go on"
"""

FILE_CAPABILITY = """
def attack():
    import shutil
    shutil.copy("/usr/bin/env", "/workspace/env")
    value = struct.pack("=IIIII", 0x02000001, 0xffffffff, 0, 0, 0)
    os.setxattr("/workspace/env", "security.capability", value)
    return "a program with capabilities"
"""

OWN_ROOT = """
def attack():
    os.mkdir("/workspace/a")
    os.chroot("/workspace/a")
    os.chdir("..")
    return "a root of its own, to climb out of"
"""

DEVICE = """
def attack(path):
    os.close(os.open(path, FLAGS))
    return "it is open"
"""

TERMINAL = """
def attack():
    import fcntl
    terminal = os.open("/dev/tty", os.O_RDWR)
    fcntl.ioctl(terminal, 0x5412, b"x")  # TIOCSTI
    return "a key pressed on the owner's terminal"
"""

LDT = """
def attack():
    entry = struct.pack("=IIII", 0, 0, 0xfffff, 0x51)
    syscall(NUMBERS["modify_ldt"], 1, entry, len(entry))
    return "a segment of its own"
"""

REMOUNT_ALL = """
def attack():
    attributes = struct.pack("=4Q", 0, 1, 0, 0)  # clears MOUNT_ATTR_RDONLY
    syscall(NUMBERS["mount_setattr"], -100, b"/", 0, attributes, len(attributes))
    open("/written", "w").close()
    return "the root can be written"
"""

PROPAGATE = """
def attack():
    syscall(NUMBERS["mount"], None, b"/", None, ctypes.c_ulong(1 << 20), None)  # MS_SHARED
    return "mounts are passed on"
"""

MOUNT = """
def attack():
    syscall(NUMBERS["mount"], b"none", b"/tmp", KIND, 0, DATA)
    return "mounted " + KIND.decode()
"""

CALL = """
def attack():
    try:
        return syscall(NUMBERS["{0}"], {1})
    except OSError as error:
        if error.errno != errno.{2}:
            raise
    return "nothing of this name, found out after the check"
"""

CLOCK = """
def attack():
    state = bytearray(208)
    buffer = (ctypes.c_char * 208).from_buffer(state)
    syscall(NUMBERS["clock_adjtime"], 0, buffer)
    struct.pack_into("=I", state, 0, 0x4000)  # ADJ_TICK, to what it is
    syscall(NUMBERS["clock_adjtime"], 0, buffer)
    return "the clock's tick is set"
"""


def here(path: str) -> str:
    if not Path(path).exists():
        pytest.skip(f"no {path} here")
    return path


attempt = of_group("privilege")
FILTERED: dict[str, Any] = {"without": BOTH, "by": "system call filter", "as_root": True}
NO_SUCH: dict[str, Any] = {"refusal": "EINVAL", "by": "unprivileged user", "as_root": True}
"""In the sandbox's namespace of users there is no other user to become."""
DEVICES = walls("DEVICES")


def right(name: str, mechanism: str, payload: str, **more: object) -> Attempt:
    return attempt(
        name, mechanism=mechanism, payload=payload,
        **{"without": RIGHTS, "refusal": "EPERM", "by": "no capabilities"} | more,
    )  # fmt: skip


def mounting(kind: str, data: str = "None") -> str:
    return f"KIND, DATA = {kind.encode()!r}, {data}\n{MOUNT}"


def called(
    name: str, mechanism: str, arguments: str, late: str = "EAGAIN", **more: object
) -> Attempt:
    """Refused by the filter; the control lacks the filter alone, or what else is named. `late` is
    an error that the kernel finds after its check of rights."""
    payload = CALL.format(mechanism, arguments, late)
    return attempt(
        name, mechanism=mechanism, payload=payload,
        **{"without": CALLS, "refusal": "EPERM", "by": "system call filter"} | more,
    )  # fmt: skip


ATTEMPTS = [
    right("taking a capability", "capset", f"MASK = 32\n{CAPSET}"),
    right("a capability for programs to come", "PR_CAP_AMBIENT", AMBIENT),
    right("rules for users who change", "PR_SET_SECUREBITS", f"OPTION, VALUE = 28, 1\n{PRCTL}",
          **FILTERED | {"refusal": "EINVAL"}),
    right("other groups", "setgroups", one("os.setgroups([1]) or 'group 1'"), as_root=True),
    right("another user for files", "setresuid", one("os.setresuid(0, 0, 0) or 'user 0'"),
          **NO_SUCH),
    right("another group", "setresgid", one("os.setresgid(0, 0, 0) or 'group 0'"),
          **NO_SUCH),
    right("a capability in a file", "security.capability", FILE_CAPABILITY, as_root=True),
    right("a root within the root", "chroot", OWN_ROOT, **FILTERED),
    right("another name for the host", "sethostname",
          one("socket.sethostname('other') or 'another name'"), **FILTERED),
    right("locked memory", "mlock", one(
        "libc.mlockall(3) and (_ for _ in ()).throw(OSError(ctypes.get_errno(), '')) or 'locked'"),
        refusal="ENOMEM", as_root=True),
    attempt("a filter of its own that allows all", mechanism="seccomp", payload=OWN_FILTER,
            without=CALLS, refusal="EINVAL"),
    attempt("a supervisor that lets a call go on", mechanism="seccomp user notification",
            payload=SUPERVISOR, without=CALLS, refusal="ENOSYS"),
    attempt("the root made writable", mechanism="mount_setattr", payload=REMOUNT_ALL, without=BOTH,
            as_root=True, refusal="EPERM", by="system call filter"),
    attempt("mounts that are passed on", mechanism="mount", payload=PROPAGATE, without=BOTH,
            as_root=True, refusal="EPERM", by="system call filter"),
    *(
        attempt(f"mounting {kind}", mechanism="mount", payload=mounting(kind, data), without=BOTH,
                refusal="EPERM", by="system call filter", as_root=True)
        for kind, data in (
            ("proc", "None"), ("sysfs", "None"), ("mqueue", "None"), ("binfmt_misc", "None"),
            ("devpts", "b'newinstance'"), ("debugfs", "None"), ("tracefs", "None"),
            ("bpf", "None"),
        )
    ),
    called("asking for a key", "request_key", "b'user', b'attack', None, -2", late="ENOKEY"),
    called("quotas of disks", "quotactl", "0x80000100, None, 0, None"),
    called("accounting of processes", "acct", "b'/workspace'", late="EISDIR", without=BOTH,
           as_root=True),
    called("a swap file", "swapon", "b'/workspace', 0", late="EISDIR", without=BOTH, as_root=True),
    right("the system's clock", "clock_adjtime", CLOCK, **FILTERED),
    *(
        attempt(name, mechanism="devices", payload=f"FLAGS = os.O_RDWR\n{DEVICE}", refusal="ENOENT",
                without=DEVICES | RIGHTS, by="minimal /dev", as_root=True,
                scene=scenes.of(lambda path=path: here(path)))
        for name, path in (
            ("network interfaces of the host's kernel", "/dev/net/tun"),
            ("virtual machines", "/dev/kvm"), ("loop devices", "/dev/loop-control"),
            ("file systems in a program", "/dev/fuse"),
            ("what stands on the host's screen", "/dev/vcs"),
            ("a console of the host", "/dev/tty0"),
        )
    ),
    attempt("the kernel's messages by their device", mechanism="devices", refusal="ENOENT",
            payload=f"FLAGS = os.O_RDONLY\n{DEVICE}", without=DEVICES | RIGHTS, as_root=True,
            by="minimal /dev", scene=scenes.of(lambda: here("/dev/kmsg"))),
    attempt("keys for the owner's terminal", mechanism="TIOCSTI", payload=TERMINAL,
            refusal="ENXIO", without=DEVICES, kernel="bubblewrap gives the sandbox a session"
            " without a terminal"),
    attempt("no_new_privs taken back", mechanism="PR_SET_NO_NEW_PRIVS", refusal="EINVAL",
            payload=f"OPTION, VALUE = 38, 0\n{PRCTL}", without=RIGHTS,
            kernel="it can be set, and never be cleared"),
]  # fmt: skip
