"""One request to an ASGI application in this process."""

import json
from collections.abc import MutableMapping
from typing import Any

Body = dict[str, Any]


async def ask(app: Any, path: str, body: Body) -> tuple[int, Body]:
    """The answer of an ASGI application to a JSON request."""
    scope = {"type": "http", "path": path, "method": "POST", "headers": []}
    status, parts = 0, list[bytes]()

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)
        parts.append(message.get("body", b""))

    await app(scope, receive, send)
    return status, json.loads(b"".join(parts))
