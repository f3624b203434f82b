"""The users of a sandbox: ids of the host that nobody else has, in a namespace of their own.

Root gives each sandbox two ids of a range that no system assigns: one for the program, one for the
agent beside it, so that neither file, signal nor quota is shared with another sandbox or with the
agent. Inside they are always `PROGRAM_ID` and `OWN_ID`. The namespace in which they are is made by
the program's id, to whom the kernel charges what is counted for it. Ids are taken in blocks, each
locked by its process for as long as that lives, and used again when a sandbox has ended. Containers
that share a kernel but no temporary folder may take the same ones, and then share their quotas.

A caller with a range in /etc/subuid does the same with ids of that range, in a namespace where it
is what root is outside (`sandboxes.local.subordinates`): ids here are those that are seen there.
Where all are taken no sandbox starts. Any other caller has one id, which the program and the agent
share.
"""

import contextlib
import fcntl
import heapq
import os
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from records.errors import TransientError
from sandboxes.core.owners import root_folder
from sandboxes.core.template import PROGRAM_ID
from sandboxes.local import subordinates

OWN_ID = PROGRAM_ID + 1
"""Of the agent, inside."""

FIRST, LAST = 1_879_048_192, 2_147_483_000
"""Ids that neither systems nor their container managers give away."""

SMALL_FIRST, SMALL_LAST = 30_000, 60_000
"""Where a container has no more than 65,536 ids: some between those of people and of services."""

PAIRS = 1024
"""In one block of root's."""

MOST_BLOCKS = 4096


class Users(NamedTuple):
    """Ids as root sees them, be it of the host or of the caller's own namespace."""

    program: int
    """Of all programs inside."""
    own: int
    """Of the agent."""
    namespace: int
    """A descriptor of the namespace, kept open for the next sandbox of the same ids."""


class UserIds:
    """The ids of this process: `take` before a start, `give_back` once the sandbox is gone."""

    def __init__(self) -> None:
        self._free: list[Users] = []
        self._fresh: list[int] = []
        self._blocks = 0
        self._locked: list[int] = []
        """Descriptors that hold the locks."""
        self._lock = threading.Lock()

    def take(self) -> Users:
        """TransientError where no ids are left, or their namespace cannot be made."""
        with self._lock:
            if self._free:
                return heapq.heappop(self._free)
            if not self._fresh:
                self._fresh = self._next_block()
            first = self._fresh.pop()
        try:
            return Users(first, first + 1, new_namespace(first, first + 1))
        except BaseException:
            with self._lock:
                self._fresh.append(first)
            raise

    def give_back(self, users: Users) -> None:
        with self._lock:
            heapq.heappush(self._free, users)

    def _next_block(self) -> list[int]:
        start, blocks, pairs = block_range()
        folder = root_folder() / "users"
        folder.mkdir(mode=0o700, exist_ok=True)
        while self._blocks < blocks:
            number, self._blocks = self._blocks, self._blocks + 1
            fd = os.open(folder / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(fd)
                continue
            self._locked.append(fd)
            first = start + 2 * pairs * number
            found = range(host_id(first), host_id(first) + 2 * pairs)
            if any(user in found for user in users_of_processes()):
                continue  # a sandbox that lingers has outlived the owner of this block
            return list(range(first, first + 2 * pairs, 2))[::-1]
        raise TransientError(f"all {blocks} blocks of sandbox users are taken by other processes")


def users_of_processes() -> Iterator[int]:
    """Of everything that runs here."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            yield int((folder / "status").read_text().partition("\nUid:")[2].split()[0])


class IdBlocks(NamedTuple):
    first: int
    number: int
    pairs: int


@cache
def block_range() -> IdBlocks:
    """What of this process's own namespace may be used. In a container, ids from the upper part of
    its range."""
    if os.geteuid() != 0:
        pairs, size = subordinates.PAIRS, subordinates.namespace().size
        return IdBlocks(1, size // (2 * pairs), pairs)
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        inside, _, count = map(int, line.split())
        if inside <= FIRST and inside + count > LAST:
            return IdBlocks(FIRST, MOST_BLOCKS, PAIRS)
        if inside == 0 and count > 1 << 16:
            return IdBlocks(1 << 16, min(MOST_BLOCKS, (count - (1 << 16)) // (2 * PAIRS)), PAIRS)
        if inside == 0 and count > SMALL_LAST:
            return IdBlocks(SMALL_FIRST, (SMALL_LAST - SMALL_FIRST) // (2 * PAIRS), PAIRS)
    return IdBlocks(0, 0, PAIRS)


def host_id(user: int) -> int:
    """The host's id of one that root sees as `user`."""
    return user if os.geteuid() == 0 else subordinates.namespace().users.first + user - 1


def new_namespace(program: int, own: int) -> int:
    """A descriptor of a user namespace that belongs to `program` and has only these two."""
    drop = ["setpriv", f"--reuid={program}", f"--regid={program}", "--clear-groups"]
    with subordinates.held((*entry(), *drop)) as (pid, descriptor):
        ids = f"{PROGRAM_ID} {program} 1\n{OWN_ID} {own} 1\n"
        subordinates.run([*entry(), "sh", "-c", GIVE_USERS, ids, str(pid)])
    return descriptor


GIVE_USERS = 'printf %s "$0" > "/proc/$1/uid_map" && printf %s "$0" > "/proc/$1/gid_map"'
"""Shell that says once for all who is in a namespace; only somebody just outside of it may."""


def entry() -> list[str]:
    """What stands before a command that is to have root's rights over all users of sandboxes:
    nothing for root."""
    return [] if os.geteuid() == 0 else subordinates.entry(subordinates.namespace())


USERS = UserIds()
os.register_at_fork(after_in_child=USERS.__init__)  # two processes would give the same ids away


@cache
def apart() -> str | None:
    """None where each sandbox can have users of its own here, found by making them; else why not.
    Asked once."""
    try:
        if os.geteuid() == 0:
            USERS.give_back(USERS.take())
        elif (reason := subordinates.missing()) is not None:
            return reason
        else:  # without a block: that others have all of them now is no reason to share a user
            os.close(new_namespace(1, 2))
    except (OSError, TransientError) as error:
        return str(error)
    return None
