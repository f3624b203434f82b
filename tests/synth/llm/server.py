"""A real HTTP server on loopback that speaks the protocol and fails on command.

It bills what it answers: `billed_tokens` is the server's own count, independent of ours.
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from queue import Queue
from typing import Any

from aiohttp import web

Body = dict[str, Any]


def answer(
    content: str | None = "fine", *, usage: tuple[int, int] | None = (7, 3), **more: Any
) -> Body:
    """A chat completion; `more` goes into the message (tool_calls, reasoning_content)."""
    finish_reason = more.pop("finish_reason", "stop")
    message = {"role": "assistant", "content": content} | more
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    body: Body = {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]}
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return body


@dataclass
class Fault:
    """What the server does instead of answering."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    hang_s: float = 0.0
    reset: bool = False


Script = Callable[[int, Body], Body | Fault]
"""(number of the request, from 0; its body) -> what happens."""


class Server:
    def __init__(self, script: Script, latency_s: Callable[[Body], float]) -> None:
        self.script = script
        self.latency_s = latency_s
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.billed = 0
        self.billed_tokens = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.url = ""
        self._arrived = asyncio.Event()

    async def reached(self, count: int) -> None:
        """Wait until this many requests have arrived."""
        while len(self.requests) < count:
            self._arrived.clear()
            await self._arrived.wait()

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        number = len(self.requests)
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        self._arrived.set()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(self.latency_s(body))
        self.in_flight -= 1
        done = self.script(number, body)
        if isinstance(done, Fault):
            await asyncio.sleep(done.hang_s)
            if done.reset:
                assert request.transport is not None
                request.transport.abort()
            return web.Response(
                status=done.status,
                body=done.body,
                headers={"Content-Type": "application/json"} | done.headers,
            )
        usage = done.get("usage") or {}
        self.billed += 1
        self.billed_tokens += sum(usage.values())
        return web.Response(body=json.dumps(done).encode(), content_type="application/json")

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "m"}, {"id": "other"}]})


@asynccontextmanager
async def serve(
    script: Script = lambda number, body: answer(),
    latency_s: Callable[[Body], float] = lambda body: 0.0,
) -> AsyncIterator[Server]:
    server = Server(script, latency_s)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", server.chat)
    app.router.add_get("/v1/models", server.models)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()


@contextmanager
def in_thread(reply: Script) -> Iterator[Server]:
    """The server in a loop and thread of its own: what is killed runs beside it."""
    loop, found = asyncio.new_event_loop(), Queue[tuple[Server, asyncio.Future[None]]]()

    async def run() -> None:
        async with serve(reply) as server:
            stop = loop.create_future()
            found.put((server, stop))
            await stop

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    server, stop = found.get(timeout=30)
    yield server
    loop.call_soon_threadsafe(stop.set_result, None)
    thread.join(30)
