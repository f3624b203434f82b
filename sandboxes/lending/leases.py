"""Fresh sandboxes of the backend in use: what everything leases from that needs no pool.

Whatever leases a sandbox has it from where the code around it says (`leasing_from`): a run that is
told to, from a cluster; everything else, from this machine.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from sandboxes.core.backend import Backend
from sandboxes.core.sandbox import Sandbox, closing
from sandboxes.core.template import SandboxTemplate
from sandboxes.egress.forwarding import ClusterProxy
from sandboxes.lending.capacity import PoolSettings
from sandboxes.local.backend import LOCAL

LeaseSandbox = Callable[[SandboxTemplate], AbstractAsyncContextManager[Sandbox]]
"""How one gets a clean sandbox: `lease` here, for a fresh one, or a pool's."""


class SandboxPlace(NamedTuple):
    """Where sandboxes come from, and what holds for all that are leased there."""

    backend: Backend
    proxy: ClusterProxy | None = None
    """The egress proxy beside the sandboxes of a cluster; None: there is none. On this machine each
    server has one of its own, in this process."""
    paces: tuple[tuple[str, float], ...] = ()
    """Settings of pools that are other ones there (`PoolSettings`)."""
    counted: Callable[[], Mapping[str, int]] = dict
    """What happened there so far beside the leases of pools, by name."""


HERE = SandboxPlace(LOCAL)

_place: ContextVar[SandboxPlace] = ContextVar("sandbox_place", default=HERE)


@contextmanager
def leasing_from(place: SandboxPlace) -> Iterator[None]:
    """Whatever is leased inside, also by tasks and threads that begin there, comes from there."""
    token = _place.set(place)
    try:
        yield
    finally:
        _place.reset(token)


def place_in_use() -> SandboxPlace:
    return _place.get()


def backend() -> Backend:
    """The backend in use: sandboxes of this machine, unless the code around says otherwise."""
    return _place.get().backend


def pool_settings(live: int) -> PoolSettings:
    """Of a pool for the backend in use, with so many sandboxes alive."""
    return PoolSettings.model_validate({"live": live, "idle": live, **dict(_place.get().paces)})


def available() -> str | None:
    """None, or the reason why no sandbox can run."""
    return backend().unavailable()


@asynccontextmanager
async def lease(template: SandboxTemplate) -> AsyncIterator[Sandbox]:
    """A fresh sandbox, ended and removed on leaving, whatever is still running in it. ConfigError
    where none can run here, TransientError where this one did not start."""
    async with closing(await backend().create(template)) as sandbox:
        yield sandbox
