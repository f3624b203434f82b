"""What a backend of sandboxes is: it makes them, finds them again and ends them.

A sandbox is one interface wherever it runs (`sandboxes.core.sandbox`), as the same agent answers
in each (`sandboxes.core.agent`). What a backend adds is a `SandboxBody` (`sandboxes.core.body`):
the stream to that agent, and what only whoever runs the machine can do or see. What each backend
must pass stands in `tests/sandboxes/conformance`.
"""

from collections.abc import Set
from enum import StrEnum
from typing import NamedTuple, Protocol

from sandboxes.core.body import Snapshot
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import SandboxTemplate


class Capability(StrEnum):
    """What not every backend can do. Asked for without it, a backend raises ConfigError."""

    BINDS = "binds"
    """Show files and folders of this machine (`SandboxTemplate.binds`)."""
    NETWORK = "network"
    """Share a network (`SandboxTemplate.network`)."""
    EGRESS = "egress"
    """Let a sandbox connect to the egress proxy of its cluster (`SandboxTemplate.egress`)."""
    SNAPSHOTS = "snapshots"
    """`Sandbox.snapshot`, and `Backend.create` from one."""
    RECYCLING = "recycling"
    """`Sandbox.recycle`: prove that a used sandbox is as it was before."""
    CONTAINED = "contained"
    """Hold programs that nobody trusts, with the template's limits."""


class SandboxInfo(NamedTuple):
    """A sandbox that is alive, as a list of them tells it."""

    name: str
    owner_alive: bool
    """Whether the process that made it still runs."""
    adoptable: bool
    """Whether it answers without its owner."""


class Backend(Protocol):
    """Makes sandboxes of one kind."""

    @property
    def name(self) -> str: ...
    @property
    def capabilities(self) -> Set[Capability]: ...

    def unavailable(self) -> str | None:
        """Why no sandbox can be made here; None where they can."""
        ...

    async def create(self, template: SandboxTemplate, snapshot: Snapshot | None = None) -> Sandbox:
        """A sandbox that answers; the caller closes it. ConfigError where none can be made like
        this, TransientError where this one did not start."""
        ...

    async def adopt(self, name: str) -> Sandbox:
        """One that another process made, or that this one lost sight of. Its commands go on, and
        their answers come here from now on. TransientError where it does not answer."""
        ...

    async def list(self) -> "list[SandboxInfo]":
        """Those that this user has here, whoever made them."""
        ...

    async def destroy(self, name: str) -> None:
        """End one of them, with everything of it. Nothing happens where it is gone already."""
        ...
