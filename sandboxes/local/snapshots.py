"""Snapshots of a workspace, and sandboxes that start from one.

A snapshot is a read-only folder of the host, in a closed folder of its owner. A fork sees it
through overlayfs: nothing is copied, what the fork changes is kept in a tmpfs of the template's
disk size, and both live in a mount namespace that dies with the sandbox. Where overlayfs cannot be
mounted (`overlay_works`, asked by trial) a fork gets a copy, with the same files and bound. Either
way the files belong to the fork's own user; in an overlay only their owners are kept anew, not what
they hold.
"""

import contextlib
import errno
import itertools
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from records.errors import ItemError, TransientError
from sandboxes.core.owners import own_folder
from sandboxes.core.template import SandboxTemplate
from sandboxes.local.bwrap import is_root, required

MAX_ENTRIES = 200_000
MAX_DEPTH = 200
CHUNK = 1 << 20
PAGE = 4096

OVERLAY = """
set -e
PATH=/usr/sbin:/usr/bin:/sbin:/bin
files=$1/files changes=$1/changes size=$2 options=$3 owner=$4; shift 4
mount -t tmpfs -o size=$size,mode=755 tmpfs "$changes"
mkdir -m 1777 "$changes/upper"
mkdir "$changes/work"
mount -t overlay \
  -o "lowerdir=$files,upperdir=$changes/upper,workdir=$changes/work$options" overlay "$files"
[ -z "$owner" ] || chown -Rh "$owner:$owner" "$files"
exec "$@"
"""
"""Shell that mounts a snapshot's changes over it in a mount namespace of its own, then becomes the
sandbox. The upper folder's mode is the workspace's."""

_numbers = itertools.count()


@dataclass(frozen=True)
class WorkspaceSnapshot:
    """Files of a workspace as they were. Lives until `remove`, or until its owner's death and the
    next `reap`. Setuid bits are dropped (no sandbox honours them); hard links become files."""

    folder: Path
    template: SandboxTemplate
    entries: int
    size_bytes: int
    left_out: tuple[str, ...]
    """Sockets, FIFOs and devices, by name: they are no files."""

    @property
    def files(self) -> Path:
        return self.folder / "files"

    def remove(self) -> None:
        """Only when no fork of it lives."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, owner: int | None = None) -> list[str]:
        """What stands before a sandbox's command to let it see the files at `files`, writable, and
        belonging to `owner`."""
        size = str(self.template.limits.disk_mb << 20)
        options = ",metacopy=on" if is_root() else ",userxattr"
        user = "" if owner is None else str(owner)
        script = [required("sh"), "-c", OVERLAY, "sh", str(self.folder), size, options, user]
        return [*private_mounts(), *script]


def private_mounts() -> list[str]:
    return [required("unshare"), "-m"] if is_root() else [required("unshare"), "-Urm"]


def take(workspace: str, template: SandboxTemplate) -> WorkspaceSnapshot:
    """Copy `workspace`, a path that leads into a sandbox, out of it; blocks.

    Nothing in the sandbox runs meanwhile (`Sandbox.snapshot`). ItemError for what cannot be
    copied: more than the disk limit, too many or too deep folders, a file that is closed to its
    own user. TransientError where the host has no room, or the sandbox is gone.
    """
    folder = own_folder() / f"snapshot-{next(_numbers)}"
    try:
        with told_apart("taking a snapshot"):
            (folder / "changes").mkdir(parents=True)
            (folder / "files").mkdir()
            copy = Copy(limit=template.limits.disk_mb << 20)
            copy.tree(workspace, str(folder / "files"))
            (folder / "files").chmod(0o1777)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return WorkspaceSnapshot(folder, template, copy.entries, copy.size, tuple(copy.left_out))


def put(snapshot: WorkspaceSnapshot, workspace: str, owner: int | None = None) -> None:
    """Copy a snapshot into an empty workspace, for `owner` where one is given; blocks."""
    with told_apart("copying a snapshot"):
        limit = snapshot.template.limits.disk_mb << 20
        Copy(limit=limit, owner=owner).tree(str(snapshot.files), workspace)


@contextlib.contextmanager
def told_apart(what: str) -> Iterator[None]:
    """ItemError for what the sandboxed program made so, TransientError for what the machine did."""
    try:
        yield
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        if error.errno in (errno.EACCES, errno.EPERM, errno.ELOOP):
            raise ItemError("sandbox_file", f"{what}: {name}{error.strerror}") from error
        raise TransientError(f"{what}: {error.strerror or error}") from error


class Copy:
    """One bounded copy of a tree. Names are only ever looked up in a folder that is open, and
    links never followed: a program that swaps them meanwhile leads it nowhere else."""

    def __init__(self, *, limit: int, owner: int | None = None) -> None:
        self.limit, self.owner = limit, owner
        self.entries = self.size = 0
        self.left_out: list[str] = []

    def tree(self, source: str, target: str) -> None:
        with folder(source) as from_fd, folder(target) as to_fd:
            self._contents(from_fd, to_fd, "")

    def _contents(self, source: int, target: int, path: str) -> None:
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
                    self._contents(from_fd, to_fd, f"{path}/{name}")
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


@cache
def overlay_works() -> bool:
    """Whether forks need no copy here, found by mounting one. Asked once."""
    with tempfile.TemporaryDirectory() as trial:
        for name in ("files", "changes"):
            Path(trial, name).mkdir()
        Path(trial, "files", "old").touch()
        snapshot = WorkspaceSnapshot(Path(trial), SandboxTemplate(), 0, 0, ())
        script = f'rm "{trial}/files/old"; mkdir "{trial}/files/new"; ls "{trial}/files"'
        done = subprocess.run(
            [*snapshot.command(), required("sh"), "-c", script],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    return done.stdout == "new\n"
