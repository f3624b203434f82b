"""The server's own count: a line of JSON for each chat request and each answer.

What a client says it sent and spent can be held against it, also after the client was killed.
"""

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from offline_llm.server.http import AsgiApp, AsgiScope, Receive, Send


class RequestLog:
    """Around an application. A line is in the file before the application sees its request, or
    before the client sees its answer."""

    def __init__(self, app: AsgiApp, path: Path) -> None:
        """Appends to `path`. Several requests may be open at once, on one event loop."""
        self._app = app
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith("/chat/completions"):
            return await self._app(scope, receive, send)
        body = await _whole(receive)
        digest = hashlib.sha256(body).hexdigest()[:32]
        self._write({"event": "asked", "digest": digest, "bytes": len(body)})
        waiting: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Any:
            return waiting.pop() if waiting else await receive()

        status, answer = 0, b""

        async def watched(message: Any) -> None:
            nonlocal status, answer
            status = message.get("status", status)
            answer += message.get("body", b"")
            if message["type"] == "http.response.body" and not message.get("more_body"):
                self._write(
                    {"event": "answered", "digest": digest, "status": status} | _usage(answer)
                )
            await send(message)

        return await self._app(scope, replay, watched)

    def _write(self, line: dict[str, Any]) -> None:
        text = json.dumps(line | {"at": time.time()}) + "\n"
        os.write(self._file, text.encode())  # no buffer: whoever reads the file sees it at once


def _usage(answer: bytes) -> dict[str, int]:
    """Tokens charged: none for an answer without usage, such as a refusal or half a body."""
    try:
        usage = json.loads(answer)["usage"]
        return {name: int(usage[name]) for name in ("prompt_tokens", "completion_tokens")}
    except (ValueError, LookupError, TypeError):
        return {"prompt_tokens": 0, "completion_tokens": 0}


async def _whole(receive: Receive) -> bytes:
    chunks, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(chunks)
