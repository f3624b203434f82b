"""What a proxy changes between our client and the server behind it, both ways."""

import json
import time
from typing import Any, NamedTuple

from benchmarks.foreign.asking import Reply, Server, ask
from benchmarks.foreign.features import JSON_SCHEMA, QUESTION, TOOL, calling, result
from benchmarks.foreign.upstream import Upstream


class Change(NamedTuple):
    what: str
    told: str


FIELDS: dict[str, Any] = {
    "tools": [TOOL],
    "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
    "parallel_tool_calls": False,
    "response_format": JSON_SCHEMA,
    "seed": 7,
    "temperature": 0.5,
    "top_p": 0.9,
    "max_tokens": 50,
    "reasoning_effort": "low",
    "reasoning": {"effort": "low"},
    "chat_template_kwargs": {"enable_thinking": False},
    "top_k": 5,
    "no_such_field": 1,
}
"""Whatever one of our profiles may send, and a field that nobody knows."""

TALK = [
    {"role": "developer", "content": "Be brief."},
    QUESTION,
    calling("Lisbon", content=None) | {"reasoning_content": "A call will tell."},
    result("Lisbon"),
    {"role": "user", "content": "And now?"},
    {"role": "user", "content": "Well?"},
]

FAILURES: dict[str, dict[str, Any]] = {
    "429 with Retry-After 2": {"status": 429, "headers": {"Retry-After": "2"}},
    "429 with retry-after-ms 1500": {"status": 429, "headers": {"retry-after-ms": "1500"}},
    "503": {"status": 503},
    "529": {"status": 529},
    "500": {"status": 500},
    "408": {"status": 408},
    "403": {"status": 403, "body": {"error": {"message": "flagged", "code": "content_filter"}}},
    "402": {"status": 402},
    "404": {"status": 404, "body": {"error": {"message": "none", "code": "model_not_found"}}},
    "400, a field by name": {
        "status": 400,
        "body": {"error": {"message": "unrecognized argument: seed", "param": "seed"}},
    },
    "422, a field in FastAPI's words": {
        "status": 422,
        "body": {"detail": "Unexpected fields in the request: {'seed'}"},
    },
    "400, a prompt too long": {
        "status": 400,
        "body": {"error": {"message": "maximum context length is 10 tokens"}},
    },
    "401": {"status": 401},
}
SHUT_S = 30.0
"""The longest that we wait for a proxy which refuses everything after a failure."""


def changes(server: Server, behind: Upstream) -> list[Change]:
    found = [*_request(server, behind), *_answers(server)]
    for name, how in FAILURES.items():
        found.append(_failure(server, behind, name, how))
    return found


def _request(server: Server, behind: Upstream) -> list[Change]:
    reply, [*bodies] = _asked(server, behind, TALK, **FIELDS)
    found: list[Change] = []
    if not bodies:
        return [Change("the whole request", f"never sent on; {reply.words}")]
    got = bodies[-1]
    sent = FIELDS | {"messages": TALK}
    for name, value in sent.items():
        if name not in got:
            found.append(Change(f"field {name}", "is dropped"))
        elif got[name] != value:
            found.append(Change(f"field {name}", f"arrives as {_difference(value, got[name])}"))
    for name in got.keys() - sent.keys() - {"model"}:
        found.append(Change(f"field {name}", f"is added: {json.dumps(got[name])}"))
    _, bodies = _asked(server, behind, TALK[1:2], stream=True)
    asked = bodies[-1].get("stream_options") if bodies else None
    found.append(Change("stream_options where none are asked for", json.dumps(asked)))
    return found


def _answers(server: Server) -> list[Change]:
    def said(**how: Any) -> Reply:
        return ask(server, [{"role": "user", "content": json.dumps(how)}])

    plain = said()
    usage = json.dumps((plain.json or {}).get("usage"))
    odd = said(finish_reason="eos", message={"content": "a"})
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": '}},
        {"id": "", "type": "function", "function": {"name": "g", "arguments": {"x": 1}}},
    ]
    spoilt = said(message={"content": None, "tool_calls": calls}).message.get("tool_calls")
    cut = ask(server, [{"role": "user", "content": json.dumps({"cut": True})}], stream=True)
    end = cut.chunks[-1:] if cut.status == 200 else []
    rates = [name for name in plain.headers if "ratelimit" in name]
    return [
        Change("model", str((plain.json or {}).get("model"))),
        Change("usage", usage),
        Change("reasoning_content", str(plain.message.get("reasoning_content"))),
        Change("headers of rates", ", ".join(sorted(rates)) or "none"),
        Change("finish_reason eos", str(odd.finish_reason)),
        Change("calls with spoilt arguments and no id", json.dumps(spoilt)),
        Change(
            "a stream that is cut before its finish_reason",
            f"ends with {json.dumps(end[0])[:300] if end else cut.words},"
            f" {'with' if 'data: [DONE]' in cut.body else 'without'} [DONE]",
        ),
    ]


def _failure(server: Server, behind: Upstream, name: str, how: dict[str, Any]) -> Change:
    start, before = time.monotonic(), len(behind.bodies)
    how = {"body": {"error": {"message": "the words of the server"}}} | how
    reply = ask(server, [{"role": "user", "content": json.dumps(how)}])
    tries, waited = len(behind.bodies) - before, time.monotonic() - start
    told = f"{_told(reply)}; {tries} tries in {waited:.1f} s"
    if refused := _shut(server):
        told += f"; then for all requests {refused}"
    return Change(name, told)


def _shut(server: Server) -> str | None:
    """What a request is told that has done nothing wrong, until the door is open again."""
    refused = None
    start = time.monotonic()
    while time.monotonic() - start < SHUT_S:
        reply = ask(server, [{"role": "user", "content": "Hello?"}])
        if reply.status == 200:
            return refused and f"{refused}, for {time.monotonic() - start:.0f} s"
        refused = refused or _told(reply)
        time.sleep(0.5)
    return f"{refused}, for longer than {SHUT_S:.0f} s"


def _told(reply: Reply) -> str:
    kept = {k: v for k, v in reply.headers.items() if "retry" in k and "litellm" not in k}
    value = reply.json
    error = value.get("error") if isinstance(value, dict) else None
    words = error.get("message") if isinstance(error, dict) else reply.body[:80]
    return f"{reply.status} {json.dumps(kept) if kept else ''} {str(words).splitlines()[0][:110]!r}"


def _asked(
    server: Server, behind: Upstream, messages: list[dict[str, Any]], **fields: Any
) -> tuple[Reply, list[dict[str, Any]]]:
    before = len(behind.bodies)
    return ask(server, messages, **fields), behind.bodies[before:]


def _difference(sent: Any, got: Any) -> str:
    """Where two values differ, as paths."""
    found: list[str] = []

    def compare(a: Any, b: Any, path: str) -> None:
        if isinstance(a, dict) and isinstance(b, dict):
            for key in a.keys() | b.keys():
                if key not in b:
                    found.append(f"without {path}.{key} {json.dumps(a[key])}")
                elif key not in a:
                    found.append(f"with {path}.{key} {json.dumps(b[key])}")
                else:
                    compare(a[key], b[key], f"{path}.{key}")
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for number, (one, other) in enumerate(zip(a, b, strict=True)):
                compare(one, other, f"{path}[{number}]")
        elif a != b:
            found.append(f"{path} {json.dumps(a)} -> {json.dumps(b)}")

    compare(sent, got, "")
    return "; ".join(sorted(found))
