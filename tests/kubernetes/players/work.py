"""A queue of keys to look at: each by one at a time, and again after a while where that failed."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from tests.kubernetes.players.api import ApiError

log = logging.getLogger("players")

FIRST_S, LONGEST_S = 0.02, 5.0
"""Waits after a failure: doubled each time, up to the longest."""

Look = Callable[[str], Awaitable[float | None]]
"""Looks at what a key names and makes it as it should be; seconds until it must look again."""


class WorkQueue:
    def __init__(self, look: Look, workers: int = 16) -> None:
        self._look, self._workers = look, workers
        self._ready: deque[str] = deque()
        self._waiting: set[str] = set()
        self._busy: set[str] = set()
        self._again: set[str] = set()
        self._later: dict[str, asyncio.TimerHandle] = {}
        self._failures: dict[str, int] = {}
        self._wake = asyncio.Semaphore(0)

    def add(self, key: str, after_s: float = 0) -> None:
        if after_s > 0:
            loop = asyncio.get_running_loop()
            old = self._later.get(key)
            if old is not None and old.when() <= loop.time() + after_s:
                return
            if old is not None:
                old.cancel()
            self._later[key] = loop.call_later(after_s, self._due, key)
        elif key in self._busy:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._ready.append(key)
            self._wake.release()

    def _due(self, key: str) -> None:
        self._later.pop(key, None)
        self.add(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            await self._wake.acquire()
            key = self._ready.popleft()
            self._waiting.discard(key)
            self._busy.add(key)
            try:
                after = await self._look(key)
                self._failures.pop(key, None)
            except ApiError as error:
                after = self._failed(key)
                log.debug("%s: %s", key, error)
            except Exception:
                after = self._failed(key)
                log.exception("looking at %s", key)
            finally:
                self._busy.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.add(key)
            elif after is not None:
                self.add(key, max(after, 0.001))

    def _failed(self, key: str) -> float:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        return min(FIRST_S * 2**count, LONGEST_S)
