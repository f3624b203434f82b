"""Requests as bytes and answers as they come, without our client or anybody's between."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

TIMEOUT_S = 120.0

UNSAID = object()
"""Value of a field that is left out of a request."""


class Server(NamedTuple):
    name: str
    url: str
    """With /v1."""
    model: str
    key: str = "none"


class Reply(NamedTuple):
    status: int
    """0: no answer at all."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: str

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def message(self) -> dict[str, Any]:
        """Of the first choice; empty where there is none."""
        return self._choice.get("message") or {}

    @property
    def finish_reason(self) -> str | None:
        return self._choice.get("finish_reason")

    @property
    def _choice(self) -> dict[str, Any]:
        value = self.json
        choices = value.get("choices") if isinstance(value, dict) else None
        return choices[0] if choices else {}

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """Of a stream, without its end mark."""
        found = [line[6:] for line in self.body.splitlines() if line.startswith("data: ")]
        return [json.loads(text) for text in found if text != "[DONE]"]

    @property
    def words(self) -> str:
        """What the server says of a failure, on one line, cut."""
        told = " ".join(self.body.split())
        return f"{self.status}: {told[:160]}{'...' if len(told) > 160 else ''}"


def ask(
    server: Server,
    messages: Sequence[Mapping[str, Any]],
    *,
    raw: bytes | None = None,
    key: str | None = None,
    **fields: Any,
) -> Reply:
    """One chat request at temperature 0; fields that are given go as they are, None included."""
    body = {"model": server.model, "messages": messages, "max_tokens": 60, "temperature": 0}
    body = {name: value for name, value in (body | fields).items() if value is not UNSAID}
    data = raw if raw is not None else json.dumps(body).encode()
    return send(f"{server.url}/chat/completions", data, key or server.key)


def send(url: str, data: bytes | None, key: str) -> Reply:
    """POST, or GET without data."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(url, data, headers)
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        answer = error
    except (OSError, http.client.HTTPException) as error:
        return Reply(0, {}, f"{type(error).__name__}: {error}")
    with answer:
        try:
            text = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:  # cut on its way
            return Reply(0, {}, f"{type(error).__name__}: {error}")
        named = {name.lower(): value for name, value in answer.headers.items()}
        return Reply(answer.status or 0, named, text)
