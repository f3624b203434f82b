"""Fresh sandboxes of the backend in use: what everything leases from that needs no pool."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from sandboxes.core.backend import Backend
from sandboxes.core.sandbox import Sandbox, closing
from sandboxes.core.template import SandboxTemplate
from sandboxes.local.backend import LOCAL

LeaseSandbox = Callable[[SandboxTemplate], AbstractAsyncContextManager[Sandbox]]
"""How one gets a clean sandbox: `lease` here, for a fresh one, or a pool's."""


def backend() -> Backend:
    """The backend in use: sandboxes of this machine."""
    return LOCAL


def available() -> str | None:
    """None, or the reason why no sandbox can run."""
    return backend().unavailable()


@asynccontextmanager
async def lease(template: SandboxTemplate) -> AsyncIterator[Sandbox]:
    """A fresh sandbox, ended and removed on leaving, whatever is still running in it. ConfigError
    where none can run here, TransientError where this one did not start."""
    async with closing(await backend().create(template)) as sandbox:
        yield sandbox
