"""Snapshots of a workspace, and sandboxes that start from one.

A snapshot is a read-only folder of the host, in a closed folder of its owner. A fork sees it
through overlayfs: nothing is copied, what the fork changes is kept in a tmpfs of the template's
disk size, and both live in a mount namespace that dies with the sandbox. Where overlayfs cannot be
mounted (`overlay_works`, asked by trial) a fork gets a copy, with the same files and bound. A
caller with a range of users may not read their files: its copies are made where it is root. Either
way the files belong to the fork's own user; in an overlay only their owners are kept anew, not what
they hold.
"""

import contextlib
import errno
import itertools
import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from records.errors import ItemError, TransientError
from sandboxes.core import trees
from sandboxes.core.owners import own_folder
from sandboxes.core.python_env import host_python
from sandboxes.core.template import BASE_ENV, SandboxTemplate
from sandboxes.local import users
from sandboxes.local.bwrap import is_root, required

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
        trees.remove(self.folder)

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
            copy = copied(workspace, str(folder / "files"), template.limits.disk_mb << 20)
            (folder / "files").chmod(0o1777)
    except BaseException:
        trees.remove(folder)
        raise
    return WorkspaceSnapshot(folder, template, copy.entries, copy.size, tuple(copy.left_out))


def put(snapshot: WorkspaceSnapshot, workspace: str, owner: int | None = None) -> None:
    """Copy a snapshot into an empty workspace, for `owner` where one is given; blocks."""
    with told_apart("copying a snapshot"):
        copied(str(snapshot.files), workspace, snapshot.template.limits.disk_mb << 20, owner)


COPY = [
    *(host_python(), "-I", "-S", "-c"),
    "import sys; sys.path.insert(0, sys.argv[1]); from sandboxes.core.trees import main; main()",
    str(Path(__file__).resolve().parents[2]),
]
"""argv of `sandboxes.core.trees.main`."""


class Copied(NamedTuple):
    entries: int
    size: int
    left_out: list[str]


def copied(source: str, target: str, limit: int, owner: int | None = None) -> Copied:
    """Copy what is in one folder into another, by somebody who may read and give away the files of
    every sandbox here. The folders are opened by this process, which may look into them."""
    with trees.folder(source) as from_fd, trees.folder(target) as to_fd:
        if not (entry := users.entry() if users.apart() is None else []):
            copy = trees.Copy(limit=limit, owner=owner)
            copy.contents(from_fd, to_fd)
            return Copied(copy.entries, copy.size, copy.left_out)
        request = {"source": from_fd, "target": to_fd, "limit": limit, "owner": owner}
        done = subprocess.run(
            [*entry, *COPY], input=json.dumps(request).encode(), capture_output=True,
            pass_fds=(from_fd, to_fd), env=BASE_ENV, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        why = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise TransientError(f"files of a sandbox were not copied: {''.join(why)}")
    answer = json.loads(done.stdout)
    if "refused" in answer:
        raise ItemError(*answer["refused"])
    if "failed" in answer:
        raise OSError(*answer["failed"])
    return Copied(**answer)


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


@cache
def overlay_works() -> bool:
    """Whether forks need no copy here, found by mounting one. Asked once. A caller with a range of
    users has to copy: only for root the kernel gives files to others without what they hold."""
    if not is_root() and users.apart() is None:
        return False
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
