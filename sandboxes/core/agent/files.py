"""Files of a sandbox, read, written and wiped from inside, as its user."""

# pathlib, json and contextlib cost more time to import than all of this takes to run
# ruff: noqa: PTH101, PTH102, PTH106, PTH108, PTH112, PTH123, PTH208
from __future__ import annotations

import errno
import os
import stat

LONGEST_PATH = 4096


def read_file(path: str, limit: int) -> bytes:
    """Up to `limit` bytes of a regular file. Opened without waiting: a FIFO would never answer."""
    fd = regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    with open(fd, "rb") as file:
        return file.read(limit)


def write_file(path: str, data: bytes, mode: int) -> None:
    if len(path) > LONGEST_PATH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    for at, sign in enumerate(path):  # os.makedirs would go one call deeper for each
        if sign == "/" and at and not os.path.isdir(path[:at]):
            os.mkdir(path[:at])
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
    fd = regular(os.open(path, flags, mode))
    with open(fd, "wb") as file:
        file.write(data)


def regular(fd: int) -> int:
    """The descriptor of a regular file; any other is closed, as `open` leaves a folder's open."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file")
    return fd


def wipe(folders: list[str]) -> None:
    """Remove everything below `folders`, which themselves stay; OSError for what resists.

    Only for when nothing else runs. A tree too deep for a path resists, too: the caller then ends
    the sandbox.
    """
    for folder in folders:
        stack = [folder]
        while stack:
            path = stack[-1]
            if left := emptied(path):
                stack += left
                continue
            stack.pop()
            if path != folder:
                os.rmdir(path)


def emptied(folder: str) -> list[str]:
    """Remove what is no folder in `folder`; the folders in it."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        os.chmod(folder, 0o700)
    left = []
    for name in os.listdir(folder):
        path = f"{folder}/{name}"
        if stat.S_ISDIR(os.lstat(path).st_mode):
            left.append(path)
        else:
            os.unlink(path)
    return left


def ipc_objects() -> int:
    """System V shared memory, semaphores and queues: they outlive the processes that made them."""
    count = 0
    for kind in ("shm", "sem", "msg"):
        with open(f"/proc/sysvipc/{kind}", "rb") as file:
            count += len(file.readlines()) - 1
    return count
