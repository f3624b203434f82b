"""Live servers kept running between uses: a start takes most of a second, a fresh workspace a
few hundredths. Only servers that declare their whole state to be in the workspace are kept.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self

from records.errors import ConfigError
from sandboxes.mcp import McpServer, open_server
from sandboxes.pool import machine_live
from sandboxes.servers import ServerConfig


class _Warm(NamedTuple):
    config: ServerConfig
    server: McpServer
    stack: AsyncExitStack
    """Closing it ends the server and its sandbox."""


class WarmServers:
    """Lends servers, at most `live` at once (by default what the machine holds); keeps as many
    waiting. `async with` it in the event loop that uses it, and leave it after the last `open`."""

    def __init__(self, live: int | None = None) -> None:
        live = machine_live() if live is None else live
        if live < 1:
            raise ConfigError(f"live servers must be at least 1, got {live}")
        self._slots = asyncio.Semaphore(live)
        self._live = live
        self._idle: list[tuple[str, _Warm]] = []

    @asynccontextmanager
    async def open(
        self, config: ServerConfig, fixture: Mapping[str, Any] | None = None
    ) -> AsyncIterator[McpServer]:
        """As `sandboxes.mcp.open_server`: a server whose fixture has just been made.

        Waits while all slots are in use. A server that failed its user is not lent again.
        """
        key = f"{config.name}/{(fixture or {}).get('fixture', 'default')}"
        async with self._slots:
            warm = await self._take(key, config) or await _started(config, fixture)
            try:
                yield warm.server
            except BaseException:
                await _end(warm)
                raise
            await self._give_back(key, warm)

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
        if not warm.config.resettable:
            await _end(warm)
            return
        self._idle.append((key, warm))
        if len(self._idle) > self._live:
            _, oldest = self._idle.pop(0)
            await _end(oldest)

    async def __aenter__(self) -> Self:
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


async def _started(config: ServerConfig, fixture: Mapping[str, Any] | None) -> _Warm:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(open_server(config, fixture))
        return _Warm(config, server, stack.pop_all())


async def _end(warm: _Warm) -> None:
    """What is dead already cannot be ended in good order, and need not be."""
    with contextlib.suppress(Exception):
        await warm.stack.aclose()
