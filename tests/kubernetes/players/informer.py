"""A resource as it is now: listed, then watched, and told to handlers change by change."""

import asyncio
import logging
from collections.abc import Callable, Iterator

from tests.kubernetes.players.api import Api, ApiError
from tests.kubernetes.players.objects import Obj, Resource, key_of, uid_of

log = logging.getLogger("players")

Handler = Callable[[Obj | None, Obj | None], None]
"""Gets an object as it was and as it is; None before it was there and after it is gone."""

AGAIN_S, ABSENT_S = 0.2, 1.0
"""Between two tries: after a failure, and for a resource that the server does not have yet."""

GONE = 410


class Informer:
    def __init__(self, api: Api, resource: Resource) -> None:
        self.resource = resource
        self.items: dict[str, Obj] = {}
        self.synced = asyncio.Event()
        self._api = api
        self._handlers: list[Handler] = []
        self._version = ""

    def on_change(self, handler: Handler) -> None:
        """Handlers are called in the order in which they came, before the next event is read."""
        self._handlers.append(handler)

    def get(self, key: str) -> Obj | None:
        return self.items.get(key)

    def __iter__(self) -> Iterator[Obj]:
        return iter(list(self.items.values()))

    async def run(self) -> None:
        """Follow the resource for ever. A stream that ends goes on at its last version; a version
        that the server no longer has means listing again."""
        while True:
            try:
                if not self._version:
                    await self._list()
                async for kind, obj in self._api.watch(self.resource, self._version):
                    self._take(kind, obj)
            except ApiError as error:
                if error.status in (GONE, 404):
                    self._version = ""
                if error.status != GONE:
                    log.debug("watching %s: %s", self.resource.plural, error)
                    await asyncio.sleep(ABSENT_S if error.status == 404 else AGAIN_S)

    async def _list(self) -> None:
        items, version = await self._api.list(self.resource)
        found = {key_of(obj): obj for obj in items}
        for key, old in list(self.items.items()):
            if key not in found:
                self._changed(old, None)
        for obj in found.values():
            self._put(obj)
        self._version = version
        self.synced.set()

    def _take(self, kind: str, obj: Obj) -> None:
        if kind == "ERROR":
            raise ApiError(obj.get("code", 0), obj)
        self._version = obj["metadata"]["resourceVersion"]
        if kind == "DELETED":
            old = self.items.get(key_of(obj))
            if old is not None and uid_of(old) == uid_of(obj):
                self._changed(obj, None)
        elif kind != "BOOKMARK":
            self._put(obj)

    def _put(self, obj: Obj) -> None:
        obj["metadata"].pop("managedFields", None)
        old = self.items.get(key_of(obj))
        if old is not None and uid_of(old) != uid_of(obj):
            self._changed(old, None)
            old = None
        if old is None or old["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            self._changed(old, obj)

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self.items[key_of(new)] = new
        elif old is not None:
            self.items.pop(key_of(old), None)
        for handler in self._handlers:
            handler(old, new)
