"""What any server of OpenAI's protocol does with HTTP, as ASGI has it: bodies in, answers out."""

import json
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from offline_llm.server.request import RequestError

AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[AsgiScope, Receive, Send], Awaitable[None]]

MAX_BODY_BYTES = 16 * 2**20
"""Larger requests are refused with 413 before they are parsed."""


async def lifespan(receive: Receive, send: Send) -> None:
    """Of an application that has nothing to begin and nothing to end."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def json_body(receive: Receive) -> Any:
    """The request's body. RequestError for one that is too large, no JSON or never arrives."""
    chunks, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError("the client went away", None)
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            message = f"the body is over {MAX_BODY_BYTES} bytes"
            raise RequestError(message, None, status=413, code="too_large")
        chunks.append(chunk)
        more = message.get("more_body", False)
    try:
        return json.loads(b"".join(chunks))
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the body is not JSON: {error}", None, code="invalid_json") from error


async def reply(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*head, *headers]})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def events(send: Send, pieces: Iterable[bytes] | AsyncIterable[bytes]) -> None:
    """Server-sent events, each sent as soon as it is there."""
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if isinstance(pieces, AsyncIterable):
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    else:
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
