"""Attempts on the agent inside and on the host through it."""

import platform

from sandboxes.core.sandbox import Sandbox
from sandboxes.local import seccomp
from tests.sandboxes.attacks import scenes
from tests.sandboxes.attacks.attempt import Attempt, Scene, of_group, python, walls

MEMORY = """
def attack():
    with open("/proc/2/mem", "rb", 0) as memory, open("/proc/2/maps") as maps:
        memory.seek(int(maps.read().partition("-")[0], 16))
        return f"{len(memory.read(16))} bytes of the agent"
"""

READ_VECTOR = """
def attack():
    buffer = ctypes.create_string_buffer(16)
    local = struct.pack("=QQ", ctypes.addressof(buffer), 16)
    remote = struct.pack("=QQ", 4096, 16)
    try:
        syscall(NUMBERS["process_vm_readv"], 2, local, 1, remote, 1, 0)
    except OSError as error:
        if error.errno != errno.EFAULT:  # nothing is mapped there, found out after the check
            raise
    return "the agent's memory may be read"
"""

TRACE_AGENT = """
def attack():
    syscall(NUMBERS["ptrace"], 0x4206, 2, None, None)
    return "the agent is traced"
"""

STEAL = """
def attack():
    pidfd = os.pidfd_open(2)
    return f"descriptor {syscall(NUMBERS['pidfd_getfd'], pidfd, 1, 0)}, the agent's stdout"
"""

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
    call = seccomp.MACHINES[platform.machine()].numbers["pidfd_getfd"]
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
HIDDEN = walls("HIDDEN_AGENT")
TRACED = walls("HIDDEN_AGENT", "CALLS")

ATTEMPTS = [
    attempt("a forged result", refusal="Operation not permitted", without=TRACED,
            by="system call filter",
            scene=scenes.of(scenes.nonce), play=forge),
    attempt("reading the agent's memory", refusal="EACCES", payload=MEMORY, without=HIDDEN),
    attempt("reading the agent's memory by process_vm_readv", as_root=True,
            refusal="EPERM",
            payload=READ_VECTOR, without=TRACED, by="system call filter"),
    attempt("tracing the agent", refusal="EPERM", payload=TRACE_AGENT, without=TRACED,
            by="system call filter"),
    attempt("taking the agent's descriptors", refusal="EPERM", payload=STEAL, without=TRACED,
            by="system call filter"),
]  # fmt: skip
