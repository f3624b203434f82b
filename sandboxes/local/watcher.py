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
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Protocol
from weakref import ref

from records.errors import TransientError
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

    def outside(self, path: str) -> str:
        """A path inside, as the host reaches it. TransientError if the sandbox is gone."""
        ...

    def ended(self) -> bool: ...


class SandboxWatcher:
    """One for each process that owns sandboxes. Its thread starts with the first and stays."""

    def __init__(self) -> None:
        # no lock, which a process that forks could leave locked for its child
        self._watched: dict[int, ref[Watched]] = {}
        self._thread: threading.Thread | None = None
        self._seen = 0
        """Terminals of the machine at the last look."""

    def watch(self, sandbox: Watched) -> None:
        """Until it has ended, or nobody holds it any longer."""
        self._watched[id(sandbox)] = ref(sandbox)
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="sandboxes", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(LOOK_S)
            if sandboxes := {sandbox.pid: sandbox for sandbox in self._living()}:
                found = excess_of_locks(sandboxes) | self._terminals(sandboxes)
                for outer, what in found.items():
                    if kill_programs(outer):
                        log.warning("the programs of a sandbox were killed: they held %s", what)

    def _terminals(self, sandboxes: Mapping[int, Watched]) -> dict[int, str]:
        """Outermost process -> the terminals of a sandbox that has too many. Looked for only when
        the machine has more of them, and others than at the last look."""
        seen, self._seen = self._seen, number(TERMINALS)
        if self._seen <= MOST_TERMINALS or self._seen == seen:
            return {}
        counts = {outer: terminals_of(sandbox) for outer, sandbox in sandboxes.items()}
        found = {outer: f"{n} terminals" for outer, n in counts.items() if n > MOST_TERMINALS}
        if found:
            self._seen = 0  # to be seen again, should they not die
        return found

    def _living(self) -> list[Watched]:
        living = []
        for key, found in list(self._watched.items()):
            sandbox = found()
            if sandbox is not None and not sandbox.ended():
                living.append(sandbox)
            elif self._watched.get(key) is found:  # not another one in the same place by now
                del self._watched[key]
        return living


def excess_of_locks(outers: Iterable[int]) -> dict[int, str]:
    """Outermost process -> the locks held below it, where they are too many."""
    holders: Counter[int] = Counter()
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = LOCKS.read_bytes().splitlines()
        if len(lines) <= MOST_LOCKS:
            return {}
        # 1: POSIX  ADVISORY  WRITE 4711 00:2f:3 0 9; one that waits has "->" before its kind
        holders.update(int(line.replace(b"->", b"").split()[4]) for line in lines)
    known, counts = set(outers), Counter[int]()
    for pid, count in holders.items():
        if (outer := first_above(pid, known)) is not None:
            counts[outer] += count
    return {outer: f"{n} file locks" for outer, n in counts.items() if n > MOST_LOCKS}


def first_above(pid: int, wanted: Set[int]) -> int | None:
    """`pid`, or the nearest process above it, that is wanted."""
    while pid > 1:
        if pid in wanted:
            return pid
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return None
    return None


def terminals_of(sandbox: Watched) -> int:
    with contextlib.suppress(OSError, TransientError):
        names = os.listdir(sandbox.outside("/dev/pts"))  # noqa: PTH208
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
