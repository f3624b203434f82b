"""What the agent gives up before it serves, so that neither it nor what it starts has it.

Started by a caller with several host users, the agent is root, of the host or of the caller's own
namespace. It enters the one that was made for this sandbox, in which only two users exist: its own
and the program's. From then on it has no right outside, whatever its own user can do inside.
"""

# ctypes is a sixth of the agent's start-up; its part in C is enough
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 4, 22, 24
PR_SET_NO_NEW_PRIVS, FILTER = 38, 2
LAST_CAPABILITY = 63
CLONE_NEWUSER = 0x10000000
MS_NOSUID, MS_NOEXEC, MS_REMOUNT = 2, 8, 32
TERMINALS = b"newinstance,ptmxmode=0666,mode=620,max=64"
"""As bubblewrap mounts them, but for their number."""
CAPABILITY_VERSION = (0x20080522).to_bytes(4, "little") + bytes(4)
"""struct __user_cap_header_struct: the third version, of this process."""
BYTES_START = bytes.__basicsize__ - 1
"""From a bytes object's address to its first byte."""


class Rights:
    """The C library's calls that the agent needs, and who it is."""

    def __init__(self) -> None:
        import _ctypes

        own: Any = None  # this very program and what it is linked with
        library = _ctypes.dlopen(own, 0)
        self._call, self._find = _ctypes.call_function, lambda name: _ctypes.dlsym(library, name)
        self._prctl = self._find("prctl")
        self.program = os.getuid(), os.getgid()
        self.own = os.geteuid(), os.getegid()
        self._hidden = False

    def prctl(self, option: int, first: Any = 0, second: Any = 0) -> int:
        return self._call(self._prctl, (option, first, second, 0, 0))

    def bound_terminals(self) -> None:
        """Of the machine's terminals, take no more than these; only a caller's root may say so."""
        flags = MS_REMOUNT | MS_NOSUID | MS_NOEXEC
        arguments = (b"devpts", b"/dev/pts", None, flags, TERMINALS)
        if self._call(self._find("mount"), arguments) != 0:
            sys.exit("the number of terminals cannot be bounded")

    def enter_users(self, fd: int, program: int, own: int) -> None:
        """Leave the caller's users for the sandbox's: `program` and `own` are ids inside."""
        if self._call(self._find("setns"), (fd, CLONE_NEWUSER)) != 0:
            sys.exit("the agent cannot enter the sandbox's users")
        os.close(fd)
        for capability in range(LAST_CAPABILITY + 1):
            self.prctl(PR_CAPBSET_DROP, capability)  # fails for numbers that no kernel has yet
        os.setgroups([])
        os.setresgid(program, own, own)
        os.setresuid(program, own, own)
        # no user here is root, so that this change alone takes nothing away
        if self._call(self._find("capset"), (CAPABILITY_VERSION, bytes(24))) != 0:
            sys.exit("the agent cannot give up its capabilities")
        self.program, self.own = (program, program), (own, own)

    def hide(self) -> None:
        """Not dumpable: others of the same user cannot trace this process or open its files."""
        self._hidden = True
        if self.prctl(PR_SET_DUMPABLE, 0) != 0:
            sys.exit("the agent's memory cannot be hidden")

    def filter_calls(self, program: bytes) -> None:
        """Load the filter of system calls; there is no way back."""
        if self.prctl(PR_SET_NO_NEW_PRIVS, 1) != 0:
            sys.exit("the agent cannot give up rights for good")
        count, address = len(program) // 8, id(program) + BYTES_START
        # struct sock_fprog: a count of 16 bits, padding, a pointer
        found = count.to_bytes(8, "little") + address.to_bytes(8, "little")
        if self.prctl(PR_SET_SECCOMP, FILTER, found) != 0:
            sys.exit("the filter of system calls cannot be loaded")

    def __enter__(self) -> None:
        """Act as the program's user, for as long as the block lasts."""
        if self.own != self.program:
            os.setegid(self.program[1])
            os.seteuid(self.program[0])
            self._settle()

    def __exit__(self, *_: object) -> None:
        if self.own != self.program:
            os.seteuid(self.own[0])
            os.setegid(self.own[1])
            self._settle()

    def _settle(self) -> None:
        """A change of user makes the memory what `fs.suid_dumpable` says."""
        if self._hidden:
            self.hide()
