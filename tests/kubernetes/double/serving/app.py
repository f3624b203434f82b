"""The server: one handler for every path, its faults, its log, its clock."""

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import orjson
import yaml
from aiohttp import web

from tests.kubernetes.double import errors
from tests.kubernetes.double.cluster import Cluster
from tests.kubernetes.double.errors import ApiError
from tests.kubernetes.double.journal import Journal
from tests.kubernetes.double.kinds import DEFINITIONS, Kinds
from tests.kubernetes.double.rules import quotas
from tests.kubernetes.double.serving.discovery import discover
from tests.kubernetes.double.serving.faults import Faults
from tests.kubernetes.double.serving.reading import Reading, json_response
from tests.kubernetes.double.serving.requests import Asked, found_kind, parse_path
from tests.kubernetes.double.serving.streams import Streams
from tests.kubernetes.double.serving.subresources import Subresources
from tests.kubernetes.double.serving.writing import Writing
from tests.kubernetes.double.store import Store
from tests.kubernetes.double.watching import Hub

log = logging.getLogger(__name__)

STREAMS = ("exec", "attach", "log")
MOST_BODY_BYTES = 3 * 1024 * 1024
"""As the API server's limit of a request."""


@dataclass(frozen=True)
class Settings:
    port: int = 0
    crds: Path | None = None
    """A folder with custom resource definitions as YAML."""
    log: Path | None = None
    state: Path | None = None
    history: int = 4096
    """Events of each resource that a watch can begin after."""
    bookmark_s: float = 5.0
    stream_workers: int = 0
    """Processes to which joined streams are handed over; for more of them than one may hold."""


