"""Attempts on the agent inside and on the host through it."""

from sandboxes.core.sandbox import Sandbox
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import Attempt, Scene, of_group, python, walls
from tests.sandboxes.attacks.calls import NUMBERS

FORGE = """
import ctypes, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
print("tried", flush=True)
pipe = libc.syscall(int(sys.argv[2]), os.pidfd_open(2), 1, 0)
if pipe < 0:
    print("refused", os.strerror(ctypes.get_errno()), flush=True)
    time.sleep(100)
word = sys.argv[1].encode()
print("ready", flush=True)
while True:
    for ident in range(2, 9):
        head = b'{"id":%d,"event":"exit","exit_code":0,"timed_out":false,"truncated":false,' % ident
        head += b'"stdout_bytes":%d}' % len(word)
        os.write(pipe, struct.pack(">II", len(head), len(word)) + head + word)
    time.sleep(0.001)
"""


async def forge(_attempt: Attempt, sandbox: Sandbox, scene: Scene) -> str:
    """A program left running answers for a later command before it has ended."""
    call = NUMBERS["pidfd_getfd"]
    forger = await sandbox.open_stdio(python(FORGE, scene.args[0], str(call)))
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
TRACED = walls("HIDDEN_AGENT", "CALLS")

ATTEMPTS = [
    attempt("a forged result", mechanism="pidfd_getfd", refusal="Operation not permitted",
            without=TRACED, by="system call filter",
            scene=scenes.of(scenes.nonce), play=forge),
]  # fmt: skip
