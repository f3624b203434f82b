"""Bounded copies of trees that somebody else may be changing, and their removal.

`main` makes one copy for a host whose own user may not read the files. It runs by the bare
interpreter, so that this module imports nothing beside the standard library and `records.errors`.
"""

import contextlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from records.errors import ItemError

MAX_ENTRIES = 200_000
MAX_DEPTH = 200
CHUNK = 1 << 20
PAGE = 4096


class Copy:
    """One bounded copy of a tree. Names are only ever looked up in a folder that is open, and
    links never followed: a program that swaps them meanwhile leads it nowhere else."""

    def __init__(self, *, limit: int, owner: int | None = None) -> None:
        self.limit, self.owner = limit, owner
        self.entries = self.size = 0
        self.left_out: list[str] = []

    def contents(self, source: int, target: int, path: str = "") -> None:
        """Of one open folder into another. ItemError for what is beyond the bounds."""
        if path.count("/") > MAX_DEPTH:
            raise ItemError("sandbox_file", f"folders deeper than {MAX_DEPTH}")
        for name in sorted(os.listdir(source)):  # pathlib has no descriptors
            self.entries += 1
            if self.entries > MAX_ENTRIES:
                raise ItemError("sandbox_file", f"more than {MAX_ENTRIES} files")
            found = os.lstat(name, dir_fd=source)
            if stat.S_ISLNK(found.st_mode):
                times = found.st_atime_ns, found.st_mtime_ns
                text = os.readlink(name, dir_fd=source)
                os.symlink(text, name, dir_fd=target)
                os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)
            elif stat.S_ISDIR(found.st_mode):
                os.mkdir(name, 0o700, dir_fd=target)
                with folder(name, source) as from_fd, folder(name, target) as to_fd:
                    self.contents(from_fd, to_fd, f"{path}/{name}")
                    same_attributes(to_fd, found)
            elif stat.S_ISREG(found.st_mode):
                self._file(name, source, target, path)
            else:
                self.left_out.append(f"{path}/{name}".lstrip("/"))
                continue
            if self.owner is not None:
                os.chown(name, self.owner, self.owner, dir_fd=target, follow_symlinks=False)

    def _file(self, name: str, source: int, target: int, path: str) -> None:
        flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO by now would block
        with os.fdopen(os.open(name, os.O_RDONLY | flags, dir_fd=source), "rb", 0) as reader:
            found = os.fstat(reader.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise ItemError("sandbox_file", f"{path}/{name} changed while it was copied")
            create = os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags
            with os.fdopen(os.open(name, create, 0o600, dir_fd=target), "wb", 0) as writer:
                while data := reader.read(CHUNK):
                    self._take(len(data))
                    writer.write(data)
                same_attributes(writer.fileno(), found)

    def _take(self, size: int) -> None:
        self.size += -(-size // PAGE) * PAGE  # as a tmpfs counts
        if self.size > self.limit:
            raise ItemError("sandbox_file", f"more than {self.limit} bytes, the limit of a disk")


@contextlib.contextmanager
def folder(name: str, parent: int | None = None) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, dir_fd=parent)
    try:
        yield fd
    finally:
        os.close(fd)


def same_attributes(fd: int, found: os.stat_result) -> None:
    os.fchmod(fd, stat.S_IMODE(found.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
    os.utime(fd, ns=(found.st_atime_ns, found.st_mtime_ns))


def remove(tree: Path) -> None:
    """Remove a tree of this user's, also where folders in it are closed to their own user."""
    shutil.rmtree(tree, ignore_errors=True)
    if not tree.is_dir():
        return
    for above, names, _ in os.walk(tree):  # a folder is opened before it is entered
        for path in (Path(above, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(tree, ignore_errors=True)


def main() -> None:
    """Copy between the two open folders that the request on stdin names: `source` and `target`,
    descriptors, `limit` in bytes, `owner` or null. Prints what was copied, or the error."""
    request = json.load(sys.stdin)
    copy = Copy(limit=request["limit"], owner=request["owner"])
    try:
        copy.contents(request["source"], request["target"])
        answer = {"entries": copy.entries, "size": copy.size, "left_out": copy.left_out}
    except ItemError as error:
        answer = {"refused": [error.reason, error.detail]}
    except OSError as error:
        answer = {"failed": [error.errno, error.strerror, error.filename]}
    json.dump(answer, sys.stdout)
