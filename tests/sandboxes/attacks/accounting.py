"""Attempts to hold more of the host's memory than a sandbox may: by pages of programs and files,
and by what the kernel keeps for them.

What counts is measured outside, in the host's own books, since what these payloads look for is
memory that the control group does not see. In the control the limit is so high that the payload
gets all it asks for, 150 to 300 MB, or the wall is gone that bounds it.
"""

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.local import cgroups, watcher
from sandboxes.local.backend import lease
from sandboxes.local.protections import NOTHING
from tests.sandboxes.attacks.attempt import PRELUDE, Attempt, Scene, of_group, python, walls
from tests.sandboxes.attacks.quotas import STAND, lines_of, undisturbed

log = logging.getLogger(__name__)

SMALL = Limits(timeout_s=20, memory_mb=64, processes=48, cpus=8, disk_mb=16, open_files=256)
LARGE = SMALL.model_copy(update={"memory_mb": 512})

SLACK_MB = 32
"""What the host's books may grow beyond the limit: the kernel's caches for speed, and what other
programs of the machine take meanwhile."""

TRIES = 3
"""Other programs take and give back memory too, so that a result other than the expected one is
measured again. What a payload holds, it holds each time."""

EVERY_S = 0.05
FALLS = 4 << 20
"""Bytes less than a moment ago: something is being freed."""

Gauge = Callable[[], int]
"""Shows bytes."""

SPREAD = """
import fcntl, mmap, signal
kept = []

def attack():
    # processes that each take what they can: one alone runs into its limit of descriptors
    reader, writer = os.pipe()
    for place in range(PROCESSES):
        if os.fork() == 0:
            try:
                said = take(place)
            except (OSError, MemoryError) as error:
                said = error
            os.write(writer, f"{said}; ".encode())
            time.sleep(60)
    seen = b""
    while seen.count(b";") < PROCESSES:
        seen += os.read(reader, 9999)
    return seen.decode()[:300]
"""


def spread(take: str, processes: int = 10) -> str:
    return f"{SPREAD}\nPROCESSES = {processes}\n{take}"


UDP = spread("""
def take(place):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(100):
        kept.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        kept[-1].bind(("127.0.0.1", 0))
        for _ in range(4):
            sender.sendto(bytes(60_000), kept[-1].getsockname())
""")

STREAM = """
def fill(end):
    end.setblocking(False)
    try:
        while True:
            end.send(bytes(65_536))
    except BlockingIOError:
        pass
"""

TCP = spread(
    STREAM
    + """
def take(place):
    with socket.create_server(("127.0.0.1", 0)) as server:
        for _ in range(4):
            kept.extend([socket.create_connection(server.getsockname()), server.accept()[0]])
            fill(kept[-2]), fill(kept[-1])
"""
)

UNACCEPTED = spread(
    STREAM
    + """
def take(place):
    kept.append(socket.create_server(("127.0.0.1", 0), backlog=500))
    for _ in range(25):
        with socket.create_connection(kept[0].getsockname(), timeout=1) as end:
            fill(end)
""",
    4,
)

NETLINK = spread("""
def take(place):
    sender = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 2)  # NETLINK_USERSOCK
    sender.bind((0, 0))
    sender.setblocking(False)
    message = struct.pack("=IHHII", 100_000, 32, 0, 0, 0) + bytes(99_984)
    for _ in range(10):
        kept.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 2))
        kept[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        kept[-1].bind((0, 0))
        try:
            while True:
                sender.sendto(message, (kept[-1].getsockname()[0], 0))
        except BlockingIOError:
            pass
""")

UNIX = spread(
    STREAM
    + """
def take(place):
    for _ in range(100):
        kept.extend(socket.socketpair(socket.AF_UNIX, socket.{0}))
        fill(kept[-1])
"""
)

