"""Fresh sandboxes of the backend in use: what everything leases from that needs no pool."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import SandboxTemplate
from sandboxes.local import backend as local

LeaseSandbox = Callable[[SandboxTemplate], AbstractAsyncContextManager[Sandbox]]
"""How one gets a clean sandbox: `lease` here, for a fresh one, or a pool's."""


def available() -> str | None:
    """None, or the reason why this machine cannot run sandboxes."""
    return local.available()


@asynccontextmanager
async def lease(template: SandboxTemplate) -> AsyncIterator[Sandbox]:
    """A fresh sandbox, ended and removed on leaving, whatever is still running in it. ConfigError
    where none can run here, TransientError where this one did not start."""
    async with local.lease(template) as sandbox:
        yield sandbox
