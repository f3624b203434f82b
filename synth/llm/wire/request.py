"""The wire format: one chat request as bytes, one answer read from bytes. Pure.

A body is encoded once; the same bytes are hashed, counted for the budget and sent.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic_core import to_json

from records.errors import ItemError
from records.model_names import in_digests
from records.seeds import seed_of
from synth.llm.settings.config import RoleConfig

Message = dict[str, Any]


class ChatAnswer(NamedTuple):
    content: str
    tool_calls: list[dict[str, Any]]
    """OpenAI wire form. Arguments stay the text that the model wrote, JSON or not."""
    reasoning: str | None
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int


class BadBodyError(Exception):
    """The body of a 200 is no chat completion: cut off, no JSON, or without a message."""


def request_body(
    config: RoleConfig,
    role: str,
    messages: Sequence[Message],
    *,
    item: str,
    round_: int = 0,
    tools: Sequence[dict[str, Any]] | None = None,
    schema: tuple[str, dict[str, Any]] | None = None,
) -> bytes:
    """The same bytes for the same arguments. `schema` is (name, JSON Schema) of the answer.

    The seed hangs on item, round and role, so that it stays the same during a conversation. Text
    that UTF-8 cannot hold raises ItemError("unsendable_request").
    """
    body: dict[str, Any] = {
        "model": config.model_of(item, role),
        "messages": messages if config.send_reasoning else _without_reasoning(messages),
        "max_tokens": config.max_tokens,
        "seed": seed_of(item, f"llm:{role}", round_) >> 32,  # 31 bits: more than some servers read
    }
    if config.temperature is not None:
        body["temperature"] = config.temperature
    if config.top_p is not None:
        body["top_p"] = config.top_p
    if tools:
        body["tools"] = tools
    if schema is not None:
        form = {"name": schema[0], "schema": schema[1]}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    body |= config.extra_body
    try:
        return to_json(body, inf_nan_mode="null")  # a quarter of json.dumps' time
    except ValueError as error:
        raise ItemError("unsendable_request", f"{role} for {item}: {error}") from error


def _without_reasoning(messages: Sequence[Message]) -> list[Message]:
    return [
        {key: value for key, value in message.items() if key != "reasoning_content"}
        if "reasoning_content" in message
        else message
        for message in messages
    ]


def request_hash(body: bytes, model: str) -> str:
    """Digest of a request to the model. Keys of journals and ids of calls are made of it, so an
    offline model counts under its earlier name."""
    if (earlier := in_digests(model)) != model:
        body = body.replace(b'"model":' + to_json(model), b'"model":' + to_json(earlier), 1)
    return hashlib.sha256(body).hexdigest()[:16]


def parse_answer(raw: bytes, *, call_prefix: str, fallback_usage: tuple[int, int]) -> ChatAnswer:
    """Raises BadBodyError saying what is wrong.

    Missing and repeated ids of tool calls become `<call_prefix>_<index>`. Usage that the server
    does not report is taken to be `fallback_usage`, which should be the worst case.
    """
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadBodyError(f"not JSON ({error}); starts {raw[:60]!r}") from None
    choices = data.get("choices") if isinstance(data, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise BadBodyError(f"no choices[0].message; starts {raw[:60]!r}")
    calls = _tool_calls(message.get("tool_calls"), call_prefix)
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    finish_reason = choice.get("finish_reason")
    return ChatAnswer(
        content=_text(message.get("content")) or _text(message.get("refusal")),
        tool_calls=calls,
        reasoning=_text(message.get("reasoning_content") or message.get("reasoning")) or None,
        finish_reason=finish_reason
        if isinstance(finish_reason, str)
        else ("tool_calls" if calls else "stop"),
        prompt_tokens=_count(usage.get("prompt_tokens"), fallback_usage[0]),
        completion_tokens=_count(usage.get("completion_tokens"), fallback_usage[1]),
    )


def _count(value: Any, fallback: int) -> int:
    return value if type(value) is int and value >= 0 else fallback


def _text(value: Any) -> str:
    """Text of a string or of a list of text parts; lone surrogates, which UTF-8 cannot hold,
    become question marks before anything sees them."""
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        value = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _tool_calls(value: Any, prefix: str) -> list[dict[str, Any]]:
    """Every entry is kept, broken ones with an empty name: the environment scores them."""
    calls: list[dict[str, Any]] = []
    seen: set[str] = set()
    for index, call in enumerate(value if isinstance(value, list) else []):
        call = call if isinstance(call, dict) else {}
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments")
        if isinstance(arguments, dict | list):  # some servers send the object itself
            arguments = json.dumps(arguments, ensure_ascii=False)
        call_id = _text(call.get("id"))
        if not call_id or call_id in seen:
            call_id = f"{prefix}_{index}"
        seen.add(call_id)
        named = {"name": _text(function.get("name")), "arguments": _text(arguments)}
        calls.append({"id": call_id, "type": "function", "function": named})
    return calls