LOCKS = spread(
    """
def take(place):
    # of many files: those of one are a list that the kernel walks for each
    fds = [os.open("/workspace/%d-%d" % (place, n), os.O_CREAT | os.O_RDWR) for n in range(240)]
    for number in range(60, 0, -1):
        lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 2 * number, 1, 0)
        for fd in fds:
            fcntl.fcntl(fd, {0}, lock)
""",
    40,
)

PIPES = spread("""
def take(place):
    for _ in range(100):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            fcntl.fcntl(writer, 1031, 1 << 20)  # F_SETPIPE_SZ
        except OSError:
            pass
        try:
            while True:
                os.write(writer, bytes(65_536))
        except BlockingIOError:
            pass
""")

TERMINALS = spread(
    """
def take(place):
    import termios
    for _ in range(70):
        ours, theirs = os.openpty()
        modes = termios.tcgetattr(theirs)
        modes[0] = modes[1] = modes[3] = 0
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        for fd in (ours, theirs):
            os.set_blocking(fd, False)
            try:
                while True:
                    os.write(fd, bytes(4096))
            except BlockingIOError:
                pass
""",
    40,
)

FILTERS = spread(
    """
def take(place):
    code = struct.pack("=HBBI", 0x34, 0, 0, 7) * 3900 + struct.pack("=HBBI", 6, 0, 0, 0xFFFF)
    kept.append(ctypes.create_string_buffer(code))
    program = struct.pack("=HxxxxxxQ", len(code) // 8, ctypes.addressof(kept[0]))
    for _ in range(100):
        kept.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        kept[-1].setsockopt(socket.SOL_SOCKET, 26, program)  # SO_ATTACH_FILTER
""",
    40,
)

POLICIES = spread(
    """
def take(place):
    libc.mmap.restype, size = ctypes.c_void_p, 16 << 20
    for _ in range(10):
        kept.append(os.memfd_create("policies"))
        os.ftruncate(kept[-1], size)
        start = libc.mmap(None, ctypes.c_size_t(size), 3, 1, kept[-1], ctypes.c_long(0))
        for page in range(size >> 12):
            syscall(NUMBERS["mbind"], ctypes.c_void_p(start + (page << 12)), ctypes.c_long(4096),
                    1 + page % 3, ctypes.byref(ctypes.c_ulong(1)), ctypes.c_ulong(64), 0)
        libc.munmap(ctypes.c_void_p(start), ctypes.c_size_t(size))
""",
    14,
)

MEMORY = """
def attack():
    import mmap
    block = mmap.mmap(-1, 250_000_000, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for _ in range(250):
        block.write(b"x" * 1_000_000)
    globals()["kept"] = block
    return "250 MB"
"""

MEMORY_FILES = """
kept = []
def attack():
    import fcntl
    for number in range(25):
        kept.append(os.memfd_create("file", 2))
        for _ in range(10):
            os.write(kept[-1], bytes(1_000_000))
        if {sealed}:
            fcntl.fcntl(kept[-1], 1033, 15)  # F_ADD_SEALS
    return "250 MB"
"""

SHM = """
def attack():
    libc.shmat.restype = ctypes.c_void_p
    for _ in range(25):
        ident = libc.shmget(0, 10_000_000, 0o1600)
        place = libc.shmat(ident, None, 0)
        ctypes.memset(place, 1, 10_000_000)
        libc.shmdt(ctypes.c_void_p(place))
    return "250 MB"
"""

MESSAGES = """
def attack():
    message = ctypes.create_string_buffer(struct.pack("l", 1) + bytes(8192))
    for number in range(16_000):
        ident = libc.msgget(0, 0o1600)
        for _ in range(2):
            libc.msgsnd(ident, message, ctypes.c_long(8192), 0o4000)
    return "250 MB"
"""

FILES_IN_MEMORY = """
def attack():
    for folder in ("/workspace", "/tmp"):
        for number in range(100_000):
            os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY))
    return "200000 files"
"""

