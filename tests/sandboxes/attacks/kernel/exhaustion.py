"""Attempts to use up the machine, or to outlive a limit of time.

The controls raise one limit, to a value that this machine can bear.
"""

from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from typing import Any

from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Limits
from sandboxes.local.protections import Protection
from tests.sandboxes.attacks.attempt import (
    CAPS,
    Attempt,
    Scene,
    of_group,
    python,
    walls,
)
from tests.sandboxes.attacks.scenes import open_folder, words
from tests.sandboxes.on_host import body_of

FORKS = """
def attack():
    count = 0
    while count < 100:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        count += 1
    return f"{count} processes"
"""

TREE = """
def attack():
    first = os.getpid()
    reader, writer = os.pipe()
    for _ in range(7):  # each doubles: 128 at the end
        try:
            os.fork()
        except OSError:
            os.write(writer, b"E")
            break
    else:
        os.write(writer, b".")
    if os.getpid() != first:
        time.sleep(30)
        os._exit(0)
    seen = b""
    while len(seen) < 128 and b"E" not in seen:
        seen += os.read(reader, 200)
    if b"E" in seen:
        raise Refused("EAGAIN")
    return "128 processes"
"""

THREADS = """
def attack():
    import _thread
    lock = _thread.allocate_lock()
    lock.acquire()
    for count in range(100):
        try:
            _thread.start_new_thread(lock.acquire, ())
        except RuntimeError as error:
            raise Refused(str(error))
    return "100 threads"
"""

ZOMBIES = """
def attack():
    for count in range(100):
        if os.fork() == 0:
            os._exit(0)
    return "100 zombies"
"""

MEMORY = """
def attack():
    block = bytearray(100_000_000)
    block[::4096] = b"x" * len(block[::4096])
    return "100 MB"
"""

MEMORY_OF_MANY = """
def attack():
    for _ in range(10):
        if os.fork() == 0:
            block = bytearray(10_000_000)
            block[::4096] = b"x" * len(block[::4096])
            time.sleep(30)
            os._exit(0)
    time.sleep(1)
    for _ in range(10):
        if os.waitpid(-1, os.WNOHANG)[0]:
            raise Refused("some were killed for memory")
    return "100 MB in 10 processes"
"""

FILL = """
def attack(path):
    for number in range(6):
        with open(f"{path}/{number}", "wb", 0) as file:
            for _ in range(4):
                if file.write(bytes(1_000_000)) < 1_000_000:
                    raise OSError(errno.ENOSPC, "no room")
    return "24 MB of files"
"""

SPARSE = """
def attack():
    with open("/workspace/file", "wb") as file:
        file.truncate(500_000_000)
    return "a file of 500 MB that takes no room"
"""

INODES = """
def attack():
    for number in range(40_000):
        os.close(os.open(f"/workspace/{number}", os.O_CREAT | os.O_WRONLY))
    return "40000 files"
"""

DESCRIPTORS = """
def attack():
    for _ in range(500):
        os.dup(0)
    return "500 descriptors"
"""

FLOOD = """
def attack(fd):
    for _ in range(100):
        os.write(int(fd), b"x" * 9_999 + b"\\n")
    return "1 MB"
"""

SLEEP = """
def attack():
    time.sleep(1.2)
    return "it slept to the end"
"""

BURN = """
def attack():
    end = time.monotonic() + 1.2
    while time.monotonic() < end:
        pass
    return "it ran to the end"
"""

IGNORE = """
def attack():
    import signal
    for number in set(range(1, 65)) - {9, 19, 32, 33}:
        signal.signal(number, signal.SIG_IGN)
    time.sleep(1.2)
    return "it slept to the end"
"""

STOPPED = """
def attack():
    child = os.fork()
    if child == 0:
        time.sleep(1.2)
        os.kill(os.getppid(), 18)  # SIGCONT
        os._exit(0)
    os.kill(os.getpid(), 19)
    return "it woke up again"
"""

BURN_TWICE = """
import os, time
os.fork()
while time.process_time() < 0.15:
    pass
"""

DAEMON = """
import os, sys, time
print("tried", flush=True)
if os.fork():
    while not os.path.exists("/workspace/alive"):
        time.sleep(0.01)
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.dup2(os.open("/dev/null", os.O_RDWR), 1)
os.dup2(1, 2)
while True:
    open("/workspace/alive", "a").write(".")
    time.sleep(0.01)
"""


async def outlive(_attempt: Attempt, sandbox: Sandbox, _scene: Scene) -> str:
    """A daemon detaches itself, and its command ends."""
    done = await sandbox.exec(python(DAEMON))
    return await still_alive(sandbox, done.stdout == b"tried\n")


async def still_alive(sandbox: Sandbox, tried: bool) -> str:
    if not tried:
        return "unclear: the daemon did not start"
    script = "stat -c %s alive; sleep 0.3; stat -c %s alive"
    first, second = (await sandbox.exec(["sh", "-c", script])).stdout.split()
    return "refused it is dead" if first == second else "won it lives on"


