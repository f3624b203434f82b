"""The model as an ASGI application: routes, keys, errors, and clients that come and go."""

import asyncio
import hmac
import logging
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from offline_llm.server.http import AsgiScope, Receive, Send, events, json_body, reply
from offline_llm.server.request import RequestError
from offline_llm.server.response import error_body
from trainer.data.tokenizer import Tokenizer
from trainer.serving.answering import Answering, as_body, meets_stop
from trainer.serving.asked import ChatAsked, chat_asked
from trainer.serving.decoding import ClosedError, Decoding, FullError, PendingAnswer
from trainer.serving.prompting import Prompting

log = logging.getLogger(__name__)

RETRY_AFTER_S = 1
"""When a client is told to come again where all that may wait is waiting."""


class ServedModel:
    """Its thread runs between the events `startup` and `shutdown` of the server around it."""

    def __init__(
        self,
        name: str,
        tokenizer: Tokenizer,
        prompting: Prompting,
        decoding: Decoding,
        *,
        capacity: int,
        key: str | None = None,
    ) -> None:
        """`name`: under which requests ask for it. `capacity`: tokens of prompt and answer. `key`:
        what a client has to show; None: nothing."""
        self._name, self._tokenizer = name, tokenizer
        self._prompting, self.decoding = prompting, decoding
        self._capacity, self._key = capacity, key
        self._created = int(time.time())
        self._closing = False
        # prompts are written one after the other, and beside the event loop
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="prompting")

    def begin_closing(self) -> None:
        """Take no more requests; those that are here are answered."""
        self._closing = True

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        if scope["type"] != "http":
            return None
        try:
            return await self._route(scope, receive, send)
        except RequestError as error:
            kind = "invalid_request_error"
            body = error_body(str(error), kind, param=error.param, code=error.code)
            return await reply(send, error.status, body)
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            return await reply(send, 500, error_body("internal error", "server_error"))

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.decoding.start()
            else:
                self._closing = True
                await asyncio.to_thread(self.decoding.close)
                self._reader.shutdown()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _route(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        path, method = scope["path"].rstrip("/"), scope["method"]
        self._check_key(scope)
        if path == "/v1/models" and method == "GET":
            return await reply(send, 200, as_body(self._listed()))
        if path != "/v1/chat/completions":
            raise RequestError(f"no route {method} {path}", None, status=404, code="not_found")
        if method != "POST":
            message = f"{path} takes POST, got {method}"
            raise RequestError(message, None, status=405, code="method_not_allowed")
        body = await json_body(receive)
        if self._closing:
            return await _come_again(send, 503, "the server is shutting down", "shutting_down")
        return await self._chat(_asked(body), receive, send)

    def _check_key(self, scope: AsgiScope) -> None:
        if self._key is None:
            return
        shown = dict(scope["headers"]).get(b"authorization", b"")
        if not hmac.compare_digest(shown, b"Bearer " + self._key.encode()):
            raise RequestError(
                "the key is missing or wrong: this server takes the header `Authorization: Bearer "
                "KEY`",
                None,
                status=401,
                code="invalid_api_key",
            )

    def _listed(self) -> dict[str, Any]:
        model = {
            "id": self._name,
            "object": "model",
            "created": self._created,
            "owned_by": "agentic-synth",
            "max_model_len": self._capacity,
        }
        return {"object": "list", "data": [model]}

    async def _chat(self, asked: ChatAsked, receive: Receive, send: Send) -> None:
        if asked.request.model != self._name:
            message = f"the model {asked.request.model!r} does not exist; this is {self._name!r}"
            raise RequestError(message, "model", status=404, code="model_not_found")
        loop = asyncio.get_running_loop()
        prepared = await loop.run_in_executor(self._reader, self._prompting.prepared, asked)
        changed = asyncio.Event()
        answer = PendingAnswer(
            *prepared,
            is_stopped=lambda ids: meets_stop(self._tokenizer, ids, asked.stop),
            on_change=lambda: _set(loop, changed),
            every_token=asked.request.stream,
        )
        try:
            self.decoding.submit(answer)
        except FullError:
            message = "as many requests as may wait are waiting"
            return await _come_again(send, 429, message, "queue_full")
        except ClosedError:
            return await _come_again(send, 503, "the server is shutting down", "shutting_down")
        answering = Answering(self._tokenizer, asked, answer.draft)
        gone = asyncio.create_task(_until_gone(receive))
        try:
            if asked.request.stream:
                with suppress(_GoneError):
                    await events(send, _pieces(answering, answer, changed, gone))
                return None
            with suppress(_GoneError):
                await _until_over(answer, changed, gone)
                return await self._send_whole(answering, answer, send)
        finally:
            gone.cancel()
            self.decoding.cancel(answer)

    @staticmethod
    async def _send_whole(answering: Answering, answer: PendingAnswer, send: Send) -> None:
        if isinstance(answer.error, ClosedError):
            return await _come_again(send, 503, "the server is shutting down", "shutting_down")
        if answer.error is not None:
            message = f"the answer could not be drawn: {answer.error}"
            return await reply(send, 500, error_body(message, "server_error"))
        return await reply(send, 200, as_body(answering.whole()))


class _GoneError(Exception):
    """The client went away."""


def _asked(body: Any) -> ChatAsked:
    """RequestError also for what JSON can hold and no text or digest can: half letters, numbers
    that are none, objects in objects without end."""
    try:
        return chat_asked(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the body cannot be read: {error}", None) from error


def _set(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    loop.call_soon_threadsafe(event.set)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _next_change(changed: asyncio.Event, gone: "asyncio.Task[None]") -> None:
    """_GoneError where the client goes first."""
    waiting = asyncio.create_task(changed.wait())
    try:
        await asyncio.wait((waiting, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if gone.done():
        raise _GoneError
    changed.clear()


async def _until_over(
    answer: PendingAnswer, changed: asyncio.Event, gone: "asyncio.Task[None]"
) -> None:
    while not answer.over:
        await _next_change(changed, gone)


async def _pieces(
    answering: Answering,
    answer: PendingAnswer,
    changed: asyncio.Event,
    gone: "asyncio.Task[None]",
) -> AsyncIterator[bytes]:
    yield answering.opening()
    while not answer.over:
        await _next_change(changed, gone)
        if not answer.over:
            for piece in answering.news():
                yield piece
    if answer.error is not None:
        message = f"the answer could not be drawn: {answer.error or 'the server is shutting down'}"
        yield b"data: " + error_body(message, "server_error") + b"\n\n"
        return
    for piece in answering.ending():
        yield piece


async def _come_again(send: Send, status: int, message: str, code: str) -> None:
    kind = "rate_limit_error" if status == 429 else "server_error"
    wait = (b"retry-after", b"%d" % RETRY_AFTER_S)
    await reply(send, status, error_body(message, kind, code=code), wait)
