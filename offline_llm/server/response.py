"""An answer in the protocol's forms: one completion, its stream of events, and errors.

The stream carries exactly what the completion does: its pieces, joined, are the same message.
`created` is a constant, because the same request gets the same bytes at any time.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from offline_llm.server.request import ChatRequest
from records.sizes import count_tokens

CREATED = 1767225600
"""2026-01-01T00:00:00Z."""
_PIECE = re.compile(r"\s*\S+\s*?|\s+")


@dataclass(frozen=True)
class Reply:
    """What a role says: words, calls as (name, arguments as JSON text), or both."""

    content: str
    calls: tuple[tuple[str, str], ...] = ()


def completion(request: ChatRequest, answer: Reply, *, verbosity: float = 1.0) -> dict[str, Any]:
    """The whole response of `/v1/chat/completions`, cut at the request's token limit.

    `verbosity`: how often it writes its size; words are said again, what is left over is thought.
    """
    wanted = int(_size(answer) * verbosity)
    if answer.content and not answer.calls and request.json_schema is None:
        answer = Reply("\n\n".join([answer.content] * int(verbosity)))
    answer, was_cut = _cut(answer, request.max_tokens)
    thoughts = _thoughts(min(wanted, request.max_tokens or wanted) - _size(answer))
    message: dict[str, Any] = {"role": "assistant", "content": answer.content or None}
    if thoughts:
        message["reasoning_content"] = thoughts
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{request.key[:12]}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for index, (name, arguments) in enumerate(answer.calls)
        ]
    else:
        message["content"] = answer.content
    reason = "length" if was_cut else "tool_calls" if answer.calls else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return _head(request, "chat.completion") | {
        "choices": [choice],
        "usage": _usage(request, _size(answer) + count_tokens(thoughts)),
    }


def stream(request: ChatRequest, whole: dict[str, Any]) -> Iterator[bytes]:
    """The same completion as server-sent events."""
    head = _head(request, "chat.completion.chunk")
    choice = whole["choices"][0]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in _PIECE.findall(choice["message"]["content"] or "")]
    for index, call in enumerate(choice["message"].get("tool_calls", [])):
        function = call["function"]
        opening = call | {"index": index, "function": {"name": function["name"], "arguments": ""}}
        deltas.append({"tool_calls": [opening]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in _PIECE.findall(function["arguments"])
        ]
    for delta in deltas:
        part = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        yield event_of(head | {"choices": [part]})
    last = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": choice["finish_reason"]}
    yield event_of(head | {"choices": [last]})
    if request.include_usage:
        yield event_of(head | {"choices": [], "usage": whole["usage"]})
    yield b"data: [DONE]\n\n"


def error_body(message: str, kind: str, *, param: str | None = None, code: str = "") -> bytes:
    error = {"message": message, "type": kind, "param": param, "code": code or None}
    return json.dumps({"error": error}).encode()


def _head(request: ChatRequest, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{request.key[:24]}",
        "object": kind,
        "created": CREATED,
        "model": request.model,
        "system_fingerprint": "offline",
    }


def _thoughts(tokens: int) -> str:
    """So many tokens of nothing in particular."""
    return _first_tokens("Let me think about this. " * tokens, tokens) if tokens > 0 else ""


def _usage(request: ChatRequest, answered: int) -> dict[str, int]:
    prompt = count_tokens(json.dumps(request.messages, ensure_ascii=False))
    prompt += count_tokens(request.tools_text) if request.tools else 0
    if request.json_schema:
        prompt += count_tokens(json.dumps(request.json_schema, ensure_ascii=False))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answered,
        "total_tokens": prompt + answered,
    }


def _size(answer: Reply) -> int:
    return count_tokens(answer.content) + sum(
        count_tokens(name) + count_tokens(arguments) for name, arguments in answer.calls
    )


def _cut(answer: Reply, limit: int | None) -> tuple[Reply, bool]:
    """The first `limit` tokens: words first, then calls, the last one's arguments cut short."""
    if limit is None or _size(answer) <= limit:
        return answer, False
    content = _first_tokens(answer.content, limit)
    left = limit - count_tokens(content)
    calls = []
    for name, arguments in answer.calls:
        left -= count_tokens(name)
        if left <= 0:
            break
        calls.append((name, _first_tokens(arguments, left)))
        left -= count_tokens(calls[-1][1])
    return Reply(content, tuple(calls)), True


def _first_tokens(text: str, limit: int) -> str:
    """The longest prefix of at most `limit` tokens, never half a character."""
    if count_tokens(text) <= limit:
        return text
    prefix = text.encode()[: limit * 4].decode(errors="ignore")
    while count_tokens(prefix) > limit:
        prefix = prefix[:-1]
    return prefix


def event_of(value: dict[str, Any]) -> bytes:
    """A server-sent event."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"
