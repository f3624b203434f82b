"""What a run's episodes work in, kept running between uses.

A start of a server takes most of a second, a fresh workspace a few hundredths. Only servers that
declare their whole state to be in the workspace are kept. One of these that does not write serves
several episodes at once: none can tell the others. Once such a server is lost, each episode gets
one of its own, so that nobody's call is held against another. Sandboxes of code come from a pool,
which lends them again once they are proved clean.
"""

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self

from records.errors import ConfigError
from sandboxes.lending import leases
from sandboxes.lending.capacity import machine_live
from sandboxes.lending.pool import Pool
from sandboxes.mcp.joined import LiveServer, open_joined
from sandboxes.mcp.joining import JoinedServerConfig, programs_of
from sandboxes.mcp.servers import ServerConfig
from sandboxes.mcp.session import McpServer, open_server

SHARERS = 8
"""Episodes that one server that only reads serves at once; more would wait for each other."""


class _Warm(NamedTuple):
    config: ServerConfig
    server: McpServer
    stack: AsyncExitStack
    """Closing it ends the server and its sandbox."""


@dataclass(eq=False)
class _Shared:
    warm: _Warm
    users: int = 0
    failed: bool = False


class WarmServers:
    """Lends servers, at most `live` at once (by default what the machine holds); keeps as many
    waiting. `async with` it in the event loop that uses it, and leave it after the last `open`."""

    def __init__(self, live: int | None = None) -> None:
        live = machine_live() if live is None else live
        if live < 1:
            raise ConfigError(f"live servers must be at least 1, got {live}")
        self._slots = asyncio.Semaphore(live)
        self._several = asyncio.Lock()
        self._live = live
        self._idle: list[tuple[str, _Warm]] = []
        self._shared: defaultdict[str, list[_Shared]] = defaultdict(list)
        self._entering: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._unshared: set[str] = set()
        """Where a server was lost while it may have had several users."""
        self.starts = 0
        """Servers started."""
        self.pool = Pool(leases.pool_settings(live))
        """Sandboxes for code. Nobody holds two at once, so that none waits for itself."""
        self._place = leases.place_in_use()
        self._counted: Counter[str] = Counter()
        self._there: Counter[str] = Counter()

    @asynccontextmanager
    async def open(
        self, config: ServerConfig, fixture: Mapping[str, Any] | None = None
    ) -> AsyncIterator[LiveServer]:
        """As `sandboxes.mcp.joined.open_live`: a server whose fixture has just been made, or one
        that only reads and so has it as it was made. Only servers that are never seeded are lent
        again, so a seed is that of one start.

        Waits while all slots are in use, of which each part of a joined server takes one. A server
        that is lost or failed its user is not lent again.
        """
        key = _key(config, fixture)
        if isinstance(config, JoinedServerConfig):
            async with (
                self._held(len(programs_of(config))),
                open_joined(config, fixture, self._lent) as server,
            ):
                yield server
        elif config.resettable and not config.may_write and key not in self._unshared:
            async with self._shared_by(key, config, fixture) as server:
                yield server
        else:
            async with self._slots, self._lent(config, fixture) as server:
                yield server

    @asynccontextmanager
    async def _held(self, slots: int) -> AsyncIterator[None]:
        """So many slots, or all where there are fewer. One after the other takes several, so that
        no two wait for each other's."""
        async with AsyncExitStack() as stack:
            async with self._several:
                for _ in range(min(slots, self._live)):
                    await stack.enter_async_context(self._slots)
            yield

    @asynccontextmanager
    async def _lent(
        self, config: ServerConfig, fixture: Mapping[str, Any] | None
    ) -> AsyncIterator[McpServer]:
        """A server for one user, who holds a slot for it."""
        key = _key(config, fixture)
        warm = await self._take(key, config) or await self._started(config, fixture)
        try:
            yield warm.server
        except BaseException:
            await _end(warm)
            raise
        await self._give_back(key, warm)

    @asynccontextmanager
    async def _shared_by(
        self, key: str, config: ServerConfig, fixture: Mapping[str, Any] | None
    ) -> AsyncIterator[McpServer]:
        """A server among several users. It holds one slot from its first to its last."""
        async with self._entering[key]:  # one after the other: the second finds the first's server
            shared = self._with_room(key, config)
            if shared is None:
                await self._slots.acquire()
                try:
                    warm = await self._take(key, config) or await self._started(config, fixture)
                except BaseException:
                    self._slots.release()
                    raise
                self._shared[key].append(shared := _Shared(warm))
            shared.users += 1
        try:
            yield shared.warm.server
        except BaseException:
            shared.failed = True
            raise
        finally:
            shared.users -= 1
            if not shared.warm.server.runs:
                self._unshared.add(key)
            if not shared.users:
                self._shared[key].remove(shared)
                self._slots.release()
                if shared.failed:
                    await _end(shared.warm)
                else:
                    await self._give_back(key, shared.warm)

    def _with_room(self, key: str, config: ServerConfig) -> _Shared | None:
        for shared in self._shared[key]:
            lives = shared.warm.server.runs and not shared.failed
            if lives and shared.warm.config == config and shared.users < SHARERS:
                return shared
        return None

    async def _take(self, key: str, config: ServerConfig) -> _Warm | None:
        """An idle server with its workspace made anew; one that cannot do that is ended."""
        for place, (idle_key, warm) in enumerate(self._idle):
            if idle_key == key and warm.config == config:
                del self._idle[place]
                try:
                    await warm.server.reset()
                    await warm.server.list_tools()  # a server that hung or died shows here
                except Exception:
                    await _end(warm)
                    return None
                except BaseException:
                    await _end(warm)
                    raise
                return warm
        return None

    async def _give_back(self, key: str, warm: _Warm) -> None:
        if not (warm.config.resettable and warm.server.runs):
            await _end(warm)
            return
        self._idle.append((key, warm))
        if len(self._idle) > self._live:
            _, oldest = self._idle.pop(0)
            await _end(oldest)

    async def _started(self, config: ServerConfig, fixture: Mapping[str, Any] | None) -> _Warm:
        self.starts += 1
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(open_server(config, fixture))
            return _Warm(config, server, stack.pop_all())

    def newly_counted(self) -> dict[str, int]:
        """By how much the pool's accounts have changed since this was asked before. They add up at
        any time, and so do any of these changes together."""
        now = self.pool.accounts.counts()
        changed, self._counted = _changed(self._counted, now), now
        return changed

    def newly_there(self) -> dict[str, int]:
        """By how much the figures have grown that the place of the sandboxes has of its own. They
        begin anew where it lost sight of all sandboxes."""
        now = Counter(self._place.counted())
        changed, self._there = _changed(self._there, now), now
        return {name: by if by > 0 else now[name] for name, by in changed.items()}

    async def __aenter__(self) -> Self:
        await self.pool.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._idle:
            _, warm = self._idle.pop()
            await _end(warm)
        await self.pool.__aexit__(kind, error, trace)


def _changed(before: Counter[str], now: Counter[str]) -> dict[str, int]:
    names = now.keys() | before.keys()
    return {name: by for name in names if (by := now[name] - before[name])}


def _key(config: ServerConfig, fixture: Mapping[str, Any] | None) -> str:
    begins = fixture or {"start": config.start}
    return f"{config.name}/{begins.get('fixture', 'default')}/{begins.get('start', '')}"


async def _end(warm: _Warm) -> None:
    """What is dead already cannot be ended in good order, and need not be."""
    with contextlib.suppress(Exception):
        await warm.stack.aclose()
