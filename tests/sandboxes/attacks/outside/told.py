"""Attempts to learn what the machine is, where it lies and what runs on it, from what tells."""

import os
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sandboxes.local.protections import Protection
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import Attempt, Scene, Scenery, of_group, walls
from tests.sandboxes.attacks.outside.files import READ

LINE = """
def attack(path):
    with open(path) as file:
        text = file.read()
    if not text.strip(chr(0)):
        return "an empty file"
    return text[:60].replace(chr(10), " ")
"""

ENTRIES = """
def attack(path):
    names = os.listdir(path)
    if not names:
        raise Refused("an empty folder")
    return " ".join(names)[:60]
"""

ADDRESSES = """
def attack():
    with open("/proc/kallsyms") as file:
        first = file.readline().split()
    if not first or int(first[0], 16) == 0:
        raise Refused("no addresses")
    return "the kernel lies at " + first[0]
"""

DOMAIN = """
def attack():
    buffer = ctypes.create_string_buffer(400)
    libc.uname(buffer)
    nodename = buffer.raw[65:130].partition(bytes(1))[0].decode()
    with open("/proc/sys/kernel/hostname") as file:
        other = file.read().strip()
    if {nodename, other} == {"sandbox"}:
        raise Refused("it is called sandbox")
    return nodename + " " + other
"""

QUEUES = """
def attack(key):
    found = []
    for kind in ("shm", "sem", "msg"):
        with open("/proc/sysvipc/" + kind) as file:
            found += file.readlines()[1:]
    if not found:
        raise Refused("no object")
    return f"{len(found)} objects of the host"
"""

SEMAPHORE = """
def attack(key):
    ident = libc.semget(int(key), 0, 0)
    if ident < 0:
        raise OSError(ctypes.get_errno(), "semget")
    return f"its value is {libc.semctl(ident, 0, 12)}"  # GETVAL
"""

POSIX_QUEUE = """
def attack(name):
    rt = ctypes.CDLL("librt.so.1", use_errno=True)
    queue = rt.mq_open(name.encode(), os.O_RDONLY | os.O_NONBLOCK)
    if queue < 0:
        raise OSError(ctypes.get_errno(), "mq_open")
    buffer = ctypes.create_string_buffer(8192)
    size = rt.mq_receive(queue, buffer, 8192, None)
    return buffer.raw[:size].decode()
"""

CONTROL_GROUPS = """
def attack(path):
    for path in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", os.path.dirname(path)):
        if os.path.exists(path):
            with open(path + "/tasks") as file:
                return "processes " + file.read(100).replace(chr(10), " ")
    raise FileNotFoundError(errno.ENOENT, "")
"""

GROUPS_OF_AGENT = """
def attack(pid):
    with open(f"/proc/{AGENT}/cgroup") as file:
        if f".{pid}." in file.read():
            return "the owner's process id " + pid
    raise Refused("its groups are called /")
"""


def found(path: str) -> Scenery:
    """A file of this machine, where it has one."""

    def find() -> str:
        if not Path(path).exists():
            pytest.skip(f"no {path} here")
        return path

    return scenes.of(find)


def told(pattern: str) -> Scenery:
    """A file of the host that matches, with a word in it that only the host has."""

    @asynccontextmanager
    async def scene(_without: Set[Protection]) -> AsyncIterator[Scene]:
        for path in sorted(Path("/").glob(pattern.lstrip("/"))):
            try:
                text = path.read_text().strip()
            except (OSError, UnicodeDecodeError):
                continue
            if text:
                yield Scene((str(path),), str(path.parent), proof=text.split()[0])
                return
        pytest.skip(f"no {pattern} here")

    return scene


@asynccontextmanager
async def semaphore(_without: Set[Protection]) -> AsyncIterator[Scene]:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    key = int.from_bytes(os.urandom(3)) + 1
    ident = libc.semget(key, 1, 0o1666)
    assert ident >= 0, os.strerror(ctypes.get_errno())
    try:
        yield Scene((str(key),))
    finally:
        libc.semctl(ident, 0, 0)


@asynccontextmanager
async def queue(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A POSIX message queue of the host, with a message in it."""
    import ctypes

    libc, word = ctypes.CDLL("librt.so.1", use_errno=True), scenes.nonce()
    name = f"/{scenes.nonce()}"
    before = os.umask(0)
    made = libc.mq_open(name.encode(), os.O_RDWR | os.O_CREAT, 0o666, None)
    os.umask(before)
    if made < 0:
        pytest.skip(f"no message queue can be made here: {os.strerror(ctypes.get_errno())}")
    try:
        assert libc.mq_send(made, word.encode(), len(word), 0) == 0
        yield Scene((name,), proof=word)
    finally:
        os.close(made)
        libc.mq_unlink(name.encode())


attempt = of_group("secrets of the host")
MASKS, IPC = walls("MASKS"), walls("IPC")

MASKED = {
    "how the kernel was started": "cmdline", "the machine's disks": "partitions",
    "what its disks do": "diskstats", "what its devices do": "interrupts",
    "how many keys its users have": "key-users", "keys that can be seen": "keys",
}  # fmt: skip
"""Files of /proc about the machine and other users. What covers one is no file that opens."""


def masked(name: str, file: str) -> Attempt:
    return attempt(
        name, mechanism=f"/proc/{file}", payload=LINE, without=MASKS, refusal="EACCES",
        scene=found(f"/proc/{file}"),
    )  # fmt: skip


ATTEMPTS = [
    *(masked(name, file) for name, file in MASKED.items()),
    *(
        attempt(name, mechanism=f"/proc/{folder}", payload=ENTRIES, without=MASKS,
                refusal="an empty folder", scene=found(f"/proc/{folder}"))
        for name, folder in (
            ("the machine's file systems", "fs"), ("the machine's buses", "bus"),
            ("the machine's interrupts", "irq"), ("the machine's terminals", "tty"),
        )
    ),
    attempt("addresses of the kernel", mechanism="/proc/kallsyms", payload=ADDRESSES,
            without=walls("MASKS", "USER", "CAPABILITIES"), by="masked /proc", refusal="EACCES",
            as_root=True),
    attempt("the host's name by other ways", mechanism="UTS namespace", payload=DOMAIN,
            without=walls("HOSTNAME"), refusal="it is called sandbox"),
    attempt("System V objects, listed", mechanism="/proc/sysvipc", payload=QUEUES, without=IPC,
            scene=semaphore, refusal="no object"),
    attempt("semaphores of the host", mechanism="System V semaphores", payload=SEMAPHORE,
            without=IPC, scene=semaphore, refusal="ENOENT"),
    attempt("a POSIX message queue of the host", mechanism="POSIX message queues",
            payload=POSIX_QUEUE, without=IPC, scene=queue, refusal="ENOENT"),
    attempt("control groups, listed", mechanism="/sys/fs/cgroup", payload=CONTROL_GROUPS,
            shown=True, scene=told("/sys/fs/cgroup/*/tasks"), refusal="ENOENT"),
    attempt("the agent's control groups", mechanism="/proc/PID/cgroup", payload=GROUPS_OF_AGENT,
            without=walls("GROUPS"), needs="pids", refusal="its groups are called /",
            scene=scenes.of(lambda: str(os.getpid()))),
    attempt("addresses of the host's network cards", mechanism="/sys/class", payload=READ,
            shown=True, scene=told("/sys/class/net/*/address"), refusal="ENOENT"),
    attempt("logs of the host", mechanism="/var/log", payload=READ, shown=True,
            scene=told("/var/log/*/*.log"), refusal="ENOENT"),
]  # fmt: skip
