"""The users that /etc/subuid gives to a caller who is not root.

The caller has them in a namespace of users of its own alone, made once in a process and kept by a
descriptor: there the caller's id is 0, and from 1 on come those of its largest range. newuidmap and
newgidmap, which belong to root, write that down. In it the caller does what root does outside, so a
sandbox is made there as root makes one (`sandboxes.local.users`). From outside the caller may end
and see all that is in the namespace, since it owns it; but files of these users only somebody
inside may read, change or remove.

What the kernel counts for namespaces, and not for users, is counted for the caller as well: watched
files. Of these a user of the range gets a part (`SHARE`).
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from records.errors import TransientError
from sandboxes.core.python_env import host_python
from sandboxes.core.template import BASE_ENV
from sandboxes.local.bwrap import required

SUBUID, SUBGID = Path("/etc/subuid"), Path("/etc/subgid")
TOOLS = {"newuidmap": "uidmap", "newgidmap": "uidmap", "nsenter": "util-linux"}
"""Program -> Debian's package of it."""

PAIRS = 64
"""Sandboxes of one block of ids, which a process takes at a time."""

SHARE = 8
"""A user of the range may have one part in so many of the files that its caller may watch."""

WATCHED = ("max_inotify_instances", "max_inotify_watches")

BOUND = """
set -e
for name do
  all=$(cat /proc/sys/fs/inotify/max_user_${name#max_inotify_})
  echo $((all / $0)) > /proc/sys/user/$name
done
"""
"""Shell that sets, in a namespace, how many files each user there may watch."""


class IdRange(NamedTuple):
    first: int
    size: int


class OwnNamespace(NamedTuple):
    descriptor: int
    users: IdRange
    """Ids of the host; those inside are 1 and the following."""
    size: int
    """Ids inside beside 0 that are both a user and a group."""


def missing() -> str | None:
    """What the caller lacks to have users of a range, None where nothing is missing that can be
    told without trying."""
    for tool, package in TOOLS.items():
        if shutil.which(tool, path=BASE_ENV["PATH"]) is None:
            return f"{tool} is not installed: apt install {package}"
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()} has no entry in /etc/passwd, which newuidmap asks for"
    for file, option in ((SUBUID, "--add-subuids"), (SUBGID, "--add-subgids")):
        found = range_of(file, name)
        if found.size == 0:
            return f"{file} has no range for {name}: usermod {option} FIRST-LAST {name}"
        if found.size < 2 * PAIRS:
            return f"{file} gives {name} {found.size} ids: it takes at least {2 * PAIRS}"
    if (path := closed()) is not None:
        return f"{path} is closed to other users, and programs inside would be one"
    return None


def range_of(file: Path, name: str) -> IdRange:
    """The largest range of this user or of its id; none is a range of 0."""
    ranges = [IdRange(0, 0)]
    with contextlib.suppress(OSError):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            owner, *numbers = line.split(":")
            if owner in (name, str(os.getuid())) and len(numbers) == 2:
                with contextlib.suppress(ValueError):
                    ranges.append(IdRange(*map(int, numbers)))
    return max(ranges, key=lambda found: found.size)


def closed() -> Path | None:
    """A part of the interpreter that sandboxes are shown, and that other users may not read."""
    shown = (sys.base_prefix, host_python(), os.__file__, sysconfig.get_path("purelib"))
    for path in (Path(name).resolve() for name in shown):
        wanted = 0o004 if path.suffix == ".py" else 0o005
        if path.exists() and path.stat().st_mode & wanted != wanted:
            return path
    return None


@cache
def namespace() -> OwnNamespace:
    """That of this process. TransientError, in the words of what refused, where none can be made;
    a process that forks shares its own."""
    name = pwd.getpwuid(os.getuid()).pw_name
    users, groups = range_of(SUBUID, name), range_of(SUBGID, name)
    with held() as (pid, descriptor):
        for tool, own, ids in (
            ("newuidmap", os.getuid(), users),
            ("newgidmap", os.getgid(), groups),
        ):
            run([tool, str(pid), "0", str(own), "1", "1", str(ids.first), str(ids.size)])
        found = OwnNamespace(descriptor, users, min(users.size, groups.size))
        run([*entry(found), "sh", "-c", BOUND, str(SHARE), *WATCHED])
    return found


def entry(found: OwnNamespace) -> list[str]:
    """What stands before a command that runs in the namespace, as its user 0."""
    # opened by its place in this process, so that nothing inside inherits it
    place = f"--user=/proc/{os.getpid()}/fd/{found.descriptor}"
    return [required("nsenter"), place, "--preserve-credentials", "--"]


@contextlib.contextmanager
def held(before: tuple[str, ...] = ()) -> Iterator[tuple[int, int]]:
    """A process in a namespace of users that has no users yet, and a descriptor of it, which the
    caller keeps unless the block raises. `before` stands before the command that makes it.
    TransientError where that fails."""
    with subprocess.Popen(
        [*before, "unshare", "--user", "cat"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=BASE_ENV,
    ) as holder:  # fmt: skip
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stderr is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # what ended it is in its own words
                os.write(holder.stdin.fileno(), b"made\n")
            if os.read(holder.stdout.fileno(), 5) != b"made\n":
                why = holder.stderr.read(300).decode(errors="replace").strip()
                raise TransientError(f"no user namespace can be made for a sandbox: {why}")
            fd = os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise TransientError(f"no user namespace for a sandbox: {error}") from error
        try:
            yield holder.pid, fd
        except BaseException:
            os.close(fd)
            raise


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, env=BASE_ENV, check=False)
    if done.returncode != 0:
        why = done.stderr.decode(errors="replace").strip()[:300]
        raise TransientError(f"no users of a range for a sandbox: {why or command[0]}")
