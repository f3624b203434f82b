"""A double as a real HTTP server on loopback, in a thread of its own, before the offline model.

It keeps its own books: every request that arrived, and of every answer what it charged and whether
its last byte was sent. They are complete once it has stopped.
"""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from offline_llm.app import create_app
from offline_llm.settings.settings import OfflineSettings
from records.sizes import count_tokens
from tests.doubles.asgi import ask
from tests.doubles.canonical import Canonical, canonical
from tests.doubles.checks import authorize, check, token_limit
from tests.doubles.delivery import END, STREAM_ERROR, Answered, Fault, Handler, hang_up
from tests.doubles.double import Double
from tests.doubles.dressing import Bill, dressed, spent_on_thoughts
from tests.doubles.errors import RefusedError, refused
from tests.doubles.loop_thread import LoopThread
from tests.doubles.quotas import Quota
from tests.doubles.streams import events

Body = dict[str, Any]


class DoubleServer:
    def __init__(
        self,
        double: Double,
        *,
        settings: OfflineSettings | None = None,
        quota: Quota | None = None,
        faults: Sequence[Fault] = (),
        latency_s: float = 0.0,
        chunk_s: float = 0.0,
        stream_s: Callable[[int], float] = lambda number: 0.0,
        port: int = 0,
    ) -> None:
        """`latency_s` is waited before an answer, `chunk_s` before each event of a stream, and so
        much more that the stream of request number n takes `stream_s(n)`; port 0 is any that is
        free."""
        self.double = double
        self.quota = quota or Quota(headers=double.rate_headers, retry_after="seconds")
        self.requests: list[Body] = []
        self.statuses: Counter[int] = Counter()
        self.answered: list[Answered] = []
        self.in_flight = self.most_in_flight = 0
        self.url = ""
        """The base URL for a client, without the query."""
        self._app = create_app(settings)
        self._models = list((settings or OfflineSettings()).models)
        self._latency_s, self._chunk_s, self._stream_s = latency_s, chunk_s, stream_s
        self._faults = faults
        self._cached: set[str] = set()
        self._runner: web.AppRunner | None = None
        self._port = port
        self.thread: LoopThread | None = None
        """Whose loop serves, where `serve` started it."""

    async def start(self) -> None:
        """On a free port, and on the same one again after `stop`."""
        app = web.Application(client_max_size=16 * 2**20, middlewares=[self._count, self._fail])
        app.router.add_route("*", "/{path:.*}", self._route)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}{self.double.base_path}"

    async def stop(self) -> None:
        """Hang up on everybody and refuse connections."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def port(self) -> int:
        return self._port

    def role(self, key_env: str) -> Body:
        """Settings of a role that this server plays; the variable `key_env` holds `KEY`."""
        double = self.double
        keys: Body = {"api_key_env": key_env} if double.api_key else {}
        if double.key_header == "api-key":
            keys = {"headers": {double.key_header: key_env}}
        return keys | {"base_url": self.url, "query": dict(double.query)}

    def tokens(self, *, delivered: bool) -> Bill:
        """What all answers that arrived in full were charged, or those that were cut off."""
        bills = [done.bill for done in self.answered if done.delivered is delivered]
        return Bill(*(sum(column) for column in zip(*bills, strict=True))) if bills else Bill(0, 0)

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        status = 0  # of those that got no answer
        try:
            response = await handler(request)
            status = response.status
            return response
        except ConnectionError:  # the other end has gone, or was hung up on
            return web.Response()
        finally:
            self.in_flight -= 1
            self.statuses[status] += 1

    @web.middleware
    async def _fail(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        for fault in reversed(self._faults):
            handler = _with(fault, handler)
        return await handler(request)

    async def _route(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except RefusedError as refusal:
            status, body = refused(self.double, refusal)
            return web.Response(status=status, body=body, content_type="application/json")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        double, path = self.double, request.path.rstrip("/")
        if not path.startswith(double.base_path):
            raise RefusedError("route", field=path)
        authorize(double, request)
        path = path.removeprefix(double.base_path)
        if path == "/models" and request.method == "GET" and double.models != "none":
            return web.json_response({"object": "list", "data": self._list()})
        if path not in ("/chat/completions", "/embeddings") or request.method != "POST":
            raise RefusedError("route", field=f"{request.method} {path}")
        try:
            body = await request.json()
        except ValueError as error:
            raise RefusedError("body", value=error) from error
        if path == "/embeddings":
            status, made = await ask(self._app, "/v1/embeddings", body)
            return web.json_response(made, status=status)
        return await self._chat(request, body)

    async def _chat(self, request: web.Request, body: Body) -> web.StreamResponse:
        number = len(self.requests)
        self.requests.append(body)
        model = str(body.get("model", "")).removeprefix("models/")
        if model not in self._models:
            raise RefusedError("model", model=model)
        ignored = self.double.ignored_fields
        body = {k: v for k, v in body.items() if k not in ignored} | {"model": model}
        if (lacking := self.quota.admit()) is not None:
            return self._too_many(lacking, model)
        check(self.double, body)
        whole = await self._completion(body)
        answered = Answered(number, whole["bill"])
        self.answered.append(answered)
        self.quota.charge(answered.bill.prompt + answered.bill.completion)
        await asyncio.sleep(self._latency_s)  # who does not wait for it has to pay all the same
        headers = self.quota.told(refused=False) | {"x-request-id": str(number)}
        if body.get("stream"):
            return await self._stream(request, body, whole, headers, answered)
        del whole["bill"]
        text = json.dumps(whole, ensure_ascii=False).encode()
        if self.double.blank_lines:
            text = b"\n\n\n" + text
        response = web.Response(body=text, content_type="application/json", headers=headers)
        if request.get(END) == "cut":
            await self._cut(request, text, headers)
        await response.prepare(request)
        await response.write_eof()
        answered.delivered = True
        return response

    async def _cut(self, request: web.Request, text: bytes, headers: dict[str, str]) -> None:
        """Half of the answer, and then the connection is lost."""
        told = headers | {"content-type": "application/json", "content-length": str(len(text))}
        response = web.StreamResponse(headers=told)
        await response.prepare(request)
        await response.write(text[: len(text) // 2])
        hang_up(request)

    async def _completion(self, body: Body) -> Body:
        """The offline model's answer, dressed, with its bill."""
        double, limit = self.double, token_limit(body) or self.double.max_output_tokens
        asked, whole = await self._said(body, limit)
        thinks = double.reasoning_tokens if double.reasoning != "none" else 0
        # what fits is asked for as the client did, so that all doubles answer the same
        if limit is not None and whole["usage"]["completion_tokens"] + thinks > limit:
            if thinks >= limit:
                prompt = whole["usage"]["prompt_tokens"]
                return spent_on_thoughts(double, body, limit=limit, prompt=prompt)
            asked, whole = await self._said(body, limit - thinks)
        key = hashlib.sha256(json.dumps(asked.body).encode()).hexdigest()
        cached = min(self._cached_tokens(body), whole["usage"]["prompt_tokens"])
        return dressed(double, whole, asked, key=key, cached=cached)

    async def _said(self, body: Body, limit: int | None) -> tuple[Canonical, Body]:
        """What the offline model is asked, and what it answers within so many tokens."""
        asked = canonical(self.double, body, limit=limit)
        status, whole = await ask(self._app, "/v1/chat/completions", asked.body)
        if status != 200:
            raise RefusedError("body", value=whole["error"]["message"])
        return asked, whole

    def _cached_tokens(self, body: Body) -> int:
        """Tokens of a first message that was seen before, in blocks of 64."""
        first = str(body["messages"][0].get("content"))
        if first in self._cached:
            return count_tokens(first) // 64 * 64
        self._cached.add(first)
        return 0

    async def _stream(
        self,
        request: web.Request,
        body: Body,
        whole: Body,
        headers: dict[str, str],
        answered: Answered,
    ) -> web.StreamResponse:
        told = headers | {"content-type": "text/event-stream; charset=utf-8"}
        response = web.StreamResponse(headers=told)
        await response.prepare(request)
        options, end = body.get("stream_options") or {}, request.get(END)
        pieces = list(events(self.double, whole, asks_usage=bool(options.get("include_usage"))))
        pause_s = max(self._chunk_s, self._stream_s(answered.number) / len(pieces))
        for event in pieces[: len(pieces) // 2] if end else pieces:
            if pause_s:
                await asyncio.sleep(pause_s)
            await response.write(event)
        if end == "cut":
            hang_up(request)
        if end == "error":
            await response.write(STREAM_ERROR)
        await response.write_eof()
        answered.delivered = not end
        return response

    def _too_many(self, lacking: str, model: str) -> web.Response:
        limit = self.quota.requests if lacking == "requests" else self.quota.tokens
        values = {"field": lacking, "model": model, "limit": limit, "tokens": limit}
        values["seconds"] = round(max(self.quota.reset_s("requests"), self.quota.reset_s("tokens")))
        status, body = refused(self.double, RefusedError("rate", **values))
        headers = self.quota.told(refused=True)
        return web.Response(
            status=status, body=body, headers=headers, content_type="application/json"
        )

    def _list(self) -> list[Body]:
        double, more = self.double, {}
        if double.models == "max_model_len":
            more = {"max_model_len": double.context_tokens}
        elif double.models == "n_ctx":
            more = {"meta": {"n_ctx": double.context_tokens}}
        before = "models/" if double.models == "prefixed" else ""
        return [
            {"id": before + name, "object": "model", "created": 0, "owned_by": double.name} | more
            for name in self._models
        ]


def _with(fault: Fault, handler: Handler) -> Handler:
    async def faulty(request: web.Request) -> web.StreamResponse:
        return await fault(request, handler)

    return faulty


@contextmanager
def serve(double: Double, **options: Any) -> Iterator[DoubleServer]:
    """A running server; `options` are those of `DoubleServer`."""
    server = DoubleServer(double, **options)
    with LoopThread() as thread:
        server.thread = thread
        thread.run(server.start())
        try:
            yield server
        finally:
            thread.run(server.stop())
