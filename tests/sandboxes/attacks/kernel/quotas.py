"""Attempts to take from other sandboxes what the kernel counts for a user, for a namespace or for
the whole machine, or to disturb their processes.

In each a second sandbox has a program at work, which uses a little of everything before and during
the attack. In the control attacker and neighbour are in one sandbox, so that nothing stands
between them, and the neighbour's work must fail; with all walls it must go on.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from functools import partial

from records.errors import SynthError
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.stdio import StdioProcess
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.local.backend import lease
from tests.sandboxes.attacks.attempt import (
    PRELUDE,
    Attempt,
    Scene,
    of_group,
    python,
    walls,
)
from tests.sandboxes.attacks.kernel.ordinary_work import WORK

PATIENCE_S = 10.0
"""How long a line may take."""

LOOKED_AFTER_S = 1.0
"""Of what the kernel does not bound the host takes a look from time to time: until then the
neighbour may have to wait."""

ROOMY = Limits(timeout_s=10, memory_mb=192, processes=48, disk_mb=16, open_files=256)

STAND = """
import fcntl
try:
    print("standing:", attack(*sys.argv[1:]), flush=True)
except OSError as error:
    print("refused", errno.errorcode.get(error.errno, error), flush=True)
except Refused as error:
    print("refused", error, flush=True)
sys.stdin.read()
"""


INOTIFY = """
def attack():
    for count in range(250):
        if libc.inotify_init1(0) < 0:
            break
    return f"{count}, then {os.strerror(ctypes.get_errno())}"
"""
WATCHES = """
def attack():
    paths = [os.path.join(d, f).encode() for d, _, found in os.walk("/usr/lib") for f in found[:99]]
    count, paths = 0, [path for path in paths[:9_000] if not os.path.islink(path)][:4_000]
    for fd in [libc.inotify_init1(0) for _ in range(100)]:
        for path in paths:
            if libc.inotify_add_watch(fd, path, 0x200) < 0:
                return f"{count}, then {os.strerror(ctypes.get_errno())}"
            count += 1
    return count
"""
SIGNALS = """
def attack():
    import signal
    signal.pthread_sigmask(signal.SIG_BLOCK, [50])
    pid, value = os.getpid(), ctypes.c_void_p(7)
    for count in range(300_000):
        if libc.sigqueue(pid, 50, value):
            break
    return f"{count}, then {os.strerror(ctypes.get_errno())}"
"""
TIMERS = """
def attack():
    ident = ctypes.c_void_p()
    for count in range(300_000):
        if libc.timer_create(1, None, ctypes.byref(ident)):
            break
    return f"{count}, then {os.strerror(ctypes.get_errno())}"
"""
TERMINALS = """
def attack():
    reader, writer = os.pipe()
    for _ in range(16):
        if os.fork() == 0:
            count = 0
            try:
                while True:
                    os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
                    count += 1
            except OSError as error:
                os.write(writer, f"{count}, {errno.errorcode[error.errno]}; ".encode())
            time.sleep(60)
    seen = b""
    while seen.count(b";") < 16:
        seen += os.read(reader, 999)
    return seen.decode()
"""
PIPES = """
def attack():
    count = 0
    while True:
        _, end = os.pipe()
        try:
            fcntl.fcntl(end, 1031, 1 << 20)  # F_SETPIPE_SZ
        except OSError:
            if fcntl.fcntl(end, 1032) < 65536:  # F_GETPIPE_SZ
                return f"{count} MiB"
        else:
            count += 1
"""
IN_FLIGHT = """
kept = []
def attack():
    for count in range(20):
        one, two = socket.socketpair()
        kept.append((one, two))
        try:
            for _ in range(10):
                socket.send_fds(one, [b"x"], [0] * 250)
        except OSError as error:
            return f"{count}, then {error}"
    return "all"
"""
SYSTEM_V = """
def attack():
    made = dict(shm=lambda: libc.shmget(0, 4096, 0o1600), msg=lambda: libc.msgget(0, 0o1600),
                sem=lambda: libc.semget(0, 1, 0o1600))["{kind}"]
    for count in range(40_000):
        if made() < 0:
            break
    return f"{{count}}, then {{os.strerror(ctypes.get_errno())}}"
