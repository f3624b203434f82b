"""What a proxy has behind it here: it keeps every request, and answers as the request itself says.

The last message may be JSON that says how: `status`, `headers` and `body` of a failure, or
`message`, `finish_reason`, and `cut`: a stream that ends in the middle.
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 30,
    "total_tokens": 130,
    "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 12},
}
HEADERS = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "59",
    "x-ratelimit-reset-requests": "1s",
    "x-ratelimit-remaining-tokens": "900",
}
MODEL = "upstream-model"


class Upstream:
    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[dict[str, Any]] = []


@contextlib.contextmanager
def upstream() -> Iterator[Upstream]:
    class Handler(_Answering):
        kept: list[dict[str, Any]]

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made = Upstream(f"http://127.0.0.1:{server.server_address[1]}/v1")
    Handler.kept = made.bodies
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    kept: list[dict[str, Any]]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._say(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        self.kept.append(body)
        how = _how(body["messages"][-1]["content"])
        if "status" in how:
            self._say(how["status"], how.get("body", {}), how.get("headers", {}))
        elif body.get("stream"):
            self._stream(body, how)
        else:
            message = {"role": "assistant", "content": "Hello.", "reasoning_content": "They greet."}
            message |= how.get("message", {})
            reason = how.get("finish_reason", "stop")
            choice = {"index": 0, "message": message, "finish_reason": reason}
            self._say(200, _frame("chat.completion", [choice]) | {"usage": USAGE}, HEADERS)

    def _stream(self, body: dict[str, Any], how: dict[str, Any]) -> None:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": "They "}, {"reasoning_content": "greet."}]
        deltas += (
            [{"content": "Hel"}] if how.get("cut") else [{"content": "Hel"}, {"content": "lo."}]
        )
        chunks = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
        if not how.get("cut"):
            chunks.append([{"index": 0, "delta": {}, "finish_reason": "stop"}])
        frames = [_frame("chat.completion.chunk", choices) for choices in chunks]
        if not how.get("cut") and body.get("stream_options", {}).get("include_usage"):
            frames.append(_frame("chat.completion.chunk", []) | {"usage": USAGE})
        text = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames)
        text += "" if how.get("cut") else "data: [DONE]\n\n"
        self._write(200, text.encode(), {"Content-Type": "text/event-stream"} | HEADERS)

    def _say(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        said = {"Content-Type": "application/json"} | (headers or {})
        self._write(status, json.dumps(value).encode(), said)

    def _write(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(data))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def _frame(kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": "up-1", "object": kind, "created": 1, "model": MODEL, "choices": choices}


def _how(content: Any) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (TypeError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
