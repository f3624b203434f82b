"""Stored conversations in the forms that trainers take."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NoReturn

ExportMessage = Mapping[str, Any]

Reasoning = Literal["none", "field", "think"]
"""What becomes of an agent's thoughts: left out, in `reasoning_content` as stored, or before the
content between the marks of `THINK`."""

Arguments = Literal["object", "text"]
"""What arguments of calls are in formats that can have both."""

THINK = ("<think>\n", "\n</think>\n\n")
"""Before and after a thought, as the chat templates of models that think write it."""

_OPENAI_KEYS = {
    "system": ("role", "content"),
    "developer": ("role", "content"),
    "user": ("role", "content"),
    "assistant": ("role", "content", "refusal", "tool_calls"),
    "tool": ("role", "tool_call_id", "content"),
}
"""What OpenAI's fine-tuning takes; it refuses a file with any other key."""


def with_reasoning(messages: Sequence[ExportMessage], reasoning: Reasoning) -> list[dict[str, Any]]:
    """The messages with their thoughts as told."""
    written = []
    for message in messages:
        kept = {key: value for key, value in message.items() if key != "reasoning_content"}
        thought = _thought(message, reasoning)
        if thought and reasoning == "think":
            kept["content"] = thought.join(THINK) + (message.get("content") or "")
        elif thought:
            kept["reasoning_content"] = thought
        written.append(kept)
    return written


def num_thoughts(messages: Sequence[ExportMessage], reasoning: Reasoning) -> int:
    """Messages whose thought `with_reasoning` keeps."""
    return sum(_thought(message, reasoning) is not None for message in messages)


def _thought(message: ExportMessage, reasoning: Reasoning) -> str | None:
    """What is written of it. One that holds a closing mark of its own could not be told from the
    answer after it: `think` leaves it out."""
    thought = message.get("reasoning_content") or ""
    ends_early = reasoning == "think" and THINK[1].strip() in thought.lower()
    return None if reasoning == "none" or not thought.strip() or ends_early else thought


def with_object_arguments(messages: Sequence[ExportMessage]) -> list[dict[str, Any]]:
    """As stored, but arguments as objects; those that are no JSON object stay the model's text."""
    return [_with_calls(m, [_object_call(c) for c in m.get("tool_calls") or ()]) for m in messages]


def with_arguments(messages: Sequence[ExportMessage], arguments: Arguments) -> list[dict[str, Any]]:
    """As stored, which is with text, or as `with_object_arguments`."""
    return with_object_arguments(messages) if arguments == "object" else [dict(m) for m in messages]


def in_openai_form(
    messages: Sequence[ExportMessage], train_turns: Sequence[bool] | None
) -> list[dict[str, Any]]:
    """Only keys of OpenAI's; `weight` 0 on assistant messages that are not to be learnt."""
    own = [{k: m[k] for k in _OPENAI_KEYS[m["role"]] if k in m} for m in messages]
    return with_flags(own, train_turns, weight=0)


def with_flags(
    messages: Sequence[ExportMessage], train_turns: Sequence[bool] | None, **flags: Any
) -> list[dict[str, Any]]:
    """The messages, with `flags` on those of the assistant that are not to be learnt."""
    return [
        {**message, **(flags if message["role"] == "assistant" and not learnt else {})}
        for message, learnt in zip(messages, learnt_turns(messages, train_turns), strict=True)
    ]


def learnt_turns(
    messages: Sequence[ExportMessage], train_turns: Sequence[bool] | None
) -> Sequence[bool]:
    """For each message whether it may be learnt; all of the assistant's where nothing is noted."""
    return train_turns or [message["role"] == "assistant" for message in messages]


def prompt_of(messages: Sequence[ExportMessage]) -> Sequence[ExportMessage]:
    """What stands before the agent's first message."""
    return messages[: [message["role"] for message in messages].index("assistant")]


@lru_cache(maxsize=256)
def tools_in(stored: str | None) -> list[dict[str, Any]]:
    """The tools of a row, for reading only: rows of one agent share them."""
    return json.loads(stored or "[]")


def object_arguments(arguments: str) -> dict[str, Any] | str:
    """Arguments of a call as an object; the text where they are no JSON object."""
    parsed = _object_of(arguments)
    return arguments if parsed is None else parsed


def num_text_arguments(messages: Sequence[ExportMessage]) -> int:
    """Calls whose arguments are no JSON object."""
    calls = [call for m in messages for call in m.get("tool_calls") or ()]
    return sum(_object_of(call["function"]["arguments"]) is None for call in calls)


def _with_calls(message: ExportMessage, calls: list[dict[str, Any]]) -> dict[str, Any]:
    return {**message, "tool_calls": calls} if calls else dict(message)


def _object_call(call: ExportMessage) -> dict[str, Any]:
    function = call["function"]
    arguments = object_arguments(function["arguments"])
    return {**call, "function": {**function, "arguments": arguments}}


def _object_of(arguments: str) -> dict[str, Any] | None:
    """The JSON object that the text is; None for anything that a file could not hold as one."""
    try:
        parsed = json.loads(arguments, parse_constant=_refuse)
        # a lone surrogate has no bytes, and 1e999 is read as a number that JSON cannot write
        json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