"""
LOCKED = """
def attack():
    for count in range(20):
        if libc.shmctl(libc.shmget(0, 1 << 20, 0o1600), 11, None) < 0:  # SHM_LOCK
            libc.shmctl(libc.shmget(0, 1 << 12, 0o1600), 11, None)
    for _ in range(2000):
        if libc.shmctl(libc.shmget(0, 1 << 12, 0o1600), 11, None) < 0:
            break
    return f"{count} MiB and more"
"""
ASYNCHRONOUS = """
def attack():
    with open("/proc/sys/fs/aio-max-nr") as file:
        most = int(file.read())
    syscall(NUMBERS["io_setup"], most, ctypes.byref(ctypes.c_ulong(0)))
    return f"all {most} of the machine's"
"""
FORKS = """
def attack():
    for count in range(300):
        try:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
        except OSError as error:
            return f"{count}, then {error}"
    return "300"
"""
OF_ALL = """
def attack():
    {each}
    return "all that it sees"
"""
EVERY = """
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid()):
            try:
                {0}
            except OSError:
                pass
"""
FILL = """
def attack():
    with open("/tmp/fill", "wb", 0) as file:
        try:
            while file.write(bytes(1_000_000)) == 1_000_000:
                pass
        except OSError as error:
            return error
"""

KEYS = """
def attack():
    for count in range(1000):
        if libc.syscall(NUMBERS["add_key"], b"user", f"key-{count}".encode(), b"x", 1, -2) < 0:
            if count == 0:
                raise OSError(ctypes.get_errno(), "")
            return f"{count}, then {os.strerror(ctypes.get_errno())}"
    return "1000 keys"
"""

BIND = """
kept = []
def attack():
    for port in range(7000, 7200):
        kept.append(socket.create_server(("127.0.0.1", port + 1000)))
    kept.append(socket.socket(socket.AF_UNIX))
    kept[-1].bind(chr(0) + "service")
    return "the ports of services"
