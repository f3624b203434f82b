"""Files of strangers, as records that a sandbox writes: the one form in which they come out.

A repository, an archive, installed packages are opened in a sandbox by `inside/read_out.py`, never
here. What it writes may be forged by what it reads: paths, numbers and sizes are checked anew, and
time and memory are linear in what the limits allow.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from records.errors import ConfigError, ItemError
from sandboxes.code.projects import MAX_DEPTH, MAX_NAME, MAX_PATH, check_path
from sandboxes.core.programs import last_words, program
from sandboxes.core.sandbox import Sandbox

PROGRAM = Path(__file__).parents[1] / "inside" / "read_out.py"

PIECE = 1 << 20
"""Bytes of a file in one record."""

MAX_ENTRIES, MAX_UNPACKED = 50_000, 300_000_000
"""What is looked through for the files: entries of any kind, and bytes that an archive unpacks
to."""

READER_MEMORY = 256 << 20
"""Bytes that the program in the sandbox may take; less than a sandbox of ours has."""

REFUSED = 3
"""Exit code of `inside/read_out.py` for what it refuses."""

LENGTHS = 8
"""Bytes before a record: the lengths of its path and of its piece."""


class FilePiece(NamedTuple):
    path: str
    """Relative, plain and UTF-8; pieces of one file follow each other."""
    data: bytes


class FileBounds(NamedTuple):
    """Of what may come out of one reading."""

    files: int
    file_bytes: int
    total_bytes: int


class RecordReader:
    """Records as they come, checked. ConfigError for what no program of ours writes."""

    def __init__(self, bounds: FileBounds) -> None:
        self._bounds, self._buffer = bounds, bytearray()
        self._files, self._folders = set[str](), set[str]()
        self._last, self._size, self._total = "", 0, 0
        self.complete = False
        """Whether the record that ends all others has come."""

    def feed(self, data: bytes) -> Iterator[FilePiece]:
        """The pieces that are whole now. Holds back no more than one record."""
        self._buffer += data
        while len(self._buffer) >= LENGTHS:
            path = int.from_bytes(self._buffer[:4], "big")
            size = int.from_bytes(self._buffer[4:LENGTHS], "big")
            if self.complete or path > MAX_PATH or size > PIECE:
                raise ConfigError("what was read is no list of files")
            end = LENGTHS + path + size
            if len(self._buffer) < end:
                return
            record = bytes(self._buffer[LENGTHS:end])
            del self._buffer[:end]
            if path:
                yield self._checked(record[:path], record[path:])
            else:
                self.complete = True

    def _checked(self, raw: bytes, data: bytes) -> FilePiece:
        try:
            path = raw.decode()
            check_path(path)
        except ValueError as error:
            raise ConfigError(f"a file has a path that is refused: {str(error)[:200]}") from None
        if any(ord(c) < 32 or ord(c) == 127 for c in path):
            raise ConfigError(f"a file has a path with control characters: {path[:60]!r}")
        if path != self._last:
            self._begin(path)
        self._size, self._total = self._size + len(data), self._total + len(data)
        _, most, total = self._bounds
        if self._size > most or self._total > total:
            raise ConfigError(f"it has more than {total} bytes, or a file of more than {most}")
        return FilePiece(path, data)

    def _begin(self, path: str) -> None:
        parts = path.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts))]
        if path in self._files or path in self._folders or not self._files.isdisjoint(above):
            raise ConfigError(f"{path!r} stands twice, or is a file and a folder")
        self._files.add(path)
        self._folders.update(above)
        self._last, self._size = path, 0
        if len(self._files) > self._bounds.files:
            raise ConfigError(f"it has more than {self._bounds.files} files")


async def read_out(
    sandbox: Sandbox,
    request: Mapping[str, Any],
    *,
    bounds: FileBounds,
    what: str,
    take: Callable[[FilePiece], None],
) -> None:
    """Let the sandbox read what is there (`kind` and `place` of `inside/read_out.py`), and hand
    each piece to `take` as it comes.

    ConfigError, naming `what`, where it is refused, has no end, or is too much for the sandbox;
    what `take` was given is then no whole. TransientError where the sandbox is lost by itself.
    """
    limits = {
        "max_files": bounds.files, "max_file": bounds.file_bytes, "max_total": bounds.total_bytes,
        "max_entries": MAX_ENTRIES, "max_unpacked": MAX_UNPACKED, "max_path": MAX_PATH,
        "max_name": MAX_NAME, "max_depth": MAX_DEPTH, "piece": PIECE, "memory": READER_MEMORY,
    }  # fmt: skip
    argv = [*program(PROGRAM), json.dumps(limits | dict(request))]
    reader, limit = RecordReader(bounds), sandbox.template.limits.timeout_s
    try:
        async with asyncio.timeout(limit):
            process = await sandbox.open_stdio(argv)
            while data := await process.read():
                for piece in reader.feed(data):
                    take(piece)
            ended = await process.wait()
    except TimeoutError:
        raise ConfigError(f"cannot read {what} within {limit:g} s") from None
    except ItemError as error:
        raise ConfigError(f"cannot read {what}: reading it ended the sandbox: {error}") from error
    except ConfigError as error:
        raise ConfigError(f"cannot read {what}: {error}") from error
    if ended.exit_code == REFUSED:
        raise ConfigError(f"cannot read {what}: {last_words(ended.stderr)}")
    if ended.exit_code or not reader.complete:
        said = last_words(ended.stderr) or "nothing"
        raise ConfigError(
            f"cannot read {what}: its reading ended with exit code {ended.exit_code}, saying {said}"
        )
