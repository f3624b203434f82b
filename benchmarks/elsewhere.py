"""An endpoint before two others: some requests go to a language model, the rest to the offline
model.

The language model's key, where it asks for one, is the environment variable `SYNTH_BENCHMARK_KEY`.
"""

import json
import os
from collections.abc import Callable
from typing import Any

import httpx

from offline_llm.app import create_app
from offline_llm.server.http import AsgiScope, Receive, Send


class Elsewhere:
    """The offline model as an app, but for the chat completions that are chosen for another
    endpoint."""

    def __init__(
        self, endpoint: str, model: str, is_chosen: Callable[[dict[str, Any]], bool]
    ) -> None:
        key = os.environ.get("SYNTH_BENCHMARK_KEY", "none")
        self._offline = create_app()
        self._model = model
        self._is_chosen = is_chosen
        self._client = httpx.AsyncClient(
            base_url=endpoint.rstrip("/") + "/",
            headers={"Authorization": f"Bearer {key}"},
            timeout=3_600,
        )
        self.answers: list[str] = []
        """What the other endpoint has answered, as it was sent; no refusals."""

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._offline(scope, receive, send)
            return
        body = await _body(receive)
        asked = json.loads(body or b"{}")
        if "messages" not in asked or not self._is_chosen(asked):
            await self._offline(scope, _once(body), send)
            return
        answer = await self._client.post("chat/completions", json=asked | {"model": self._model})
        if answer.is_success:
            self.answers.append(answer.text)
        headers = [(b"content-type", b"application/json")]
        await send(
            {"type": "http.response.start", "status": answer.status_code, "headers": headers}
        )
        await send({"type": "http.response.body", "body": answer.content})


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _once(body: bytes) -> Receive:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