ATTRIBUTES = """
def attack():
    for number in range(4000):
        with open(f"/workspace/{number}", "w") as file:
            os.setxattr(file.fileno(), "user.a", bytes(60_000))
    return "240 MB"
"""

NEGATIVE = """
def attack():
    name = "x" * 200
    for number in range(700_000):
        os.access(f"/usr/lib/{name}{number}", 0)
    return "700000 names of files that are not there"
"""

PAGE_TABLES = """
kept = []
def attack():
    import mmap
    libc.mmap.restype = ctypes.c_void_p
    size = 100 << 30
    start = libc.mmap(None, ctypes.c_size_t(size), 1, 0x4022, -1, ctypes.c_long(0))
    if start == 2**64 - 1:
        raise OSError(ctypes.get_errno(), "")
    libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), 15)
    for place in range(start, start + size, 2 << 20):
        ctypes.c_char.from_address(place).value
    return "200 MB of page tables"
"""

MAPPINGS = spread(
    """
def take(place):
    libc.mmap.restype = ctypes.c_void_p
    for number in range(60_000):
        libc.mmap(None, ctypes.c_size_t(4096), 1 + number % 2 * 2, 0x22, -1, ctypes.c_long(0))
""",
    15,
)

EVENTS = spread(
    """
def take(place):
    os.mkdir(f"/workspace/{place}")
    for _ in range(10):
        fd = libc.inotify_init1(0)
        libc.inotify_add_watch(fd, f"/workspace/{place}".encode(), 0xFFF)
    for number in range(2000):
        path = f"/workspace/{place}/" + "n" * 200 + str(number)
        os.close(os.open(path, os.O_CREAT))
        os.unlink(path)
""",
    10,
)


