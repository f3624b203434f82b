"""What happens to any server: outages, lost connections, answers that nobody should trust.

The faults of a server's inside are given to `serve`; `refusing` and `IdleCutter` stand around it.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from aiohttp import web

from tests.doubles.delivery import END, Handler, hang_up
from tests.doubles.double import Double
from tests.doubles.errors import RefusedError, refused
from tests.doubles.server import DoubleServer

Failure = Literal["429", "500", "503", "529", "reset", "cut", "error", "malformed", "hang"]
"""reset: the connection is lost before anything is said. cut: in the middle of the answer, which is
charged. error: an error within the stream (a whole answer is cut). malformed: half a body under
status 200. hang: nothing comes for `hang_s`, then 504."""

FAILURES: tuple[Failure, ...] = ("429", "500", "503", "529", "reset", "cut", "malformed")


class RandomFaults:
    """A share of the requests fails; which, and how, hangs on the seed and their order."""

    def __init__(
        self,
        rate: float,
        *,
        seed: int = 0,
        failures: tuple[Failure, ...] = FAILURES,
        hang_s: float = 30.0,
    ) -> None:
        self.rate, self.failures, self.hang_s = rate, failures, hang_s
        self.made: Counter[str] = Counter()
        self._rng = random.Random(seed)

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method != "POST" or self._rng.random() >= self.rate:
            return await handler(request)
        failure = self._rng.choice(self.failures)
        self.made[failure] += 1
        return await fail(request, handler, failure, hang_s=self.hang_s)


class Outage:
    """While `now` is set, every request fails in this way."""

    def __init__(self, *, hang_s: float = 3600.0) -> None:
        self.now: Failure | None = None
        self.hang_s = hang_s
        self.met = 0

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self.now is None:
            return await handler(request)
        self.met += 1
        return await fail(request, handler, self.now, hang_s=self.hang_s)


async def fail(
    request: web.Request, handler: Handler, failure: Failure, *, hang_s: float
) -> web.StreamResponse:
    """The answer to a request that fails in this way."""
    match failure:
        case "reset":
            return hang_up(request)
        case "cut" | "error":
            is_stream = (await request.json()).get("stream")
            request[END] = failure if is_stream else "cut"
            return await handler(request)
        case "malformed":
            return web.Response(body=b'{"id": "x", "choices": [{"ind', content_type="text/html")
        case "hang":
            await asyncio.sleep(hang_s)
            return web.json_response({"error": {"message": "upstream timed out"}}, status=504)
        case _:
            kind = "rate_limit_error" if failure == "429" else "overloaded_error"
            error = {"message": "Too much is asked of this server.", "type": kind}
            return web.json_response({"type": "error", "error": error}, status=int(failure))


class Spent:
    """An account whose balance is used up after so many requests: each further one is refused, in
    the double's words for it."""

    def __init__(self, double: Double, *, after: int) -> None:
        self.double, self.left = double, after

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method != "POST":
            return await handler(request)
        if self.left <= 0:
            status, body = refused(self.double, RefusedError("balance"))
            return web.Response(status=status, body=body, content_type="application/json")
        self.left -= 1
        return await handler(request)


@contextmanager
def refusing(server: DoubleServer) -> Iterator[None]:
    """Nobody listens at the server's port, and those who are connected are hung up on."""
    assert server.thread is not None
    server.thread.run(server.stop())
    try:
        yield
    finally:
        server.thread.run(server.start())


class IdleCutter:
    """A TCP proxy before a server, which cuts every connection on which nothing came for `idle_s`
    while an answer was awaited, as load balancers do."""

    def __init__(self, server: DoubleServer, *, idle_s: float) -> None:
        self.server, self.idle_s = server, idle_s
        self.cut = 0
        self._port = 0
        self._listening: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}{self.server.double.base_path}"

    async def start(self) -> None:
        """On a free port, and on the same one again after `stop`."""
        self._listening = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._listening.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._listening is not None:
            self._listening.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.server.port)
        asked = asyncio.create_task(self._pass(reader, back, None))
        try:
            await self._pass(there, writer, self.idle_s)
        except TimeoutError:
            self.cut += 1
        finally:
            asked.cancel()
            for end in (back, writer):
                end.transport.abort()

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, idle_s: float | None
    ) -> None:
        with suppress(ConnectionError):
            while data := await asyncio.wait_for(source.read(2**16), idle_s):
                target.write(data)
                await target.drain()


@contextmanager
def cutting_idle(server: DoubleServer, *, idle_s: float) -> Iterator[IdleCutter]:
    """An idle cutter that runs in the server's thread."""
    assert server.thread is not None
    cutter = IdleCutter(server, idle_s=idle_s)
    server.thread.run(cutter.start())
    try:
        yield cutter
    finally:
        server.thread.run(cutter.stop())
