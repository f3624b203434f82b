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

from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.local import cgroups, watcher
from sandboxes.local.backend import lease
from sandboxes.local.protections import NOTHING
from tests.sandboxes.attacks.attempt import PRELUDE, Attempt, Scene, of_group, python, walls
from tests.sandboxes.attacks.kernel import hogs
from tests.sandboxes.attacks.kernel.quotas import STAND, lines_of, undisturbed

log = logging.getLogger(__name__)

SMALL = Limits(timeout_s=20, memory_mb=64, processes=48, cpus=8, disk_mb=16, open_files=256)
LARGE = SMALL.model_copy(update={"memory_mb": 512})

SLACK_MB = 32
"""What the host's books may grow beyond the limit: the kernel's caches for speed, and what other
programs of the machine take meanwhile."""

TRIES = 3
"""Other programs take and give back memory too, so that a result other than the expected one is
measured again. What a payload holds, it holds each time."""

HOLDS_S = 20.0
"""How long a payload may take what it can."""

EVERY_S = 0.05
FALLS = 4 << 20
"""Bytes less than a moment ago: something is being freed."""

Gauge = Callable[[], int]
"""Shows bytes."""


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
            standing = asyncio.create_task(lines_of(hog, 2, within_s=HOLDS_S))
            while not standing.done():
                await asyncio.wait([standing], timeout=EVERY_S)
                peak = max(peak, gauge())
    return (peak - start) >> 20, await standing


async def measure(attempt: Attempt, scene: Scene, *, gauge: Gauge) -> str:
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
    limits=SMALL, loosened=LARGE, alone=True, own_play=partial(measure, gauge=of_kernel),
)  # fmt: skip
PROGRAMS = {"own_play": partial(measure, gauge=of_programs)}
BUFFERS = {"mechanism": "buffers of sockets", "guard": "bound of network buffers"}
WATCHED = {"guard": "look from outside"}
FILTERED = {"without": walls("CALLS")}

ATTEMPTS = [
    attempt("datagrams that nobody reads", payload=hogs.UDP, **BUFFERS),
    attempt("streams that nobody reads", payload=hogs.TCP, **BUFFERS),
    attempt("connections that nobody accepts", payload=hogs.UNACCEPTED, **BUFFERS),
    attempt("netlink messages that nobody reads", mechanism="buffers of sockets",
            payload=hogs.NETLINK, **FILTERED),
    attempt("Unix streams that nobody reads", mechanism="buffers of sockets",
            payload=hogs.UNIX.replace("{0}", "SOCK_STREAM")),
    attempt("pipes that nobody reads", mechanism="pipes", payload=hogs.PIPES,
            kernel="it bounds the pipes of a user to 64 MB"),
    attempt("terminals that nobody reads", mechanism="pseudoterminals", payload=hogs.TERMINALS,
            **(WATCHED | {"without": walls("TERMINALS")})),
    attempt("page tables", mechanism="page tables", payload=hogs.PAGE_TABLES),
    attempt("messages that nobody takes", mechanism="System V objects", payload=hogs.MESSAGES),
    attempt("attributes of files", mechanism="files and names", payload=hogs.ATTRIBUTES),
    attempt("files without a name", mechanism="memory files",
            payload=hogs.MEMORY_FILES.replace("{sealed}", "False"), **PROGRAMS),
]  # fmt: skip

LONG = [
    attempt("record locks", mechanism="locks of files", payload=hogs.LOCKS.replace("{0}", "6"),
            **WATCHED),
    attempt("record locks of open files", mechanism="locks of files",
            payload=hogs.LOCKS.replace("{0}", "37"), **FILTERED),
    attempt("filters of sockets", mechanism="compiled filters", payload=hogs.FILTERS),
    attempt("memory policies of files", mechanism="memory policies", payload=hogs.POLICIES,
            **FILTERED),
    attempt("Unix datagrams that nobody reads", mechanism="buffers of sockets",
            payload=hogs.UNIX.replace("{0}", "SOCK_DGRAM")),
    attempt("mappings", mechanism="mappings", payload=hogs.MAPPINGS),
    attempt("pages of a program", mechanism="memory", payload=hogs.MEMORY, **PROGRAMS),
    attempt("files without a name that are sealed", mechanism="memory files",
            payload=hogs.MEMORY_FILES.replace("{sealed}", "True"), **PROGRAMS),
    attempt("shared memory that nobody maps", mechanism="System V objects", payload=hogs.SHM,
            **PROGRAMS),
    attempt("empty files", mechanism="files and names", payload=hogs.FILES_IN_MEMORY),
    attempt("events of files that nobody reads", mechanism="inotify", payload=hogs.EVENTS),
]  # fmt: skip
"""Each takes up to a minute: marked `scale`."""
