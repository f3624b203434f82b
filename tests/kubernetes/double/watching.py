"""Watchers: who wants to know of which objects, and what waits to be sent to each.

An event costs a look-up of those that may want it: watchers of one name, of a namespace, of all.
A thousand clients that each watch one object are thus not asked about the others' objects.
"""

import asyncio
from collections.abc import Callable

from tests.kubernetes.double.errors import ApiObject
from tests.kubernetes.double.kinds import Address, Kind
from tests.kubernetes.double.selectors import Selector
from tests.kubernetes.double.store import Entry, Event, Store, event_line

MOST_WAITING = 50_000
"""Lines that a watcher may lag behind before it is ended, as the API server ends slow ones."""

Render = Callable[[str, Entry], bytes]
"""Another form of an event than its object: a row of a table."""


class Watcher:
    def __init__(
        self,
        kind: Kind,
        namespace: str | None,
        selector: Selector,
        *,
        bookmarks: bool = False,
        render: Render | None = None,
    ) -> None:
        self.kind, self.namespace, self.selector = kind, namespace, selector
        self.bookmarks = bookmarks
        self.ended = False
        self._render = render
        self._waiting: list[bytes] = []
        self._wake = asyncio.Event()

    @property
    def pinned(self) -> tuple[str, str] | None:
        """The one key that is watched, where only one is."""
        name = self.selector.name
        if name is None or (self.kind.namespaced and self.namespace is None):
            return None
        return (self.namespace or "", name)

    def send(self, line: bytes) -> None:
        self._waiting.append(line)
        if len(self._waiting) > MOST_WAITING:
            self.ended = True
        self._wake.set()

    def end(self) -> None:
        self.ended = True
        self._wake.set()

    def show(self, entry: Entry) -> None:
        """A synthetic ADDED of what is there at the start."""
        if self._render is not None:
            self.send(self._render("ADDED", entry))
        else:
            self.send(event_line(self.kind, "ADDED", entry))

    def offer(self, event: Event) -> None:
        """Send an event as the selection sees it: what enters is ADDED, what leaves DELETED."""
        type = event.type
        if not self.selector.empty:
            takes = self.selector.takes
            now = not event.removed and takes(event.new.labels, event.new.fields)
            before = event.old is not None and takes(event.old.labels, event.old.fields)
            if not now and not before:
                return
            type = ("MODIFIED" if before else "ADDED") if now else "DELETED"
        if self._render is not None:
            self.send(self._render(type, event.new))
        else:
            self.send(event.line(self.kind, type))

    async def lines(self, timeout_s: float) -> bytes | None:
        """What waits, at once if anything does; nothing after the time; None at the end."""
        if not self._waiting and not self.ended:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), timeout_s)
            except TimeoutError:
                return b""
        return None if self.ended else b"".join(self.taken())

    def taken(self) -> list[bytes]:
        """All that waits, which then does not any more."""
        waiting, self._waiting = self._waiting, []
        return waiting


class Hub:
    """All watchers of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pinned: dict[tuple[Address, tuple[str, str]], set[Watcher]] = {}
        self._wide: dict[tuple[Address, str | None], set[Watcher]] = {}
        self._all: set[Watcher] = set()
        store.listeners.append(self._tell)

    def __len__(self) -> int:
        return len(self._all)

    def _place(self, watcher: Watcher) -> tuple[dict, object]:
        address = watcher.kind.address
        if watcher.pinned is not None:
            return self._pinned, (address, watcher.pinned)
        return self._wide, (address, watcher.namespace)

    def add(self, watcher: Watcher) -> None:
        places, key = self._place(watcher)
        places.setdefault(key, set()).add(watcher)
        self._all.add(watcher)

    def remove(self, watcher: Watcher) -> None:
        places, key = self._place(watcher)
        held = places.get(key, set())
        held.discard(watcher)
        if not held:
            places.pop(key, None)
        self._all.discard(watcher)

    def _tell(self, address: Address, event: Event) -> None:
        for watcher in self._pinned.get((address, event.key), ()):
            watcher.offer(event)
        if namespace := event.key[0]:
            for watcher in self._wide.get((address, namespace), ()):
                watcher.offer(event)
        for watcher in self._wide.get((address, None), ()):
            watcher.offer(event)

    def bookmark(self) -> None:
        """Tell all that asked for bookmarks how far they are: nothing of theirs is older."""
        lines: dict[bytes, bytes] = {}
        for watcher in self._all:
            if watcher.bookmarks:
                prefix = watcher.kind.prefix
                if prefix not in lines:
                    lines[prefix] = bookmark_line(watcher.kind, self._store.version)
                watcher.send(lines[prefix])

    def end_all(self) -> int:
        """End every watch as a lost connection does; how many there were."""
        count = len(self._all)
        for watcher in self._all:
            watcher.end()
        return count


def bookmark_line(kind: Kind, version: int, annotations: ApiObject | None = None) -> bytes:
    noted = b""
    if annotations:
        pairs = ",".join(f'"{key}":"{value}"' for key, value in annotations.items())
        noted = b',"annotations":{%s}' % pairs.encode()
    metadata = b'"metadata":{"resourceVersion":"%d","creationTimestamp":null%s}' % (version, noted)
    return b'{"type":"BOOKMARK","object":%s%s}}\n' % (kind.prefix, metadata)
