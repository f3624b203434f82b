"""Looks, from outside and a few times a second, at what no limit of the kernel bounds.

File locks are charged to nobody, and pseudo-terminals are counted for the whole machine. A sandbox
that holds more than any honest program does has all that its programs run killed; its agent and its
other state live on, so that a command simply ends with SIGKILL. What a program can hold until it is
looked at is bounded by its processors: some 60 MB of locks a second, on one.

Only what a caller watches is ever killed, and nothing is done while all numbers are small: one look
reads two files of /proc. A sandbox that lingers without an owner is looked at again once adopted.
"""

import contextlib
import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from sandboxes.local.clean import descendants

log = logging.getLogger(__name__)

LOOK_S = 0.25

MOST_LOCKS = 10_000
"""Of all programs of a sandbox; each takes 200 bytes of the kernel's memory."""

MOST_TERMINALS = 64
"""Of one sandbox; a machine has 4096, and each may hold 128 kB that nobody is charged for."""

LOCKS, TERMINALS = Path("/proc/locks"), Path("/proc/sys/kernel/pty/nr")


class Watched(Protocol):
    @property
    def pid(self) -> int:
        """The outermost process, on the host. Its only child is the agent."""
        ...

    def ended(self) -> bool: ...


class SandboxWatcher:
    """One for each process that owns sandboxes; its thread lives as long as the first of them."""

    def __init__(self) -> None:
        self._watched: WeakSet[Watched] = WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def watch(self, sandbox: Watched) -> None:
        """Until it has ended, or nobody holds it any longer."""
        with self._lock:
            self._watched.add(sandbox)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="sandboxes", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_S)
            with self._lock:
                living = [sandbox for sandbox in self._watched if not sandbox.ended()]
                if not living:
                    self._thread = None
                    return
            for sandbox, what in excessive({one.pid: one for one in living}):
                if kill_programs(sandbox.pid):
                    log.warning("the programs of a sandbox were killed: they held %s", what)


def excessive(sandboxes: dict[int, Watched]) -> Iterable[tuple[Watched, str]]:
    """Sandboxes, given by their outermost process, that hold too much, and of what."""
    for outer, count in locks_of(sandboxes).items():
        if count > MOST_LOCKS:
            yield sandboxes[outer], f"{count} file locks"
    if number(TERMINALS) > MOST_TERMINALS:
        for outer, sandbox in sandboxes.items():
            if (count := terminals_of(outer)) > MOST_TERMINALS:
                yield sandbox, f"{count} terminals"


def locks_of(outers: Iterable[int]) -> Counter[int]:
    """Outermost process -> locks held below it; empty where all locks of the machine are few."""
    found: Counter[int] = Counter()
    holders: Counter[int] = Counter()
    with contextlib.suppress(OSError):
        lines = LOCKS.read_bytes().splitlines()
        if len(lines) > MOST_LOCKS:
            # 1: POSIX  ADVISORY  WRITE 4711 00:2f:3 0 9; one that waits has "->" before its kind
            holders.update(int(line.replace(b"->", b"").split()[4]) for line in lines)
    known = set(outers)
    for pid, count in holders.items():
        if (outer := first_above(pid, known.__contains__)) is not None:
            found[outer] += count
    return found


def first_above(pid: int, wanted: Callable[[int], bool]) -> int | None:
    """`pid`, or the nearest process above it, that is wanted."""
    while pid > 1:
        if wanted(pid):
            return pid
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return None
    return None


def terminals_of(outer: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        agent = descendants(outer)[1]
        names = os.listdir(f"/proc/{agent}/root/dev/pts")  # noqa: PTH208
        return sum(map(str.isdigit, names))
    return 0


def number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def kill_programs(outer: int) -> int:
    """Kill all below the agent, which is the only child of `outer`; how many there were."""
    count = 0
    with contextlib.suppress(OSError, ValueError):
        for pid in descendants(outer)[2:]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                count += 1
    return count


WATCHER = SandboxWatcher()
