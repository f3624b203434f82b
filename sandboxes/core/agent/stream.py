"""The agent's end of its stream to the host, which may break and be followed by another.

What was sent stays here until the host says that it has seen it; a new stream begins with what the
last one may have lost. Writing never waits: a host that does not read holds up nothing inside.
"""

# contextlib costs more time to import than all of this takes to run
from __future__ import annotations

import os

from sandboxes.core.agent.frames import (
    HEADER,
    UNSEEN_BYTES,
    UNSEEN_FRAMES,
    VERSION,
    dumped,
    frame,
    lengths,
    loaded,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

READ = 1 << 20
LONGEST_GREETING = 4096


class Stream:
    """One connection: bytes in, frames out, and what waits to be written."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.incoming = bytearray()
        self.outgoing: list[memoryview] = []
        self.waiting = False
        """Whether it took less than all at the last try."""

    def frames(self) -> list[tuple[dict[str, Any], bytes]] | None:
        """What has arrived whole; None at the stream's end."""
        try:
            data = os.read(self.fd, READ)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data:
            return None
        self.incoming += data
        found = []
        while len(self.incoming) >= HEADER:
            head, body = lengths(self.incoming)
            end = HEADER + head + body
            if len(self.incoming) < end:
                break
            message = bytes(self.incoming[HEADER:end])
            del self.incoming[:end]
            found.append((loaded(message[:head]), message[head:]))
        return found

    def write(self) -> bool:
        """Write what the stream takes; whether something is left. OSError where it is broken."""
        while self.outgoing:
            try:
                count = os.write(self.fd, self.outgoing[0])
            except BlockingIOError:
                return True
            if count < len(self.outgoing[0]):
                self.outgoing[0] = self.outgoing[0][count:]
            else:
                del self.outgoing[0]
        return False


class Ledger:
    """What went each way by number, and what the host has not confirmed yet."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        """Whoever knows it may greet. None until the first greeting, which says what it is: of a
        sandbox that was started before anybody had asked for one."""
        self.sent = self.seen = self.told = 0
        """Our last number, the host's last that we got, and the last that we told it so."""
        self.unread = 0
        """Bytes of bodies that we got since then."""
        self.kept: dict[int, bytes] = {}
        self.exits: dict[int, int] = {}
        """Of those that tell a command's end: number -> the command's id."""
        self.holder: str | None = None
        """Who holds the sandbox: only who adopts it takes its place."""

    def greeting(self, hello: dict[str, Any], jobs: list[int]) -> tuple[bytes, list[bytes] | None]:
        """The answer to a greeting, and what is repeated; None where the greeting is refused."""
        reason, holder, token = "", hello.get("holder"), hello.get("token")
        known = isinstance(token, str) and len(token) > 0 and token == (self.token or token)
        if hello.get("op") != "hello" or hello.get("version") != VERSION:
            reason = f"this agent speaks version {VERSION}"
        elif not known:
            reason = "this sandbox belongs to somebody else"
        elif self.holder not in (None, holder) and not hello.get("adopt"):
            reason = "this sandbox was adopted by somebody else"
        if reason:
            return frame(dumped({"event": "refused", "reason": reason})), None
        self.holder, self.token = holder, token
        self.forget(hello.get("seen", 0))
        self.told, self.unread = self.seen, 0
        answer = {"event": "hello", "version": VERSION, "seen": self.seen}
        jobs = [*jobs, *self.exits.values()]
        return frame(dumped({**answer, "jobs": jobs})), list(self.kept.values())

    def number(self, header: dict[str, Any], body: bytes) -> bytes:
        """The next frame to the host."""
        self.sent += 1
        self.told, self.unread = self.seen, 0
        whole = frame(dumped({"n": self.sent, "seen": self.seen, **header}), body)
        self.kept[self.sent] = whole
        if header["event"] == "exit":
            self.exits[self.sent] = header["id"]
        return whole

    def accept(self, header: dict[str, Any], body: bytes) -> bool:
        """Whether a frame of the host is new; its confirmation counts either way."""
        self.forget(header.get("seen", 0))
        number = header.get("n")
        if number is None or number <= self.seen:
            return False
        self.seen = number
        self.unread += len(body)
        return True

    def forget(self, seen: int) -> None:
        """Drop what the host has; numbers are kept in their order."""
        for number in list(self.kept):
            if number > seen:
                break
            del self.kept[number]
            self.exits.pop(number, None)

    def owes(self) -> bytes | None:
        """A confirmation, once enough has come in since the last one."""
        if self.seen - self.told < UNSEEN_FRAMES and self.unread < UNSEEN_BYTES:
            return None
        self.told, self.unread = self.seen, 0
        return frame(dumped({"seen": self.seen, "event": "seen"}))
