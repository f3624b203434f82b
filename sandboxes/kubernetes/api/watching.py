"""Objects of one kind as the API server has them: a list, then what changes, without an end.

Of each object only what `reduce` keeps is held here: 10,000 Pods as JSON would take half a
gigabyte. A watch that breaks goes on from the last version that it saw, bookmarks included; where
the server has forgotten that (410) everything is listed again, and what was missed is found by
comparing.
"""

import asyncio
import json
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Generic, TypeVar

import aiohttp

from records.errors import ConfigError, SynthError
from sandboxes.kubernetes.api.answers import GONE, ApiError, refusal
from sandboxes.kubernetes.api.connection import ApiObject, Connection

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

WATCH_S = 300
"""After so long the server ends a watch, and another one goes on."""

SILENT_S = WATCH_S + 30.0
AGAIN_S, LONGEST_AGAIN_S = 0.1, 5.0

UNREADABLE = (ValueError, KeyError, TypeError)
"""What reading an event raises that was cut off, is too long for a line, or is none."""


class WatchedObjects(Generic[T]):
    """The objects of one folder of the API that a query selects. `run` keeps them."""

    def __init__(
        self, connection: Connection, folder: str, query: Mapping[str, str],
        reduce: Callable[[ApiObject], tuple[str, T]],
    ) -> None:  # fmt: skip
        """`reduce` gives the key by which an object is found here, and what is kept of it."""
        self._connection, self._folder, self._query = connection, folder, dict(query)
        self._reduce = reduce
        self._version = ""
        """The last that was seen; empty where a list is due."""
        self.objects: dict[str, T] = {}
        self._names: dict[str, str] = {}
        """Name of an object -> its key."""
        self._waiting: defaultdict[str, list[asyncio.Event]] = defaultdict(list)
        self._listed = asyncio.Event()
        self._listener: Callable[[str, T | None], object] = lambda _key, _value: None
        self.counts: Counter[str] = Counter()
        """How often it was listed, resumed and forgotten."""

    def tell(self, listener: Callable[[str, T | None], object]) -> None:
        """Call `listener` with every change: None for what is gone."""
        self._listener = listener

    async def ready(self) -> None:
        await self._listed.wait()

    async def run(self) -> None:
        """Until it is cancelled. ConfigError where the server does not let us from the first."""
        failures = 0
        while True:
            try:
                if not self._version:
                    await self._list()
                async for seen in self._watch():
                    self._version, failures = seen, 0
                self.counts["resumed"] += 1
            except (aiohttp.ClientError, OSError, SynthError, *UNREADABLE) as error:
                if isinstance(error, ConfigError) and not self._listed.is_set():
                    raise
                if isinstance(error, ApiError) and error.code == GONE:
                    self.counts["forgotten"] += 1
                    self._version = ""
                else:
                    self.counts["broken"] += 1
                    if isinstance(error, UNREADABLE):
                        self._version = ""  # the same event would come again
                log.info("a watch of %s broke: %r", self._folder, error)
                await asyncio.sleep(min(LONGEST_AGAIN_S, AGAIN_S * 2**failures))
                failures += 1

    async def _list(self) -> None:
        self.counts["listed"] += 1
        found, begun = set(), ""
        async for item, version in self._connection.listed(self._folder, self._query):
            begun = version
            if item:
                found.add(item["metadata"]["name"])
                self._take(item)
        for name in self._names.keys() - found:
            self._drop(name)
        self._version = begun
        self._listed.set()

    async def _watch(self) -> AsyncGenerator[str, None]:
        query = self._query | {
            "watch": "1", "resourceVersion": self._version, "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
        }  # fmt: skip
        response = await self._connection.open("GET", self._folder, query, timeout_s=None)
        async with response:
            if response.status >= 400:
                raise refusal(response.status, await response.read(), f"watch {self._folder}")
            while True:
                async with asyncio.timeout(SILENT_S):
                    line = await response.content.readline()
                if not line:
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    code = int(status.get("code", 0))
                    raise ApiError(code, f"watch {self._folder}: {status.get('message')}")
                if event["type"] == "DELETED":
                    self._drop(event["object"]["metadata"]["name"])
                elif event["type"] in ("ADDED", "MODIFIED"):
                    self._take(event["object"])
                yield event["object"]["metadata"]["resourceVersion"]

    def _take(self, item: ApiObject) -> None:
        key, value = self._reduce(item)
        name = item["metadata"]["name"]
        if self._names.get(name, key) != key:
            self._drop(name)
        self._names[name] = key
        if self.objects.get(key) != value:
            self.objects[key] = value
            self._changed(key, value)

    def _drop(self, name: str) -> None:
        if (key := self._names.pop(name, None)) is not None:
            self.objects.pop(key, None)
            self._changed(key, None)

    def _changed(self, key: str, value: T | None) -> None:
        for event in self._waiting.get(key, ()):
            event.set()
        self._listener(key, value)

    async def until(
        self, key: str, found: Callable[[T | None], R | None], *, within_s: float
    ) -> R | None:
        """What `found` makes of the object, as soon as that is not None; None after so long."""
        event = asyncio.Event()
        self._waiting[key].append(event)
        try:
            async with asyncio.timeout(within_s):
                while (result := found(self.objects.get(key))) is None:
                    event.clear()
                    await event.wait()
                return result
        except TimeoutError:
            return None
        finally:
            self._waiting[key].remove(event)
            if not self._waiting[key]:
                del self._waiting[key]