def meminfo() -> dict[str, int]:
    """Bytes by name, of the host."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines}


def of_kernel() -> int:
    """Bytes that are neither free nor pages of programs and files. Pages that a processor has put
    aside for itself are free, too."""
    found = meminfo()
    pages = ("MemFree", "Buffers", "Cached", "SwapCached", "AnonPages")
    aside = re.findall(r"^ +count: +(\d+)", Path("/proc/zoneinfo").read_text(), re.MULTILINE)
    kept = sum(map(int, aside)) * os.sysconf("SC_PAGE_SIZE")
    return found["MemTotal"] - sum(found[name] for name in pages) - kept


def of_programs() -> int:
    """Bytes of memory of programs, and of files that are nowhere else."""
    found = meminfo()
    return found["AnonPages"] + found["Shmem"]


async def settled(gauge: Gauge) -> int:
    """What it shows once nothing is being freed: some memory comes back after its sandbox."""
    before, now = gauge() + FALLS, gauge()
    async with asyncio.timeout(10):
        while before - now >= FALLS:
            await asyncio.sleep(2 * EVERY_S)
            before, now = now, gauge()
    return now


@contextlib.contextmanager
def unbounded() -> Iterator[None]:
    """Without the bounds that are apart from the memory limit, for the control."""
    with (
        patch.object(cgroups, "SOCKET_BYTES", 1 << 30),
        patch.multiple(watcher, MOST_LOCKS=10**7, MOST_TERMINALS=10**4),
    ):
        yield


async def growth(attempt: Attempt, gauge: Gauge, *, control: bool) -> tuple[int, list[str]]:
    """MB by which the gauge rose at most, and what the payload said."""
    limits = attempt.loosened if control and attempt.loosened else attempt.limits
    without = attempt.without if control else NOTHING
    start = peak = await settled(gauge)
    with unbounded() if control and attempt.guard else contextlib.nullcontext():
        async with lease(SandboxTemplate(limits=limits), without=without) as sandbox:
            hog = await sandbox.open_stdio(python(f"{PRELUDE}{attempt.payload}{STAND}"))
            standing = asyncio.create_task(lines_of(hog, 2))
            while not standing.done():
                await asyncio.wait([standing], timeout=EVERY_S)
                peak = max(peak, gauge())
    return (peak - start) >> 20, await standing


async def measure(attempt: Attempt, _sandbox: Sandbox, scene: Scene, *, gauge: Gauge) -> str:
    """Played in sandboxes of its own, one for each try."""
    most = attempt.limits.memory_mb + SLACK_MB
    grown, said = 0, []
    async with undisturbed():
        for _ in range(TRIES):
            grown, said = await growth(attempt, gauge, control=scene.control)
            if said[:1] != ["tried"]:
                return f"unclear: it has not started: {said}"
            if (grown > most) == scene.control:
                break
    log.debug("%s: %s MB, %s", attempt.name, grown, said)
    if grown > most:
        return f"won {grown} MB of the host"
    return "refused no more than its limit"


attempt = partial(
    of_group("memory seen from outside"), refusal="no more than its limit", needs="memory",
    limits=SMALL, loosened=LARGE, alone=True, play=partial(measure, gauge=of_kernel),
)  # fmt: skip
PROGRAMS = {"play": partial(measure, gauge=of_programs)}
BUFFERS = {"mechanism": "buffers of sockets", "guard": "bound of network buffers"}
WATCHED = {"guard": "look from outside"}
FILTERED = {"without": walls("CALLS")}

ATTEMPTS = [
    attempt("datagrams that nobody reads", payload=UDP, **BUFFERS),
    attempt("streams that nobody reads", payload=TCP, **BUFFERS),
    attempt("connections that nobody accepts", payload=UNACCEPTED, **BUFFERS),
    attempt("netlink messages that nobody reads", mechanism="buffers of sockets", payload=NETLINK,
            **FILTERED),
    attempt("Unix streams that nobody reads", mechanism="buffers of sockets",
            payload=UNIX.replace("{0}", "SOCK_STREAM")),
    attempt("pipes that nobody reads", mechanism="pipes", payload=PIPES,
            kernel="it bounds the pipes of a user to 64 MB"),
    attempt("terminals that nobody reads", mechanism="pseudoterminals", payload=TERMINALS,
            **WATCHED),
    attempt("page tables", mechanism="page tables", payload=PAGE_TABLES),
    attempt("messages that nobody takes", mechanism="System V objects", payload=MESSAGES),
    attempt("attributes of files", mechanism="files and names", payload=ATTRIBUTES),
    attempt("files without a name", mechanism="memory files",
            payload=MEMORY_FILES.replace("{sealed}", "False"), **PROGRAMS),
]  # fmt: skip

LONG = [
    attempt("record locks", mechanism="locks of files", payload=LOCKS.replace("{0}", "6"),
            **WATCHED),
    attempt("record locks of open files", mechanism="locks of files",
            payload=LOCKS.replace("{0}", "37"), **FILTERED),
    attempt("filters of sockets", mechanism="compiled filters", payload=FILTERS),
    attempt("memory policies of files", mechanism="memory policies", payload=POLICIES, **FILTERED),
    attempt("Unix datagrams that nobody reads", mechanism="buffers of sockets",
            payload=UNIX.replace("{0}", "SOCK_DGRAM")),
    attempt("mappings", mechanism="mappings", payload=MAPPINGS),
    attempt("pages of a program", mechanism="memory", payload=MEMORY, **PROGRAMS),
    attempt("files without a name that are sealed", mechanism="memory files",
            payload=MEMORY_FILES.replace("{sealed}", "True"), **PROGRAMS),
    attempt("shared memory that nobody maps", mechanism="System V objects", payload=SHM,
            **PROGRAMS),
    attempt("empty files", mechanism="files and names", payload=FILES_IN_MEMORY),
    attempt("names of files that are not there", mechanism="files and names", payload=NEGATIVE),
    attempt("events of files that nobody reads", mechanism="inotify", payload=EVENTS),
]  # fmt: skip
"""Each takes up to a minute: marked `scale`."""
