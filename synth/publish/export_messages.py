"""Stored conversations in the forms that trainers take, and the check that they can be taken."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn

ExportMessage = Mapping[str, Any]

Reasoning = Literal["none", "field", "think"]
"""What becomes of an agent's thoughts: left out, in `reasoning_content` as stored, or before the
content between the marks of `THINK`."""

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


def what_is_wrong(messages: Sequence[ExportMessage]) -> str | None:
    """Why no trainer could take the conversation; None when one can.

    It must end with the agent's words, the user must never speak twice in a row, and each call must
    be answered, once, before anything else is said.
    """
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in _OPENAI_KEYS:
            return f"has message {index} of role {role!r}; allowed: {', '.join(_OPENAI_KEYS)}"
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                return f"has a tool result, message {index}, that answers no open call"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"goes on at message {index} with {len(waiting)} calls unanswered"
        if role == "user" and index and messages[index - 1].get("role") == "user":
            return f"has two user messages in a row, the second at {index}"
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        waiting = set(calls)
        if len(waiting) < len(calls):
            return f"has several calls of one id in message {index}"
    if not messages or messages[-1]["role"] != "assistant" or waiting:
        return "does not end with words of the agent"
    return None


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


def in_openai_form(
    messages: Sequence[ExportMessage], train_turns: Sequence[bool] | None
) -> list[dict[str, Any]]:
    """Only keys of OpenAI's; `weight` 0 on assistant messages that are not to be learnt."""
    written = []
    for index, message in enumerate(messages):
        kept = {k: message[k] for k in _OPENAI_KEYS[message["role"]] if k in message}
        if message["role"] == "assistant" and train_turns and not train_turns[index]:
            kept["weight"] = 0
        written.append(kept)
    return written


def num_text_arguments(messages: Sequence[ExportMessage]) -> int:
    """Calls whose arguments are no JSON object."""
    calls = [call for m in messages for call in m.get("tool_calls") or ()]
    return sum(_object_of(call["function"]["arguments"]) is None for call in calls)


def _with_calls(message: ExportMessage, calls: list[dict[str, Any]]) -> dict[str, Any]:
    return {**message, "tool_calls": calls} if calls else dict(message)


def _object_call(call: ExportMessage) -> dict[str, Any]:
    function = call["function"]
    parsed = _object_of(function["arguments"])
    return (
        {**call, "function": {**function, "arguments": parsed}} if parsed is not None else {**call}
    )


def _object_of(arguments: str) -> dict[str, Any] | None:
    """The JSON object that the text is; None for anything that a file could not hold as one."""
    try:
        parsed = json.loads(arguments, parse_constant=_refuse)
        json.dumps(parsed, ensure_ascii=False).encode()  # a lone surrogate has no bytes
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
