"""Lines that wait for the next writer: what somebody says who does not hold the dataset.

A file of JSON lines under `waiting/` of the dataset. Whoever has something to say appends a line,
whoever holds the lease takes them all and commits what they say. Both lock the file, and it is cut
to nothing rather than removed, so no line goes to a file that has just lost its name.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from records.errors import SynthError
from records.files import make_folder, write_error

MOST_BYTES = 50_000_000
"""Of one file: some hundred thousand lines."""


def waiting_path(root: Path, name: str) -> Path:
    return root / "waiting" / f"{name}.jsonl"


def say_later(path: Path, words: Mapping[str, Any]) -> None:
    """Append one line for good: it is on the disk when this returns, or nothing of it is."""
    data = json.dumps(words, ensure_ascii=True).encode() + b"\n"
    make_folder(path.parent)
    with _opened(path, os.O_RDWR | os.O_CREAT) as handle:
        size = os.fstat(handle).st_size
        if size + len(data) > MOST_BYTES:
            raise SynthError(
                f"{path} has {size:,} bytes and takes no more; the next run, or "
                "`synth label import DATASET`, empties it"
            )
        try:
            os.lseek(handle, 0, os.SEEK_END)
            view = memoryview(data)
            while view:  # a nearly full disk takes a part and refuses the rest
                view = view[os.write(handle, view) :]
            os.fsync(handle)
        except OSError as error:
            os.ftruncate(handle, size)
            raise write_error(path, error) from error


def lines_waiting(path: Path) -> list[str]:
    """What has been said and not been taken yet, oldest first."""
    if not path.exists():
        return []
    with _opened(path, os.O_RDONLY, exclusive=False) as handle:
        return _lines(handle)


@contextmanager
def taken(path: Path) -> Iterator[list[str]]:
    """Every line; they are gone from the file once the block has ended well. Nobody appends
    meanwhile."""
    if not path.exists():
        yield []
        return
    with _opened(path, os.O_RDWR) as handle:
        yield _lines(handle)
        os.ftruncate(handle, 0)
        os.fsync(handle)


def _lines(handle: int) -> list[str]:
    os.lseek(handle, 0, os.SEEK_SET)
    with os.fdopen(os.dup(handle), "rb") as file:
        text = file.read().decode("utf-8", errors="replace")
    return [line for line in text.split("\n") if line]


@contextmanager
def _opened(path: Path, flags: int, *, exclusive: bool = True) -> Iterator[int]:
    try:
        # a dataset from elsewhere may hold a link where lines are to be written
        handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise write_error(path, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield handle
    finally:
        os.close(handle)
