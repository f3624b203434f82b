"""get, list and watch."""

import asyncio
import base64
import itertools
import random
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from aiohttp import web

from tests.kubernetes.double import errors
from tests.kubernetes.double.cluster import Cluster
from tests.kubernetes.double.errors import ApiError
from tests.kubernetes.double.kinds import Kind
from tests.kubernetes.double.serving.requests import Asked, number_of, selector_of
from tests.kubernetes.double.serving.tables import Table, wants_table
from tests.kubernetes.double.store import Entry
from tests.kubernetes.double.watching import Hub, Watcher, bookmark_line

MOST_PAGED = 64
"""Lists in pages that are remembered; who goes on with an older one begins anew (410)."""


MOST_WARNINGS = 20
"""Headers that one answer warns with; clients refuse too many."""


class Reading:
    def __init__(self, cluster: Cluster, hub: Hub) -> None:
        self.cluster, self.hub = cluster, hub
        self._paged: OrderedDict[str, tuple[int, list[Entry]]] = OrderedDict()
        self._numbers = itertools.count(1)

    def get(self, request: web.Request, kind: Kind, asked: Asked) -> web.Response:
        entry = self.cluster.entry(kind, asked.namespace or "", asked.name)
        self._reached(number_of(request.query, "resourceVersion"))
        if wants_table(request):
            return json_response(Table(kind, request.query).of([entry], entry.version))
        return entry_response(kind, entry)

    def _reached(self, version: int | None) -> None:
        if version is not None and version > self.cluster.store.version:
            raise errors.not_yet(version, self.cluster.store.version)

    def list_objects(self, request: web.Request, kind: Kind, asked: Asked) -> web.Response:
        query = request.query
        selector = selector_of(query, kind)
        if asked.name:
            raise errors.no_such_path()
        limit = number_of(query, "limit") or 0
        if token := query.get("continue"):
            version, entries = self._next_page(token)
        else:
            version, entries = self._present(query, kind, asked.namespace)
        if not selector.empty:
            entries = [e for e in entries if selector.takes(e.labels, e.fields)]
        rest: Sequence[Entry] = []
        if limit and len(entries) > limit:
            entries, rest = entries[:limit], entries[limit:]
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if rest:
            metadata["continue"] = self._keep_page(version, list(rest))
            if selector.empty:
                metadata["remainingItemCount"] = len(rest)
        if wants_table(request):
            return json_response(Table(kind, query).of(entries, version, metadata))
        return web.Response(
            body=list_body(kind, entries, metadata), content_type="application/json"
        )

    def _present(self, query: Any, kind: Kind, namespace: str | None) -> tuple[int, list[Entry]]:
        store = self.cluster.store
        asked = number_of(query, "resourceVersion")
        match = query.get("resourceVersionMatch", "")
        if match and asked is None:
            why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            wrong = errors.forbidden_field("resourceVersionMatch", why)
            raise errors.invalid("ListOptions", "meta.k8s.io", "", [wrong])
        if match not in ("", "Exact", "NotOlderThan"):
            wrong = errors.unsupported("resourceVersionMatch", match, ["Exact", "NotOlderThan"])
            raise errors.invalid("ListOptions", "meta.k8s.io", "", [wrong])
        self._reached(asked)
        if match == "Exact" and asked is not None:
            bucket = store.bucket(kind.address)
            if asked < bucket.compacted:
                raise errors.expired(
                    "The provided resource version is too old: the required revision has been "
                    "compacted"
                )
            found = bucket.at_version(asked).values()
            entries = [e for e in found if namespace in (None, e.key[0])]
            return asked, sorted(entries, key=lambda e: e.key)
        return store.version, sorted(store.entries_of(kind.address, namespace), key=lambda e: e.key)

    def _keep_page(self, version: int, rest: list[Entry]) -> str:
        number = next(self._numbers)
        token = {"v": "meta.k8s.io/v1", "rv": version, "start": "/".join(rest[0].key), "n": number}
        text = base64.urlsafe_b64encode(orjson.dumps(token)).decode().rstrip("=")
        self._paged[text] = (version, rest)
        while len(self._paged) > MOST_PAGED:
            self._paged.popitem(last=False)
        return text

    def _next_page(self, token: str) -> tuple[int, list[Entry]]:
        found = self._paged.get(token)
        if found is None:
            try:
                orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            except ValueError:
                raise errors.bad_request("continue key is not valid") from None
            raise errors.expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You must start a new list without the continue parameter."
            )
        return found

    def compact(self) -> None:
        """Forget pages and events."""
        self._paged.clear()
        self.cluster.store.compact()

    async def watch(self, request: web.Request, kind: Kind, asked: Asked) -> web.StreamResponse:
        query = request.query
        selector = selector_of(query, kind)
        table = Table(kind, query) if wants_table(request) else None
        watcher = Watcher(
            kind,
            asked.namespace,
            selector,
            bookmarks=query.get("allowWatchBookmarks") in ("1", "true"),
            render=None if table is None else table.line,
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        refused = self._begin(watcher, query)
        timeout_s = float(number_of(query, "timeoutSeconds") or random.uniform(1800, 3600))
        self.hub.add(watcher)
        try:
            await response.prepare(request)
            if refused is not None:
                line = {"type": "ERROR", "object": refused.status}
                await response.write(orjson.dumps(line) + b"\n")
                return response
            await self._send(watcher, response, timeout_s)
        except ConnectionError:
            return response
        finally:
            self.hub.remove(watcher)
        if watcher.ended and request.transport is not None:
            request.transport.abort()  # a lost connection, no clean end
        return response

    async def _send(self, watcher: Watcher, response: web.StreamResponse, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while (left := until - loop.time()) > 0:
            lines = await watcher.lines(left)
            if lines is None:
                return
            if lines:
                await response.write(lines)

    def _begin(self, watcher: Watcher, query: Any) -> ApiError | None:
        """Put what is known already before the watcher; or say why it cannot begin there."""
        store, kind = self.cluster.store, watcher.kind
        version = number_of(query, "resourceVersion")
        initial = query.get("sendInitialEvents")
        if initial in ("1", "true"):
            if query.get("resourceVersionMatch") != "NotOlderThan":
                why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                wrong = errors.forbidden_field("sendInitialEvents", why)
                raise errors.invalid("ListOptions", "meta.k8s.io", "", [wrong])
            self._reached(version)
            self._show(watcher, store.entries_of(kind.address, watcher.namespace))
            if watcher.bookmarks:
                noted = {"k8s.io/initial-events-end": "true"}
                watcher.send(bookmark_line(kind, store.version, noted))
            return None
        if not version:
            if initial is None:
                self._show(watcher, store.entries_of(kind.address, watcher.namespace))
            return None
        bucket = store.bucket(kind.address)
        if version < bucket.compacted:
            return errors.too_old(version, bucket.compacted)
        for event in bucket.since(version):
            if watcher.namespace in (None, event.key[0]):
                watcher.offer(event)
        return None

    def _show(self, watcher: Watcher, entries: Iterable[Entry]) -> None:
        takes = watcher.selector.takes
        for entry in sorted(entries, key=lambda e: e.key):
            if watcher.selector.empty or takes(entry.labels, entry.fields):
                watcher.show(entry)


def list_body(kind: Kind, entries: Sequence[Entry], metadata: dict[str, Any]) -> bytes:
    """A list; the items of built-in kinds do not repeat their kind, those of custom ones do."""
    start = b"{" if kind.custom is None else kind.prefix
    head = f'{{"kind":"{kind.kind}List","apiVersion":"{kind.api_version}","metadata":'.encode()
    items = (b"," + start).join(entry.body for entry in entries)
    return b"".join(
        (head, orjson.dumps(metadata), b',"items":[', start if entries else b"", items, b"]}")
    )


def json_response(value: Any, *, status: int = 200, headers: Any = None) -> web.Response:
    return web.Response(
        body=orjson.dumps(value), status=status, content_type="application/json", headers=headers
    )


def entry_response(
    kind: Kind, entry: Entry, *, status: int = 200, warnings: Sequence[str] = ()
) -> web.Response:
    response = web.Response(
        body=kind.prefix + entry.body, status=status, content_type="application/json"
    )
    for text in warnings[:MOST_WARNINGS]:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{escaped}"')
    return response
