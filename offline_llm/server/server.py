"""OpenAI's protocol as an ASGI application, for whatever can answer a chat request.

The answerer is given the request and nothing else. It may be told to misbehave, and to take time.
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from offline_llm.server.broken_calls import break_calls
from offline_llm.server.embeddings import embeddings
from offline_llm.server.http import AsgiScope, Receive, Send, events, json_body, lifespan, reply
from offline_llm.server.misbehaviour import Misbehaviour, Saboteur, spoil
from offline_llm.server.request import ChatRequest, RequestError, parse_chat
from offline_llm.server.response import CREATED, Reply, completion, error_body, stream
from records.seeds import rng_of


class OpenAIServer:
    """Stateless but for the misbehaviour's count of repeated requests."""

    def __init__(
        self,
        answer: Callable[[ChatRequest], Reply],
        models: Sequence[str],
        *,
        misbehave: Misbehaviour,
        latency_s: float = 0.0,
        jitter_s: float = 0.0,
        embedding_size: int = 256,
    ) -> None:
        """`latency_s` is the fixed part of the time to answer, from the request's arrival to the
        first byte sent; `jitter_s` the largest part that the request's digest draws."""
        self._answer, self._models = answer, list(models)
        self._rates, self._saboteur = misbehave, Saboteur(misbehave)
        self._latency_s, self._jitter_s = latency_s, jitter_s
        self._embedding_size = embedding_size

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await lifespan(receive, send)
        elif scope["type"] == "http":
            try:
                await self._route(scope, receive, send)
            except RequestError as error:
                kind = "invalid_request_error"
                body = error_body(str(error), kind, param=error.param, code=error.code)
                await reply(send, error.status, body)

    async def _route(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        path, method = scope["path"].rstrip("/"), scope["method"]
        if path == "/v1/models" and method == "GET":
            return await reply(send, 200, json.dumps(self._list()).encode())
        if path not in ("/v1/chat/completions", "/v1/embeddings"):
            raise RequestError(f"no route {method} {path}", None, status=404, code="not_found")
        if method != "POST":
            message = f"{path} takes POST, got {method}"
            raise RequestError(message, None, status=405, code="method_not_allowed")
        body = await json_body(receive)
        if path == "/v1/embeddings":
            made = embeddings(body, models=self._models, size=self._embedding_size)
            return await reply(send, 200, json.dumps(made).encode())
        return await self._chat(parse_chat(body), send)

    def _list(self) -> dict[str, Any]:
        return {
            "object": "list",
            "data": [
                {"id": name, "object": "model", "created": CREATED, "owned_by": "offline"}
                for name in self._models
            ],
        }

    async def _chat(self, request: ChatRequest, send: Send) -> None:
        if request.model not in self._models:
            known = ", ".join(self._models)
            message = f"the model {request.model!r} does not exist; this server has {known}"
            raise RequestError(message, "model", status=404, code="model_not_found")
        begun = time.monotonic()
        failure = self._saboteur.failure_of(request)
        if failure in ("rate_limit", "server_error", "hang"):
            await self._wait(request, begun)
            return await self._fail(failure, send)
        answer = self._answer(request)
        if failure in ("malformed", "prose"):
            answer = spoil(request, answer, failure)
        whole = completion(request, answer, verbosity=self._rates.verbosity)
        if self._rates.tool_calls and request.tools:
            break_calls(whole, request.messages, self._rates.tool_calls)
        await self._wait(request, begun)
        if request.stream:
            pieces = list(stream(request, whole))
            return await events(send, pieces[: len(pieces) // 2] if failure else pieces)
        body = json.dumps(whole, ensure_ascii=False).encode()
        if failure == "truncated":
            body = body[: len(body) // 2]
        return await reply(send, 200, body)

    async def _wait(self, request: ChatRequest, begun: float) -> None:
        """Until the answer is due: working it out is a part of the latency."""
        delay = self._latency_s
        if self._jitter_s:
            delay += self._jitter_s * rng_of(request.key, "latency").random()
        if (left := begun + delay - time.monotonic()) > 0:
            await asyncio.sleep(left)

    async def _fail(self, failure: str, send: Send) -> None:
        rates = self._rates
        if failure == "rate_limit":
            body = error_body("rate limit reached", "rate_limit_error", code="rate_limit_exceeded")
            wait = (b"retry-after", f"{rates.retry_after_s:g}".encode())
            return await reply(send, 429, body, wait)
        if failure == "hang":
            await asyncio.sleep(rates.hang_s)
            return await reply(send, 504, error_body("timed out", "server_error"))
        return await reply(send, 500, error_body("internal error", "server_error"))
