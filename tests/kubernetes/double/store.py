"""What is stored, in which version, and what happened to it lately.

One counter numbers all writes, as etcd's revision does, and is each object's resourceVersion. An
object is kept as the bytes that clients get, made once per write: lists and watches join them.
Entries are never changed, so a list that goes on in pages, and a watcher that lags, hold what was.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import orjson

from tests.kubernetes.double.errors import ApiObject, internal
from tests.kubernetes.double.journal import Journal
from tests.kubernetes.double.kinds import Address, Kind

Key = tuple[str, str]
"""Namespace ('' for cluster-wide kinds) and name."""
MOST_OBJECT_BYTES = 1536 * 1024
"""As etcd's limit of a request."""


class Entry:
    """One object in one version."""

    __slots__ = ("body", "charge", "fields", "key", "labels", "uid", "version")

    def __init__(self, kind: Kind, item: ApiObject, charge: Any = None) -> None:
        metadata = item["metadata"]
        self.key: Key = (metadata.get("namespace", ""), metadata["name"])
        self.uid: str = metadata["uid"]
        self.version = int(metadata["resourceVersion"])
        self.labels: dict[str, str] = metadata.get("labels") or {}
        self.fields = {"metadata.name": self.key[1], "metadata.namespace": self.key[0]}
        for path in kind.fields:
            self.fields[path] = _text_at(item, path)
        self.charge = charge
        """What a quota counts of it (`rules/quotas.py`)."""
        rest = {k: v for k, v in item.items() if k not in ("kind", "apiVersion")}
        self.body: bytes = orjson.dumps(rest)[1:]
        """The encoded object without its brace, kind and version."""

    def item(self, kind: Kind) -> ApiObject:
        """A copy to change."""
        return orjson.loads(kind.prefix + self.body)


def _text_at(item: ApiObject, path: str) -> str:
    value: Any = item
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


class Event:
    """A write: what was there, what is. Of a deleted object that is its last state."""

    __slots__ = ("_lines", "key", "new", "old", "removed", "version")

    def __init__(self, old: Entry | None, new: Entry, removed: bool) -> None:
        self.old, self.new, self.removed = old, new, removed
        self.key, self.version = new.key, new.version
        self._lines: dict[tuple[str, bytes], bytes] = {}

    @property
    def type(self) -> str:
        if self.removed:
            return "DELETED"
        return "ADDED" if self.old is None else "MODIFIED"

    def line(self, kind: Kind, type: str) -> bytes:
        """The event as watchers get it, encoded once for all of them."""
        known = self._lines.get((type, kind.prefix))
        if known is None:
            entry = self.new
            if type == "DELETED" and not self.removed and self.old is not None:
                # It left the selection: its last selected state, at the version of this write.
                item = self.old.item(kind)
                item["metadata"]["resourceVersion"] = str(self.version)
                entry = Entry(kind, item)
            known = event_line(kind, type, entry)
            self._lines[(type, kind.prefix)] = known
        return known


def event_line(kind: Kind, type: str, entry: Entry) -> bytes:
    return b'{"type":"%s","object":%s%s}\n' % (type.encode(), kind.prefix, entry.body)


class Bucket:
    """All objects at one address, and its lately written events."""

    def __init__(self, window: int, compacted: int) -> None:
        self.entries: dict[Key, Entry] = {}
        self.by_namespace: dict[str, dict[Key, Entry]] = {}
        self.history: deque[Event] = deque()
        self.window = window
        self.compacted = compacted
        """The newest version of which events are forgotten."""

    def put(self, entry: Entry) -> None:
        self.entries[entry.key] = entry
        self.by_namespace.setdefault(entry.key[0], {})[entry.key] = entry

    def remove(self, key: Key) -> None:
        del self.entries[key]
        del self.by_namespace[key[0]][key]

    def remember(self, event: Event) -> None:
        self.history.append(event)
        while len(self.history) > self.window:
            self.compacted = self.history.popleft().version

    def since(self, version: int) -> Iterable[Event]:
        """Events after `version`, oldest first; the caller has compared `compacted`."""
        found = []
        for event in reversed(self.history):
            if event.version <= version:
                break
            found.append(event)
        return reversed(found)

    def at_version(self, version: int) -> dict[Key, Entry]:
        """What was there at a version that is not compacted."""
        entries = dict(self.entries)
        for event in reversed(self.history):
            if event.version <= version:
                break
            if event.old is None:
                entries.pop(event.key, None)
            else:
                entries[event.key] = event.old
        return entries


class Store:
    def __init__(self, *, window: int = 4096, journal: Journal | None = None) -> None:
        self.version = 1
        self._started_at = 0
        self.window = window
        self.buckets: dict[Address, Bucket] = {}
        self.listeners: list[Callable[[Address, Event], None]] = []
        self._journal = journal

    def bucket(self, address: Address) -> Bucket:
        found = self.buckets.get(address)
        if found is None:
            found = self.buckets[address] = Bucket(self.window, self._started_at)
        return found

    def get(self, address: Address, key: Key) -> Entry | None:
        return self.bucket(address).entries.get(key)

    def entries_of(self, address: Address, namespace: str | None = None) -> Iterable[Entry]:
        bucket = self.bucket(address)
        if namespace is None:
            return bucket.entries.values()
        return bucket.by_namespace.get(namespace, {}).values()

    def put(self, kind: Kind, item: ApiObject, charge: Any = None) -> Entry:
        """Write an object, new or changed, in the next version."""
        item["metadata"]["resourceVersion"] = str(self.version + 1)
        entry = Entry(kind, item, charge)
        if len(entry.body) > MOST_OBJECT_BYTES:
            raise internal("etcdserver: request is too large")
        self.version += 1
        bucket = self.bucket(kind.address)
        old = bucket.entries.get(entry.key)
        bucket.put(entry)
        self._happened(kind, bucket, Event(old, entry, removed=False))
        return entry

    def remove(self, kind: Kind, item: ApiObject) -> Entry:
        """Take an object out; `item` is its last state."""
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        entry = Entry(kind, item)
        bucket = self.bucket(kind.address)
        old = bucket.entries[entry.key]
        bucket.remove(entry.key)
        self._happened(kind, bucket, Event(old, entry, removed=True))
        return entry

    def _happened(self, kind: Kind, bucket: Bucket, event: Event) -> None:
        if self._journal is not None:
            body = None if event.removed else event.new.body
            self._journal.write(kind.address, event.key, event.version, body)
        bucket.remember(event)
        for listener in self.listeners:
            listener(kind.address, event)

    def restore(self, kind: Kind, item: ApiObject, charge: Any = None) -> None:
        """Put back what a journal holds, in its own version and without an event."""
        entry = Entry(kind, item, charge)
        self.bucket(kind.address).put(entry)

    def compact(self) -> None:
        """Forget all events: whoever asks for an older version must list again."""
        for bucket in self.buckets.values():
            bucket.history.clear()
            bucket.compacted = self.version

    def start_at(self, version: int) -> None:
        """After a restart nothing before `version` is known but the objects themselves."""
        self.version = self._started_at = version
        for bucket in self.buckets.values():
            bucket.compacted = version