class Double:
    """The API server: stored state and what serves it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.port = settings.port
        journal = Journal(settings.state) if settings.state else None
        self.store = Store(window=settings.history, journal=journal)
        self.cluster = Cluster(self.store, Kinds())
        self.hub = Hub(self.store)
        self.faults = Faults()
        self.reading = Reading(self.cluster, self.hub)
        self.writing = Writing(self.cluster)
        self.subresources = Subresources(self.writing)
        self.streams = Streams(self.cluster, settings.stream_workers)
        self.restart: Callable[[float], None] | None = None
        """Set by whoever runs this as a process."""
        self._log: IO[bytes] | None = None
        self._runner: web.AppRunner | None = None
        self._bookmarks: asyncio.Task[None] | None = None
        if journal is not None:
            self._restore(journal)
        self.cluster.begin()
        if settings.crds is not None:
            self._define(settings.crds)

    def _restore(self, journal: Journal) -> None:
        """The objects of the server that was killed, definitions first: they make kinds."""
        held = [(address, orjson.loads(b"{" + body)) for address, body in journal.objects()]
        held.sort(key=lambda pair: pair[0] != DEFINITIONS)
        for address, item in held:
            kind = self.cluster.kinds.at(address)
            self.store.restore(kind, item, quotas.charge(address, item))
            if address == DEFINITIONS:
                self.cluster.serve(item)
        for address, bucket in self.store.buckets.items():
            for entry in bucket.entries.values():
                self.cluster.usage.add(address, entry)
        if journal.version:
            self.store.start_at(journal.version)
        journal.open()

    def _define(self, folder: Path) -> None:
        kind = self.cluster.kinds.at(DEFINITIONS)
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for path in sorted(folder.glob("*.yaml")):
            for item in yaml.load_all(path.read_text(), loader):
                name = item["metadata"]["name"]
                if self.store.get(DEFINITIONS, ("", name)) is None:
                    self.cluster.create(kind, "", item)

    async def start(self) -> None:
        if self.settings.log is not None:
            self._log = self.settings.log.open("ab", buffering=0)
        app = web.Application(client_max_size=MOST_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # A watch whose client is gone ends at once, not at the next event.
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
        self._runner = runner
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.settings.port, backlog=4096)
        await site.start()
        self.port = runner.addresses[0][1]
        self._bookmarks = asyncio.create_task(self._bookmark())

    async def close(self) -> None:
        if self._bookmarks is not None:
            self._bookmarks.cancel()
        await self.streams.close()
        self.hub.end_all()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._log is not None:
            self._log.close()

    async def _bookmark(self) -> None:
        while True:
            await asyncio.sleep(self.settings.bookmark_s)
            self.hub.bookmark()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(request.method.lower())
        code, response = 0, None
        try:
            if request.path.startswith("/double/"):
                return await self._control(request)
            asked = parse_path(request.method, request.path, request.query)
            response = await self._answer(request, asked)
            code = response.status
        except ApiError as e:
            code = e.code
            response = json_response(e.status, status=e.code, headers=e.headers)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except web.HTTPException as e:
            code = e.status
            refusal = ApiError(e.status, "RequestEntityTooLarge", e.text or e.reason)
            response = json_response(refusal.status, status=e.status)
        except Exception as e:
            log.exception("%s %s", request.method, request.path_qs)
            code, refusal = 500, errors.internal(f"{type(e).__name__}: {e}")
            response = json_response(refusal.status, status=500)
        finally:
            self._note(request, asked, code)
        return response

    async def _answer(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        await self._strike(request, asked)
        if not asked.resource_request:
            parts = [part for part in request.path.split("/") if part]
            if parts and parts[0] in ("healthz", "livez", "readyz"):
                return web.Response(text="ok")
            return json_response(discover(self.cluster.kinds, parts, request.host))
        kind = found_kind(asked, self.cluster.kinds)
        if asked.subresource in STREAMS:
            return await self.streams.serve(request, kind, asked)
        if asked.subresource:
            return await self.subresources.serve(request, kind, asked)
        match asked.verb:
            case "get":
                return self.reading.get(request, kind, asked)
            case "list":
                return self.reading.list_objects(request, kind, asked)
            case "watch":
                return await self.reading.watch(request, kind, asked)
            case "create":
                return await self.writing.create(request, kind, asked)
            case "update":
                return await self.writing.update(request, kind, asked)
            case "patch":
                return await self.writing.patch(request, kind, asked)
            case "delete":
                return await self.writing.delete(request, kind, asked)
            case "deletecollection":
                return await self.writing.deletecollection(request, kind, asked)
        raise errors.not_allowed("the requested resource")

    async def _strike(self, request: web.Request, asked: Asked) -> None:
        if not self.faults.listed:
            return
        fault = self.faults.strike(asked, request.headers.get("User-Agent", ""))
        if fault is None:
            return
        match fault.kind:
            case "status":
                raise fault.refusal()
            case "delay":
                await asyncio.sleep(fault.seconds)
            case "hang":
                await asyncio.Event().wait()
            case "disconnect":
                if request.transport is not None:
                    request.transport.abort()
                raise ConnectionResetError

    async def _control(self, request: web.Request) -> web.Response:
        """/double/faults: POST one, GET all, DELETE takes back; GET /double/state counts."""
        if request.path == "/double/state":
            counts = {
                "/".join(part for part in address if part): len(bucket.entries)
                for address, bucket in self.store.buckets.items()
            }
            now = {"version": self.store.version, "watches": len(self.hub)}
            return json_response({**now, "streams": len(self.streams), "objects": counts})
        if request.path != "/double/faults":
            raise errors.no_such_path()
        match request.method:
            case "GET":
                return json_response(self.faults.shown())
            case "DELETE":
                self.faults.clear()
                return json_response(self.faults.shown())
        try:
            fault = self.faults.add(orjson.loads(await request.read()))
        except ValueError as e:
            raise errors.bad_request(str(e)) from None
        match fault.kind:
            case "drop_watches":
                fault.struck = self.hub.end_all()
            case "drop_streams":
                fault.struck = self.streams.drop()
            case "compact":
                self.reading.compact()
                fault.struck = 1
            case "restart":
                if self.restart is None or self.settings.state is None:
                    raise errors.bad_request("a restart needs a process with --state")
                fault.struck = 1
                asyncio.get_running_loop().call_later(0.05, self.restart, fault.seconds)
        return json_response(dict(vars(fault)), status=201)

    def _note(self, request: web.Request, asked: Asked, code: int) -> None:
        """One line of the log; code 0 is a request whose client left."""
        if self._log is None:
            return
        line = {
            "time": time.time(),
            "verb": asked.verb,
            "group": asked.group,
            "resource": asked.plural,
            "subresource": asked.subresource,
            "namespace": asked.namespace or "",
            "name": asked.name,
            "user": request.headers.get("Authorization", "").removeprefix("Bearer "),
            "user_agent": request.headers.get("User-Agent", ""),
            "path": request.path_qs,
            "code": code,
        }
        self._log.write(orjson.dumps(line) + b"\n")


def exec_again(port: int) -> Callable[[float], None]:
    """A restart: this process becomes a new server on the same port; all its sockets close."""

    def restart(down_s: float) -> None:
        words = [
            *_without(sys.argv[1:], "--port", "--wait"),
            "--port",
            str(port),
            "--wait",
            str(down_s),
        ]
        os.execv(sys.executable, [sys.executable, "-m", "tests.kubernetes.double", *words])

    return restart


def _without(words: list[str], *options: str) -> list[str]:
    left, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in options:
            skip = True
        elif not word.startswith(tuple(f"{option}=" for option in options)):
            left.append(word)
    return left


async def serve_until_cancelled(double: Double, ready: Callable[[], None]) -> None:
    await double.start()
    double.restart = exec_again(double.port)
    ready()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await double.close()
