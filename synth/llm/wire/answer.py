"""One answer read from the body of a server's response, whatever form the server gives it. Pure."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from synth.llm.settings.config import TokenUsage
from synth.llm.wire.reasoning import cut_reasoning

CACHED = (
    "prompt_tokens_details.cached_tokens",
    "prompt_cache_hit_tokens",
    "cache_read_input_tokens",
    "cached_tokens",
)
"""Where servers report prompt tokens that came from their cache."""

_CUT = frozenset({"max_tokens", "MAX_TOKENS", "model_length", "max_length"})
"""What servers call an answer that was cut, beside `length`."""

_REASONED = ("completion_tokens_details.reasoning_tokens", "reasoning_tokens")


class ChatAnswer(NamedTuple):
    content: str
    tool_calls: list[dict[str, Any]]
    """OpenAI wire form. Arguments stay the text that the model wrote, JSON or not."""
    reasoning: str | None
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def usage(self) -> TokenUsage:
        return TokenUsage(
            self.prompt_tokens, self.completion_tokens, self.cached_tokens, self.reasoning_tokens
        )


class BadBodyError(Exception):
    """The body of a 200 is no chat completion: cut off, no JSON, or without a message."""


def read_answer(
    raw: bytes,
    *,
    call_prefix: str,
    fallback_usage: tuple[int, int],
    answer_in_call: bool = False,
    cached_usage: str | None = None,
) -> ChatAnswer:
    """Raises BadBodyError saying what is wrong.

    Missing and repeated ids of tool calls become `<call_prefix>_<index>`. Usage that the server
    does not report is taken to be `fallback_usage`, which should be the worst case. With
    `answer_in_call` the arguments of the first call are the content. `cached_usage` is the
    profile's entry.
    """
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadBodyError(f"not JSON ({error}); starts {raw[:60]!r}") from None
    choices = data.get("choices") if isinstance(data, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise BadBodyError(f"no choices[0].message; starts {raw[:200]!r}")
    calls = _tool_calls(message.get("tool_calls"), call_prefix)
    content, reasoning = _said(message)
    if answer_in_call and calls:
        content, calls = calls[0]["function"]["arguments"], []
    reason = choice.get("finish_reason")
    reason = "length" if isinstance(reason, str) and reason in _CUT else reason
    usage = _usage(data.get("usage"), fallback_usage, cached_usage)
    return ChatAnswer(
        content,
        calls,
        reasoning,
        reason if isinstance(reason, str) else ("tool_calls" if calls else "stop"),
        usage.prompt,
        usage.completion,
        usage.cached,
        usage.reasoning,
    )


def _said(message: Mapping[str, Any]) -> tuple[str, str | None]:
    """Text and reasoning, wherever the reasoning stands."""
    content = text_of(message.get("content")) or text_of(message.get("refusal"))
    field = text_of(message.get("reasoning_content")) or text_of(message.get("reasoning"))
    field = field or thought_in(message.get("content"))
    cut = cut_reasoning(content)
    return cut.content, "\n\n".join(filter(None, (field, cut.reasoning))) or None


def _usage(given: Any, fallback: tuple[int, int], cached_usage: str | None) -> TokenUsage:
    usage = given if isinstance(given, dict) else {}
    prompt = _count(usage.get("prompt_tokens"), fallback[0])
    completion = _count(usage.get("completion_tokens"), fallback[1])
    places = (cached_usage,) if cached_usage else CACHED
    cached = max(_count(value_at(usage, place), 0) for place in places)
    reasoned = max(_count(value_at(usage, place), 0) for place in _REASONED)
    total = usage.get("total_tokens")
    if type(total) is int and total > prompt + completion:
        # some servers count reasoning beside the completion, or only in the total
        reasoned = total - prompt - completion
        completion += reasoned
    return TokenUsage(prompt, completion, min(cached, prompt), min(reasoned, completion))


def value_at(usage: Any, path: str) -> Any:
    """By a dotted path; None where there is nothing."""
    for part in path.split("."):
        usage = usage.get(part) if isinstance(usage, dict) else None
    return usage


def _count(value: Any, fallback: int) -> int:
    return value if type(value) is int and value >= 0 else fallback


def text_of(value: Any) -> str:
    """Text of a string or of a list of text parts; lone surrogates, which UTF-8 cannot hold,
    become question marks before anything sees them."""
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        value = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def thought_in(content: Any) -> str:
    """Text of the parts of a content that are reasoning, as Mistral's models give them."""
    if not isinstance(content, list):
        return ""
    parts = [part for part in content if isinstance(part, dict) and part.get("type") == "thinking"]
    return "".join(text_of(part.get("thinking")) for part in parts)


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
        call_id = text_of(call.get("id"))
        if not call_id or call_id in seen:
            call_id = f"{prefix}_{index}"
        seen.add(call_id)
        named = {"name": text_of(function.get("name")), "arguments": text_of(arguments)}
        calls.append({"id": call_id, "type": "function", "function": named})
    return calls
