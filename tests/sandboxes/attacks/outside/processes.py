"""Attempts on processes of the host: to end, steer, read or merely see them."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager

from sandboxes.local.protections import Protection
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.agent.steering import WAYS
from tests.sandboxes.attacks.attempt import Attempt, Scene, of_group, walls
from tests.sandboxes.attacks.outside.files import in_proc

END = """
def attack(pid, path):
    send(int(pid), 9)
    time.sleep(0.1)
    return "it is ended"
"""

STEER = """
def attack(pid, path):
    pid = int(pid)
    WORK
    return "it is steered"
"""

SEE = """
def attack(pid, path):
    if pid in os.listdir("/proc"):
        return "it is listed"
    raise Refused("not in the list")
"""

COUNT = """
def attack(pid, path):
    found = 0
    for number in range(int(pid) - 3, int(pid) + 4):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            continue
        except PermissionError:
            pass
        found += number == int(pid)
    if not found:
        raise Refused("nobody answers")
    return "it is there"
"""

GROUP = """
def attack(pid, path):
    return f"its group is {CALL(int(pid))}"
"""

LOCKS = """
def attack(word):
    for _ in range(20):  # others come and go while the list is read, and shift it
        with open("/proc/locks") as file:
            if word in file.read():
                return "a lock of the host"
        time.sleep(0.02)
    raise Refused("not in the list")
"""

MEMORY = """
def attack(pid, path):
    with open(f"/proc/{pid}/maps") as maps:
        line = next(line for line in maps if "[stack]" in line)
    start, end = (int(word, 16) for word in line.split()[0].split("-"))
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        memory.seek(start)
        text = memory.read(end - start)
    word = text.partition(b"API_KEY=")[2].partition(bytes(1))[0]
    return word.decode()
"""

VECTOR = """
def attack(pid, path):
    with open(f"/proc/{pid}/maps") as maps:
        line = next(line for line in maps if "[stack]" in line)
    start, end = (int(word, 16) for word in line.split()[0].split("-"))
    buffer = ctypes.create_string_buffer(end - start)
    local = struct.pack("=QQ", ctypes.addressof(buffer), end - start)
    remote = struct.pack("=QQ", start, end - start)
    syscall(NUMBERS["process_vm_readv"], int(pid), local, 1, remote, 1, 0)
    return buffer.raw.partition(b"API_KEY=")[2].partition(bytes(1))[0].decode()
"""

TRACE = """
def attack(pid, path):
    syscall(NUMBERS["ptrace"], 0x4206, int(pid), None, None)
    return "it is traced"
"""

TAKE = """
def attack(pid, path):
    pidfd = os.pidfd_open(int(pid))
    for number in range(10):
        try:
            fd = syscall(NUMBERS["pidfd_getfd"], pidfd, number, 0)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            continue
        if os.path.samestat(os.fstat(fd), os.stat("/proc/self/fd/0")):
            continue
        try:
            if (text := os.pread(fd, 100, 0)):
                return text.decode()
        except OSError:
            continue
    raise Refused("nothing to read")
"""


@asynccontextmanager
async def locked(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A file of the host that a process of the host has locked."""
    if (flock := shutil.which("flock")) is None:
        raise AssertionError("flock is a part of util-linux, as setpriv is")
    with scenes.open_folder() as folder:
        file = folder / "locked"
        file.touch()
        holder = await asyncio.create_subprocess_exec(
            flock, str(file), "sh", "-c", "echo ready; read line",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert holder.stdout is not None
        await holder.stdout.readline()
        found = file.stat()
        device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
        yield Scene((f"{device}:{found.st_ino}",))
        await holder.communicate(b"\n")


attempt = of_group("processes of the host")
ALONE = walls("PROCESSES", "USER")
OPEN = ALONE | walls("CAPABILITIES")
ABSENT = "ESRCH"


def steered(name: str, mechanism: str, work: str, **more: object) -> Attempt:
    return attempt(
        name, mechanism=mechanism, payload=STEER.replace("WORK", work), scene=scenes.stranger,
        **{"without": OPEN, "by": "process namespace", "refusal": ABSENT} | more,
    )  # fmt: skip


def seen(name: str, mechanism: str, payload: str, **more: object) -> Attempt:
    return attempt(
        name, mechanism=mechanism, payload=payload,
        **{"without": ALONE, "scene": scenes.stranger, "refusal": "ENOENT",
           "by": "process namespace"} | more,
    )  # fmt: skip


ENDING = {way: source for way, source in WAYS.items() if way not in ("kill of a group", "F_SETOWN")}

ATTEMPTS = [
    *(
        attempt(f"ending a host's process by {way}", mechanism=way, payload=f"{source}\n{END}",
                without=ALONE | walls("CALLS"), scene=scenes.doomed, refusal=ABSENT,
                by="process namespace")
        for way, source in ENDING.items()
    ),
    steered("a host's process, its limits", "prlimit",
            'syscall(NUMBERS["prlimit64"], pid, 7, struct.pack("=QQ", 9, 9), None)'),
    steered("a host's process, last of all", "setpriority",
            "os.setpriority(os.PRIO_PROCESS, pid, 19)"),
    steered("a host's process on an idle schedule", "sched_setscheduler",
            "os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))"),
    steered("a host's process on one processor", "sched_setaffinity",
            "os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})"),
    steered("a host's process, its disk requests", "ioprio_set",
            'syscall(NUMBERS["ioprio_set"], 1, pid, 3 << 13)'),
    steered("a host's process, a descriptor of it", "pidfd_open", "os.pidfd_open(pid)"),
    steered("a host's process dies first", "/proc/PID/oom_score_adj",
            'open(f"/proc/{pid}/oom_score_adj", "w").write("1000")', refusal="ENOENT"),
    seen("the host's processes, listed", "/proc", SEE, refusal="not in the list"),
    seen("the host's processes, tried by number", "kill", COUNT, refusal="nobody answers"),
    seen("a host's process, its group", "getpgid", f"CALL = os.getpgid\n{GROUP}", refusal=ABSENT),
    seen("a host's process, its session", "getsid", f"CALL = os.getsid\n{GROUP}", refusal=ABSENT),
    seen("a host's process, its state", "/proc/PID/status", in_proc("status")),
    seen("a host's process, its threads", "/proc/PID/task", in_proc("comm")),
    seen("a host's process, its memory", "/proc/PID/mem", MEMORY,
         scene=scenes.victim, as_root=True, without=OPEN),
    seen("a host's process, its memory by a call", "process_vm_readv", VECTOR,
         scene=scenes.victim, as_root=True,
         without=OPEN | walls("CALLS")),
    seen("a host's process, traced", "ptrace", TRACE, as_root=True, refusal="EPERM",
         without=OPEN | walls("CALLS"), by="system call filter"),
    seen("a host's process, its descriptors", "pidfd_getfd", TAKE,
         scene=scenes.victim, as_root=True, refusal=ABSENT,
         without=OPEN | walls("CALLS")),
    attempt("the host's locks", mechanism="/proc/locks", payload=LOCKS, scene=locked,
            without=ALONE | walls("MASKS"), by="masked /proc", refusal="EACCES"),
]  # fmt: skip
