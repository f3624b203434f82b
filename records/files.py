"""Writing files so that a kill, a full disk or a second writer never leaves half of one.

Everything appears whole or not at all: the bytes go to a temporary file beside the target, reach
the disk, and then get their name in one step. A killed writer leaves at most a temporary file,
known by its prefix, which the next writer of the dataset sweeps.
"""

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from records.errors import SynthError

TEMPORARY = ".tmp-"
"""Prefix of files being written. Nothing reads them, and a glob such as `*.parquet` skips them."""


def write_atomic(path: Path, data: bytes) -> None:
    """Replace `path` by `data`, making its folder; a crash leaves the old bytes or the new.

    Raises SynthError when the system refuses, such as on a full disk; the old file stands then.
    """
    make_folder(path.parent)
    with prepared(path, data) as temporary:
        temporary.replace(path)
        sync_folder(path.parent)


def create_exclusive(path: Path, data: bytes) -> bool:
    """Create `path` holding `data`; False, and nothing changed, when the name is taken.

    A hard link rather than O_EXCL on the name itself: the name must not exist before the bytes.
    """
    with prepared(path, data) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        sync_folder(path.parent)
    return True


@contextmanager
def prepared(path: Path, data: bytes) -> Iterator[Path]:
    """A temporary file beside `path` with `data` on the disk; gone at the end unless renamed."""
    temporary = path.with_name(f"{TEMPORARY}{secrets.token_hex(6)}-{path.name}")
    try:
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            try:
                view = memoryview(data)
                while view:  # a nearly full disk takes a part and refuses the rest
                    view = view[os.write(handle, view) :]
                os.fsync(handle)
            finally:
                os.close(handle)
            yield temporary
        except OSError as error:
            raise write_error(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make the folder and its parents where they are missing, to survive a power cut."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    try:
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
    except OSError as error:
        raise write_error(folder, error) from error


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_error(path: Path, error: OSError) -> SynthError:
    """What to tell the user when the operating system refuses a write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SynthError(
            f"disk full while writing {path}; nothing half-written was kept: "
            "free some space and run the same command again"
        )
    return SynthError(f"cannot write {path}: {error.strerror or error}")


@contextmanager
def locked(path: Path, *, exclusive: bool) -> Iterator[None]:
    """The advisory lock on an existing file, shared or exclusive; ends with the process at last."""
    try:
        handle = os.open(path, os.O_RDWR)  # NFS takes no exclusive lock on a file open for reading
    except OSError as error:
        raise write_error(path, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)