async def outlive_deadline(_attempt: Attempt, sandbox: Sandbox, _scene: Scene) -> str:
    """A daemon detaches itself from a command that runs out of time."""
    script = DAEMON.replace("    os._exit(0)\nos.setsid", "    time.sleep(60)\nos.setsid")
    done = await sandbox.exec(python(script), timeout_s=0.8)
    return await still_alive(sandbox, done.timed_out)


LEASE = """
def attack(path):
    import fcntl
    fcntl.fcntl(os.open(path, os.O_RDONLY), 1024, 0)  # F_SETLEASE to F_RDLCK
    return "who opens it to write has to wait"
"""


@asynccontextmanager
async def shared_file(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A file of the caller's, in a folder that the sandbox is given."""
    with open_folder() as folder:
        (folder / "file").write_text("shared")
        yield Scene((str(folder / "file"),), str(folder))


async def outlive_beside(_attempt: Attempt, sandbox: Sandbox, _scene: Scene) -> str:
    """The same beside a running server, which must not be killed with it."""
    server = await sandbox.open_stdio(["cat"])
    words = await outlive(_attempt, sandbox, _scene)
    await server.write(b"still here")
    return words if await server.read() == b"still here" else "unclear: the server died"


async def use_processors(_attempt: Attempt, sandbox: Sandbox, _scene: Scene) -> str:
    """Two processes compute for so much time of a processor, however long a busy machine takes to
    give it; the kernel counts how often it held them back."""
    done = await sandbox.exec(python(BURN_TWICE))
    for folder in body_of(sandbox).group.folders:
        if (stat := folder / "cpu.stat").exists() and done.exit_code == 0:
            counts = dict(line.split() for line in stat.read_text().splitlines())
            held_back = int(counts["nr_throttled"]) > 0
            return "refused held back by the kernel" if held_back else "won all they asked for"
    return f"unclear: {done}"


attempt = of_group("exhaustion and time")


def limits(**changed: Any) -> Limits:
    return CAPS.model_copy(update=changed)


def raised(**values: tuple[float, float]) -> dict[str, Any]:
    """Each limit as it is, and as the control raises it."""
    low, high = ({name: pair[i] for name, pair in values.items()} for i in (0, 1))
    return {"limits": limits(**low), "loosened": limits(**high)}


MANY = raised(processes=(24, 180)) | {"needs": "pids"}
ROOMY = raised(memory_mb=(64, 256)) | {"needs": "memory"}
SHORT = raised(timeout_s=(0.8, 10))

ATTEMPTS = [
    attempt("fork bomb", refusal="EAGAIN", payload=FORKS, **MANY),
    attempt("fork bomb that doubles", refusal="EAGAIN", payload=TREE, **MANY),
    attempt("threads", refusal="can't start new thread", payload=THREADS, **MANY),
    attempt("zombies", refusal="EAGAIN", payload=ZOMBIES, **MANY),
    attempt("memory", refusal="killed for memory", payload=MEMORY, **ROOMY),
    attempt("memory of many processes", refusal="some were killed for memory",
            payload=MEMORY_OF_MANY, **ROOMY),
    attempt("files in memory, more than their number of bytes", refusal="killed for memory",
            payload=INODES, needs="memory", **raised(memory_mb=(32, 256))),
    *(
        attempt(f"filling {path}", refusal="ENOSPC", payload=FILL, without=walls("SIZES"),
                scene=words(path))
        for path in ("/workspace", "/tmp", "/dev/shm")
    ),
    attempt("a file larger than the disk", refusal="EFBIG", payload=SPARSE,
            **raised(disk_mb=(16, 600))),
    attempt("descriptors", refusal="EMFILE", payload=DESCRIPTORS,
            **raised(open_files=(128, 1000))),
    *(
        attempt(f"flood of {name}", refusal="output was cut", payload=FLOOD, scene=words(fd),
                **raised(output_bytes=(10_000, 4_000_000)))
        for name, fd in (("output", "1"), ("errors", "2"))
    ),
    attempt("processor time", refusal="held back by the kernel", play=use_processors, needs="cpu",
            **raised(cpus=(0.1, 100))),
    attempt("sleeping forever", refusal="its time was up", payload=SLEEP, **SHORT),
    attempt("computing forever", refusal="its time was up", payload=BURN, **SHORT),
    attempt("ignoring every signal", refusal="its time was up", payload=IGNORE, **SHORT),
    attempt("stopping itself until the limit has passed", refusal="its time was up",
            payload=STOPPED, **SHORT),
    attempt("a lease of a file, for which its owner waits", refusal="EINVAL", payload=LEASE,
            mechanism="leases", scene=shared_file, given=True, without=walls("CALLS", "USER"),
            by="system call filter"),
    attempt("a daemon outlives its command", refusal="it is dead", play=outlive,
            without=walls("ORPHANS")),
    attempt("a daemon outlives its time limit", refusal="it is dead", play=outlive_deadline,
            without=walls("ORPHANS")),
    attempt("a daemon hides behind a server", refusal="it is dead", play=outlive_beside,
            without=walls("ORPHANS")),
]  # fmt: skip
