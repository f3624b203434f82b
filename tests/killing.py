"""Die in the middle: run a function in a child process that kills itself at its n-th write.

    for folder in killed_everywhere(work, tmp_path):   # one folder per kill point
        run(work, folder)                              # the same work again must complete
        assert contents(folder) == expected

A point is a call that changes files below the watched folder: the os functions in `_CALLS`,
`open` for writing, and the statements of sqlite3 that are no SELECT. A point comes before its
call; os.write has a second one in the middle, when half of the bytes are written. C++ and buffered
writes of an open file are not seen one by one, so keep `os` calls in the code that must survive.
The work runs in the child's main process; what it starts as other processes is not watched, and
not killed.
"""

import builtins
import io
import multiprocessing
import os
import random
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

_FIRST, _SECOND, _BOTH = slice(0, 1), slice(1, 2), slice(0, 2)
_CALLS = {
    # name: the arguments that name a file or are its descriptor
    "open": _FIRST,
    "write": _FIRST,
    "fsync": _FIRST,
    "fdatasync": _FIRST,
    "truncate": _FIRST,
    "ftruncate": _FIRST,
    "link": _BOTH,
    "symlink": _SECOND,
    "replace": _BOTH,
    "rename": _BOTH,
    "unlink": _FIRST,
    "remove": _FIRST,
    "mkdir": _FIRST,
    "rmdir": _FIRST,
    "utime": _FIRST,
}
PROCESSES = multiprocessing.get_context("forkserver")
"""Children are forks of a server without threads, started in some milliseconds."""
# Imported once, by the server. pyarrow imports pandas with its first array, where it is there.
PROCESSES.set_forkserver_preload(
    [
        "__main__",
        "tests.killing",
        "records.store.dataset",
        "pyarrow.compute",
        "pandas",
        "synth.importing.importing",
        "tests.synth.rollout_work",
        "tests.flows.pending_work",
        "tests.flows.rephrase_work",
        "tests.flows.rounds_work",
    ]
)


class Ended(NamedTuple):
    killed: bool
    points: int
    """Points passed; the one that killed is the last."""


def run(
    work: Callable[..., object],
    folder: Path,
    *args: Any,
    kill_at: int | None = None,
    timeout_s: float = 120,
) -> Ended:
    """Call `work(folder, *args)` in a child that dies by SIGKILL at point `kill_at` (from 1).

    `work` and `args` are pickled: module-level functions, best of a module that imports little.
    An exception in the child fails the caller; its traceback is on the child's stderr.
    """
    points = PROCESSES.Value("q", 0)
    child = PROCESSES.Process(target=_watched, args=(points, folder, kill_at, work, folder, *args))
    child.start()
    child.join(timeout_s)
    if child.exitcode is None:
        child.kill()
        child.join()
        raise AssertionError(f"{work.__qualname__} still ran after {timeout_s} s")
    killed = kill_at is not None and child.exitcode == -signal.SIGKILL
    assert killed or child.exitcode == 0, f"{work.__qualname__} ended with {child.exitcode}"
    return Ended(killed, points.value)


def killed_everywhere(
    work: Callable[..., object], parent: Path, *args: Any, step: int = 1
) -> Iterator[Path]:
    """Folders below `parent` in which `work` was killed at its first, `1 + step`-th, ... point.

    Ends when the work runs through. Each folder is new and missing when the work begins.
    """
    kill_at = 1
    while True:
        folder = parent / f"killed-at-{kill_at:04d}"
        if not run(work, folder, *args, kill_at=kill_at).killed:
            assert kill_at > 1, f"{work.__qualname__} writes nothing below {folder}"
            return
        yield folder
        kill_at += step


def spread(points: int, kills: int, *, seed: int) -> list[int]:
    """Points at which to kill: one drawn in each of `kills` equal parts of a run of `points`, but
    for its last twentieth, since no two runs have quite as many."""
    rng, part = random.Random(seed), points * 19 // 20 // kills
    return [rng.randint(1, part) + part * i for i in range(kills)]


class _Watch:
    """Counts points and dies at one of them. Lives in the child."""

    def __init__(self, points: Any, folder: Path, kill_at: int | None) -> None:
        self.points = points
        self.folder = folder.resolve()
        self.kill_at = kill_at

    def point(self) -> None:
        with self.points.get_lock():
            self.points.value += 1
            last = self.points.value == self.kill_at
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    def concerns(self, file: Any) -> bool:
        """Is this path or descriptor the watched folder, or below it?"""
        if isinstance(file, int):
            try:
                file = Path(f"/proc/self/fd/{file}").readlink()
            except OSError:
                return False
        path = Path(os.path.abspath(os.fsdecode(file)))  # noqa: PTH100 - must follow no link
        return path == self.folder or self.folder in path.parents

    def install(self) -> None:
        for name, positions in _CALLS.items():
            setattr(os, name, self._before(name, getattr(os, name), positions))
        builtins.open = io.open = self._opening(io.open)
        connect, watch = sqlite3.connect, self

        class Connection(sqlite3.Connection):
            def execute(self, *args: Any) -> sqlite3.Cursor:
                if not args[0].lstrip().upper().startswith("SELECT"):
                    watch.point()
                return super().execute(*args)

        def connect_watched(database: Any, *args: Any, **options: Any) -> sqlite3.Connection:
            if watch.concerns(database):
                options["factory"] = Connection
            return connect(database, *args, **options)

        sqlite3.connect = connect_watched

    def _before(self, name: str, call: Callable[..., Any], positions: slice) -> Callable[..., Any]:
        def watched(*args: Any, **options: Any) -> Any:
            if name == "open" and not args[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return call(*args, **options)
            if any(map(self.concerns, args[positions])):
                self.point()
                if name == "write" and len(args[1]) > 1:
                    half = call(args[0], args[1][: len(args[1]) // 2])
                    self.point()
                    return half + call(args[0], args[1][half:])
            return call(*args, **options)

        return watched

    def _opening(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            if set(mode) & set("wax+") and self.concerns(file):
                self.point()
            return call(file, mode, *args, **options)

        return watched


def _watched(
    points: Any, folder: Path, kill_at: int | None, work: Callable[..., object], *args: Any
) -> None:
    _Watch(points, folder, kill_at).install()
    work(*args)
