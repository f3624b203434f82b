"""Attempts to learn what the host holds in memory: environments, arguments, names, messages."""

import ctypes
import os
import secrets
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sandboxes.local.protections import Protection
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.agent.reaching import HIDDEN
from tests.sandboxes.attacks.attempt import Scene, of_group, walls
from tests.sandboxes.attacks.outside.files import OPEN, READ, in_proc

ENVIRON = """
def attack(name):
    for folder in os.listdir("/proc"):
        try:
            with open(f"/proc/{folder}/environ", "rb") as file:
                text = file.read().decode()
        except OSError:
            continue
        if name + "=" in text:
            return text.partition(name + "=")[2].partition(chr(0))[0]
    raise Refused("in no environment that can be read")
"""

NODE = """
def attack(name):
    if os.uname().nodename == name:
        return "the host's name " + name
    raise Refused("it is called " + os.uname().nodename)
"""

CONTROL_GROUP = """
def attack(pid):
    with open("/proc/self/cgroup") as file:
        text = file.read()
    if f".{pid}." in text:
        return "the owner's process id " + pid
    raise Refused("its groups are called /")
"""

SHARED_MEMORY = """
def attack(key):
    ident = libc.shmget(int(key), 0, 0)
    if ident < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    libc.shmat.restype = ctypes.c_void_p
    return ctypes.string_at(libc.shmat(ident, None, 0o10000)).decode()
"""

MESSAGES = """
def attack(key):
    ident = libc.msgget(int(key), 0)
    if ident < 0:
        raise OSError(ctypes.get_errno(), "msgget")
    buffer = ctypes.create_string_buffer(108)
    size = libc.msgrcv(ident, buffer, 100, 0, 0o4000)
    return buffer.raw[8:8 + size].decode()
"""


@asynccontextmanager
async def own_environment(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A key in the environment of the process that makes the sandbox."""
    name, word = f"API_KEY_{secrets.token_hex(4)}", scenes.nonce()
    os.environ[name] = word
    try:
        yield Scene((name,), proof=word)
    finally:
        del os.environ[name]


@asynccontextmanager
async def machine_id(_without: Set[Protection]) -> AsyncIterator[Scene]:
    path = Path("/var/lib/dbus/machine-id")
    if not path.exists():
        path = Path("/etc/machine-id")
    if not path.exists():
        pytest.skip("this machine has no id")
    yield Scene((str(path),), str(path), proof=path.read_text().strip())


@asynccontextmanager
async def shared_memory(_without: Set[Protection]) -> AsyncIterator[Scene]:
    libc, word = ctypes.CDLL(None, use_errno=True), scenes.nonce()
    libc.shmat.restype = ctypes.c_void_p
    key = int.from_bytes(os.urandom(3)) + 1
    ident = libc.shmget(key, 4096, 0o1666)
    assert ident >= 0, os.strerror(ctypes.get_errno())
    try:
        address = libc.shmat(ident, None, 0)
        ctypes.memmove(address, word.encode(), len(word))
        libc.shmdt(ctypes.c_void_p(address))
        yield Scene((str(key),), proof=word)
    finally:
        libc.shmctl(ident, 0, None)


@asynccontextmanager
async def message_queue(_without: Set[Protection]) -> AsyncIterator[Scene]:
    libc, word = ctypes.CDLL(None, use_errno=True), scenes.nonce()
    key = int.from_bytes(os.urandom(3)) + 1
    ident = libc.msgget(key, 0o1666)
    assert ident >= 0, os.strerror(ctypes.get_errno())
    try:
        message = ctypes.create_string_buffer((1).to_bytes(8, "little") + word.encode())
        assert libc.msgsnd(ident, message, len(word), 0) == 0
        yield Scene((str(key),), proof=word)
    finally:
        libc.msgctl(ident, 0, None)


attempt = of_group("secrets of the host")

ATTEMPTS = [
    attempt("the owner's environment", mechanism="/proc/PID/environ",
            refusal="in no environment that can be read",
            payload=ENVIRON, scene=own_environment, without=walls("ENVIRONMENT") | HIDDEN),
    attempt("environment of a host's process", mechanism="/proc/PID/environ", as_root=True,
            refusal="ENOENT", payload=in_proc("environ"), by="process namespace",
            without=OPEN, scene=scenes.victim),
    attempt("arguments of a host's process", mechanism="/proc/PID/cmdline",
            refusal="ENOENT", payload=in_proc("cmdline"),
            without=walls("PROCESSES"), scene=scenes.victim),
    attempt("name of the host", mechanism="UTS namespace",
            refusal="it is called sandbox", payload=NODE,
            without=walls("HOSTNAME"), scene=scenes.of(lambda: os.uname().nodename)),
    attempt("the owner's process id in control groups", mechanism="/proc/PID/cgroup", needs="pids",
            refusal="its groups are called /",
            payload=CONTROL_GROUP, without=walls("GROUPS"),
            scene=scenes.of(lambda: str(os.getpid()))),
    attempt("the machine's id", mechanism="paths",
            refusal="ENOENT", payload=READ, shown=True, scene=machine_id),
    attempt("shared memory of the host", mechanism="System V shared memory",
            refusal="ENOENT", payload=SHARED_MEMORY,
            without=walls("IPC"), scene=shared_memory),
    attempt("message queue of the host", mechanism="System V message queues",
            refusal="ENOENT", payload=MESSAGES,
            without=walls("IPC"), scene=message_queue),
]  # fmt: skip