"""

PRIORITY = OF_ALL.format(each="os.setpriority(os.PRIO_USER, 0, 19)")
INPUT = OF_ALL.format(each='syscall(NUMBERS["ioprio_set"], 3, os.getuid(), 3 << 13)')


async def disturb(attempt: Attempt, sandbox: Sandbox, scene: Scene, *, rare: str = "") -> str:
    """The neighbour works before the attack and while it stands. `rare` names work that is possible
    in the control alone."""
    async with undisturbed() if attempt.alone else contextlib.nullcontext():
        if scene.control:
            return await disturb_one(attempt, sandbox, sandbox, rare)
        async with lease(SandboxTemplate(limits=attempt.limits)) as other:
            return await disturb_one(attempt, sandbox, other, "")


@contextlib.asynccontextmanager
async def undisturbed() -> AsyncIterator[None]:
    """Alone on this machine, whichever process and user plays: a name that one socket can have."""
    with socket.socket(socket.AF_UNIX) as mutex:
        async with asyncio.timeout(120):
            while True:
                try:
                    mutex.bind(b"\0agentic-synth-attempt")
                    break
                except OSError:
                    await asyncio.sleep(0.05)
        yield


async def disturb_one(attempt: Attempt, sandbox: Sandbox, other: Sandbox, rare: str) -> str:
    neighbour = await other.open_stdio(python(WORK))
    if (said := await lines_of(neighbour, 1)) != ["ready"]:
        return f"unclear: the neighbour does not start: {said}"
    if (before := await work(neighbour, rare)) != "all is done":
        return f"unclear: the neighbour does not even work before: {before}"
    attacker = await sandbox.open_stdio(python(f"{PRELUDE}{attempt.payload}{STAND}"))
    said = await lines_of(attacker, 2)
    if said[:1] != ["tried"] or (len(said) < 2 and attacker.ended is None):
        return f"unclear: the attack does not stand: {said}"
    if said[-1].startswith("refused"):
        return said[-1]
    after = await work(neighbour, rare)
    if after != "all is done" and sandbox is not other:
        await asyncio.sleep(LOOKED_AFTER_S)
        after = await work(neighbour, rare)
    if after == "all is done":
        return "refused the neighbour works"
    return f"won the neighbour fails: {after}; {said[-1]}"


async def work(neighbour: StdioProcess, rare: str) -> str:
    with contextlib.suppress(SynthError):
        await neighbour.write(f"{rare}\n".encode())
    return "".join(await lines_of(neighbour, 1)) or "it is dead"


async def lines_of(process: StdioProcess, count: int, *, within_s: float = PATIENCE_S) -> list[str]:
    """The next lines that it says; fewer where it ends, or says nothing for too long."""
    text = ""
    with contextlib.suppress(TimeoutError, SynthError):
        async with asyncio.timeout(within_s):
            while text.count("\n") < count and (data := await process.read()):
                text += data.decode(errors="replace")
    return text.splitlines()


attempt = partial(
    of_group("other sandboxes"), play=disturb, refusal="the neighbour works",
    guard="a sandbox of its own", limits=ROOMY,
)  # fmt: skip
USER = {"by": "a user of its own", "one_uid": "the kernel counts it for the user", "alone": True}
NAMESPACE = {"by": "user namespace"}
IPC = {"by": "IPC namespace"}
PROCESSES = {"by": "process namespace"}
CALLS = {"by": "system call filter", "without": walls("CALLS"), "refusal": "EPERM"}

ATTEMPTS = [
    attempt("all inotify instances", mechanism="quota of inotify", payload=INOTIFY, **USER),
    attempt("all pending signals", mechanism="quota of signals", payload=SIGNALS, **NAMESPACE),
    attempt("all timers", mechanism="quota of signals", payload=TIMERS, **NAMESPACE),
    attempt("all memory of pipes", mechanism="quota of pipes", payload=PIPES, **USER),
    attempt("all descriptors in flight", mechanism="quota of descriptors in flight",
            payload=IN_FLIGHT, **USER),
    attempt("all memory that may be locked", mechanism="quota of locked memory", payload=LOCKED,
            **NAMESPACE),
    # until the watcher looks, no sandbox of such a caller finds one, whoever's neighbour it is
    attempt("all pseudoterminals", mechanism="count of pseudoterminals", payload=TERMINALS,
            alone=True),
    attempt("all shared memory identifiers", mechanism="System V objects",
            payload=SYSTEM_V.format(kind="shm"), **IPC),
    attempt("all message queues", mechanism="System V objects",
            payload=SYSTEM_V.format(kind="msg"), **IPC),
    attempt("all semaphores", mechanism="System V objects",
            payload=SYSTEM_V.format(kind="sem"), **IPC),
    attempt("all processes", mechanism="number of processes", payload=FORKS,
            by="limit of processes"),
    attempt("all room for files", mechanism="tmpfs", payload=FILL, by="a tmpfs of its own"),
    attempt("ports and names of services", mechanism="names of sockets", payload=BIND,
            by="network namespace"),
    attempt("all keys", mechanism="quota of keys", payload=KEYS, **CALLS,
            play=partial(disturb, rare="keys")),
    attempt("all asynchronous requests", mechanism="count of asynchronous requests",
            payload=ASYNCHRONOUS, play=partial(disturb, rare="requests"), alone=True,
            **CALLS | {"refusal": "ENOSYS"}),
    attempt("lowest priority for everybody", mechanism="priority of others", payload=PRIORITY,
            **CALLS),
    attempt("last place at disks for everybody", mechanism="priority of others", payload=INPUT,
            **CALLS),
    attempt("one processor for everybody", mechanism="affinity of others",
            payload=OF_ALL.format(each=EVERY.format("os.sched_setaffinity(int(name), {0})")),
            **PROCESSES),
    attempt("fewer descriptors for everybody", mechanism="resource limits of others",
            payload=OF_ALL.format(each="import resource" + EVERY.format(
                "resource.prlimit(int(name), resource.RLIMIT_NOFILE, (64, 64))")), **PROCESSES),
    attempt("killing everybody", mechanism="signals to others",
            payload=OF_ALL.format(each="os.kill(-1, 9)"), **PROCESSES | {"refusal": "ESRCH"}),
]  # fmt: skip

LONG = [
    attempt("all inotify watches", mechanism="quota of inotify", payload=WATCHES, **USER),
]
"""Of many seconds: marked `scale`."""
