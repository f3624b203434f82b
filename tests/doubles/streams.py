"""A completion as server-sent events, in the form of a double."""

import json
from collections.abc import Iterator
from typing import Any

from tests.doubles.double import Double

Body = dict[str, Any]

_PIECE = 24
"""Characters of a piece."""


def events(double: Double, whole: Body, *, asks_usage: bool) -> Iterator[bytes]:
    """The pieces, joined, are the same message."""
    form = double.stream
    choice = whole["choices"][0]
    told = {k: v for k, v in whole.items() if k not in ("choices", "usage", "bill")}
    head = told | {"object": "chat.completion.chunk"}
    tells = form.usage == "always" or (form.usage == "asked" and asks_usage)
    if form.comments:
        yield f": {form.comments}\n\n".encode()
    if form.empty_choices_first:
        yield _event(head | {"choices": [], "prompt_filter_results": []})
    for index, delta in enumerate(_deltas(double, choice["message"])):
        part = {"index": 0, "delta": delta, "finish_reason": None}
        yield _event(head | {"choices": [part]})
        if form.comments and index % 16 == 15:
            yield f": {form.comments}\n\n".encode()
    reason = choice["finish_reason"]
    reason = form.calls_finish if reason == "tool_calls" else reason
    last = {"index": 0, "delta": {}, "finish_reason": reason}
    with_usage = {"usage": whole["usage"]} if tells else {}
    if form.usage_with_choice:
        yield _event(head | {"choices": [last]} | with_usage)
    else:
        yield _event(head | {"choices": [last]})
        if tells:
            yield _event(head | {"choices": []} | with_usage)
    if form.done:
        yield b"data: [DONE]\n\n"


def _deltas(double: Double, message: Body) -> Iterator[Body]:
    yield {"role": "assistant", "content": ""}
    for field in ("reasoning_content", "reasoning"):
        yield from ({field: piece} for piece in _pieces(message.get(field) or ""))
    content = message.get("content") or ""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict) and part["type"] != "text":
            yield {"content": [part]}
        else:
            text = part if isinstance(part, str) else part["text"]
            yield from ({"content": piece} for piece in _pieces(text))
    for index, call in enumerate(message.get("tool_calls") or []):
        place = {"index": index} if double.stream.call_index else {}
        function = call["function"]
        if double.stream.whole_calls or not isinstance(function["arguments"], str):
            yield {"tool_calls": [place | call]}
            continue
        opening = call | {"function": {"name": function["name"], "arguments": ""}}
        yield {"tool_calls": [place | opening]}
        for piece in _pieces(function["arguments"]):
            yield {"tool_calls": [place | {"function": {"arguments": piece}}]}


def _pieces(text: str) -> Iterator[str]:
    yield from (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))


def _event(value: Body) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"
