"""Attempts on other sandboxes of this machine, and on the tests that grade a program."""

import ctypes
import os
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager

from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import SandboxTemplate
from sandboxes.local.backend import lease
from sandboxes.local.protections import Protection
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import (
    CAPS,
    Attempt,
    Scene,
    of_group,
    python,
    run_payload,
    walls,
)
from tests.sandboxes.attacks.kernel.exhaustion import DAEMON
from tests.sandboxes.attacks.outside.files import OPEN
from tests.sandboxes.attacks.outside.secrets_of_host import ENVIRON, SHARED_MEMORY
from tests.sandboxes.attacks.scenes import nonce

SERVE = """
import ctypes, os, socket, sys
word, key = sys.argv[1].encode(), int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
ident = libc.shmget(key, 4096, 0o1666)
ctypes.memmove(libc.shmat(ident, None, 0), word, len(word))
abstract = socket.socket(socket.AF_UNIX)
abstract.bind(chr(0) + f"neighbour-{key}")
server = socket.create_server(("127.0.0.1", 0))
open(f"/workspace/secret-{key}", "wb").write(word)
print(server.getsockname()[1], flush=True)
abstract.listen()
if os.fork() == 0:
    server = abstract
while True:
    peer = server.accept()[0]
    peer.sendall(word)
    peer.close()
"""

PORT = """
def attack(port, key):
    with socket.create_connection(("127.0.0.1", int(port)), timeout=3) as s:
        return s.recv(100).decode()
"""

ABSTRACT = """
def attack(port, key):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(chr(0) + "neighbour-" + key)
        return s.recv(100).decode()
"""

FILES = """
def attack(port, key):
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/root/workspace/secret-{key}") as file:
                return file.read()
        except OSError:
            continue
    raise Refused("no process of another sandbox is there")
"""

KILL = """
def attack(port, key):
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(bytes(1))
            if key.encode() in words and int(name) != os.getpid():
                os.kill(int(name), 9)
                return "it is killed"
        except (OSError, ValueError):
            continue
    raise Refused("no process of another sandbox is there")
"""

ONE_ARGUMENT = "{0}\nby_one = attack\ndef attack(port, key):\n    return by_one({1})\n"

NO_WALL_BETWEEN = walls("NETWORK", "IPC")
"""Walls that must be gone on both sides: with one side inside, nothing is shared."""


@asynccontextmanager
async def neighbour(without: Set[Protection]) -> AsyncIterator[Scene]:
    """Another sandbox at work, with a secret in its files, its environment, its shared memory and
    on its sockets. Arguments: the port on which it serves, the name of what it shares."""
    word, key = nonce(), str(int.from_bytes(os.urandom(3)) + 1)
    async with lease(SandboxTemplate(limits=CAPS), without=without & NO_WALL_BETWEEN) as other:
        server = await other.open_stdio(python(SERVE, word, key), env={f"KEY_{key}": word})
        port = (await server.read()).decode().strip()
        try:
            yield Scene((port, key), proof=word)
        finally:
            if Protection.IPC in without:  # then it is the host's, and outlives the sandbox
                libc = ctypes.CDLL(None)
                libc.shmctl(libc.shmget(int(key), 0, 0), 0, None)


@asynccontextmanager
async def doomed(_without: Set[Protection]) -> AsyncIterator[Scene]:
    key = nonce()
    async with lease(SandboxTemplate(limits=CAPS)) as other:
        server = await other.open_stdio(["sh", "-c", "echo up; read line", key])
        await server.read()
        yield Scene(("", key), other=other, reached=lambda: server.ended is not None)


async def kill_and_look(attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    """After the attempt the other sandbox is asked, so that a death there has been heard of."""
    words = await run_payload(attempt, sandbox, scene)
    assert scene.other is not None
    await scene.other.exec(["sleep", "0.1"])
    return words


GRADED = """
passed = open("/workspace/answer").read() == "42"
print("graded:", "passed" if passed else "failed")
"""


async def patch_the_tests(_attempt: Attempt, sandbox: Sandbox, _scene: Scene) -> str:
    """The program under test leaves something behind that rewrites the tests when they come."""
    script = DAEMON.replace(
        'open("/workspace/alive", "a").write(".")',
        'open("/workspace/alive", "a").write(".")\n'
        '    if os.path.exists("/workspace/grade.py"):\n'
        '        open("/workspace/grade.py", "w").write("print(\'graded: passed\')")',
    )
    await sandbox.write_file("answer", b"wrong")
    if (await sandbox.exec(python(script))).stdout != b"tried\n":
        return "unclear: the program did not start"
    await sandbox.write_file("grade.py", GRADED.encode(), mode=0o666)
    await sandbox.exec(["sleep", "0.3"])
    done = await sandbox.exec([*python("")[:-2], "/workspace/grade.py"])
    graded = done.stdout.decode().strip()
    return {"graded: passed": "won a passed test", "graded: failed": "refused the test failed"}.get(
        graded, f"unclear: {done}"
    )


async def rewrite_given_tests(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    """Tests that lie in a given folder are replaced by renaming, which no file mode forbids."""
    path, word = scene.args
    script = f"echo tried; echo {word} > {path}.new && mv {path}.new {path}"
    done = await sandbox.exec(["sh", "-c", script])
    if done.stdout != b"tried\n":
        return f"unclear: {done}"
    refused = b"Read-only file system" in done.stderr
    return "refused Read-only file system" if refused else "won other tests stand there"


attempt, grade = of_group("other sandboxes"), of_group("tests that grade")
NOBODY = "no process of another sandbox is there"

ATTEMPTS = [
    attempt("a neighbour's port", refusal="ECONNREFUSED", payload=PORT, scene=neighbour,
            without=walls("NETWORK")),
    attempt("a neighbour's abstract socket", refusal="ECONNREFUSED", payload=ABSTRACT,
            scene=neighbour, without=walls("NETWORK")),
    attempt("a neighbour's shared memory", refusal="ENOENT", scene=neighbour,
            payload=ONE_ARGUMENT.format(SHARED_MEMORY, "key"), without=walls("IPC")),
    attempt("a neighbour's files through /proc", as_root=True,
            refusal=NOBODY, payload=FILES, scene=neighbour, by="process namespace",
            without=OPEN),
    attempt("a neighbour's environment", as_root=True,
            refusal="in no environment that can be read",
            payload=ONE_ARGUMENT.format(ENVIRON, '"KEY_" + key'), scene=neighbour,
            by="process namespace", without=OPEN),
    attempt("killing a neighbour's process", refusal=NOBODY, payload=KILL, scene=doomed,
            by="process namespace", without=OPEN, play=kill_and_look),
    grade("rewriting the tests when they come", refusal="the test failed", play=patch_the_tests,
          without=walls("ORPHANS")),
    grade("replacing tests in a given folder", refusal="Read-only file system", given=True,
          without=walls("READ_ONLY"), scene=scenes.target_file, play=rewrite_given_tests),
]  # fmt: skip
