"""One sandbox as its backend holds it: the stream to its agent, and what the machine alone sees."""

import asyncio
from typing import Protocol

from records.errors import ItemError, SynthError, TransientError
from sandboxes.core.agent.main import OUT_OF_MEMORY, OUTRUN, UNDYING
from sandboxes.core.template import SandboxTemplate


class ProgramEndedError(ItemError):
    """The program in a sandbox has ended it: by its memory, or by what the agent could not stop.

    That is the program's own doing, as much as a wrong answer is: it is told of it, and scored.
    """

    def __init__(self, detail: str) -> None:
        super().__init__("sandbox_ended", detail)


class InfrastructureError(TransientError):
    """A sandbox is not there, or no more, for what is around it: a node, a network, a quota.

    It says nothing about the program in it, which is tried again in a fresh one.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        """A short snake_case word that accounts group by."""


class BackpressureError(InfrastructureError):
    """There is no room for another sandbox just now: a quota, no node with room, a throttled
    server."""


PROGRAMS_DOING = {
    OUTRUN: "it started processes faster than they could be killed",
    UNDYING: "it had processes that could not be killed",
    OUT_OF_MEMORY: "it took all memory of its limit",
}
"""Exit codes of the agent -> what the program did."""


def ended_with(code: int | None) -> SynthError:
    """Why a sandbox is gone whose agent left this exit code; None where nobody knows it."""
    if code in PROGRAMS_DOING:
        return ProgramEndedError(f"the program ended its sandbox: {PROGRAMS_DOING[code]}")
    return TransientError("the sandbox ended")


class Snapshot(Protocol):
    """Files of a workspace as they were, kept by the backend that took them."""

    @property
    def template(self) -> SandboxTemplate: ...
    @property
    def entries(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def left_out(self) -> tuple[str, ...]:
        """Sockets, FIFOs and devices, by name: they are no files."""
        ...

    def remove(self) -> None:
        """Only when no fork of it lives."""
        ...


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class SandboxBody(Protocol):
    """One sandbox as its backend holds it."""

    @property
    def name(self) -> str:
        """By which `Backend.adopt` and `Backend.destroy` find it, from any process of this user."""
        ...

    async def connect(self) -> Streams:
        """A new stream to the agent. OSError where the sandbox is gone."""
        ...

    async def cause(self) -> SynthError:
        """Why a sandbox that nobody ended is gone: `ProgramEndedError` where the program in it did
        that, else TransientError."""
        ...

    async def silence(self, why: str) -> SynthError:
        """As `cause`, for an agent that is there and has not answered in time."""
        ...

    def memory_kills(self) -> int:
        """How often the kernel killed something in it for memory; 0 where nobody can tell."""
        ...

    def end(self) -> None:
        """End it now, without waiting."""
        ...

    async def close(self) -> None:
        """End it, wait until everything of it is gone, and remove what it leaves."""
        ...

    async def snapshot(self, template: SandboxTemplate) -> Snapshot:
        """Its workspace's files. The program is stopped meanwhile. `Capability.SNAPSHOTS`."""
        ...

    async def remember(self) -> None:
        """Note how it is before its first use. `Capability.RECYCLING`."""
        ...

    async def changes(self) -> list[str]:
        """What is not as it was then; empty is the proof. `Capability.RECYCLING`."""
        ...
