"""Attempts on the agent inside and on the host through it."""

from sandboxes.core.sandbox import Sandbox
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import NUMBERS, Attempt, Scene, of_group, python, walls

STREAM = """
import ctypes, json, os, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)

def stolen(call):  # copies of the agent's sockets that are connected
    pidfd, found = os.pidfd_open(1), []
    for number in range(64):
        fd = libc.syscall(call, pidfd, number, 0)
        if fd < 0:
            if ctypes.get_errno() == 9:  # EBADF: there is none of this number
                continue
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        try:
            copy = socket.socket(fileno=fd)
            copy.getpeername()
            found.append(copy)
        except OSError:  # no socket, or one that listens
            continue
    return found
"""

FORGE = """
print("tried", flush=True)
try:
    streams = stolen(int(sys.argv[2]))
except OSError as error:
    print("refused", error.strerror, flush=True)
    time.sleep(100)
word = sys.argv[1].encode()
print("ready", flush=True)
time.sleep(0.1)  # until the agent has passed this on: the host drops what comes late
number = 1000
while True:
    for ident in range(2, 9):
        number += 1
        head = json.dumps({
            "n": number, "seen": 0, "id": ident, "event": "exit", "exit_code": 0,
            "timed_out": False, "truncated": False, "stdout_bytes": len(word)}).encode()
        for stream in streams:
            try:
                stream.send(struct.pack(">II", len(head), len(word)) + head + word)
            except BlockingIOError:  # the host has not read yet
                continue
    time.sleep(0.01)
"""


async def forge(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    """A program left running answers for a later command before it has ended."""
    call = NUMBERS["pidfd_getfd"]
    forger = await sandbox.open_stdio(python(STREAM + FORGE, scene.args[0], str(call)))
    words = b""
    while words.count(b"\n") < 2 and (data := await forger.read()):
        words += data
    done = await sandbox.exec(["sh", "-c", "sleep 0.3; echo the real result"])
    if done.stdout == scene.args[0].encode():
        return "won the host believes a result that was made up"
    if done.stdout != b"the real result\n":
        return f"unclear: {done}"
    return words.decode().splitlines()[1]


attempt = of_group("the host's channel")
TRACED = walls("HIDDEN_AGENT", "USER", "CALLS")

ATTEMPTS = [
    attempt("a forged result", mechanism="pidfd_getfd", refusal="Operation not permitted",
            without=TRACED, by="system call filter",
            scene=scenes.of(scenes.nonce), play=forge),
]  # fmt: skip
