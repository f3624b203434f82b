"""Rows of anybody as conversations in OpenAI's form, which is what the chat template takes.

Known are the columns `messages` (role, content), `conversations` (from, value, as ShareGPT has
them, or role, content) and `prompt` with `completion`, each as structures or as JSON text; beside
them `tools`, `system` and `train_turns`. An assistant's message may have `reasoning_content`, or
`reasoning` as some servers call it, or `<think>...</think>` before its content, where other servers
leave it. What is not understood is a ValueError that says what was found and what is allowed: a
conversation is never guessed at, nor learnt in part.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from records.chat.k2 import ROLES, THINK, THINK_END, text_of


class TrainingConversation(NamedTuple):
    messages: Sequence[Mapping[str, Any]]
    """Arguments of calls are JSON text; results name the call that they answer."""
    tools: Sequence[Mapping[str, Any]]
    train_turns: Sequence[bool] | None
    """For each message whether it may be learnt; None: every one."""


_SHARE_GPT = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "system": "system",
    "observation": "tool",
    "tool": "tool",
    "function_call": "assistant",
}


def conversation_of(row: Mapping[str, Any]) -> TrainingConversation | None:
    """None for a row without any of the columns. ValueError for one that is not as they should."""
    flags = None if row.get("train_turns") is None else _list_of(row, "train_turns")
    if row.get("messages") is not None:
        given = _list_of(row, "messages")
    elif row.get("conversations") is not None:
        given = _list_of(row, "conversations")
    elif row.get("prompt") is not None and row.get("completion") is not None:
        asked, said = _turns(row["prompt"], "user"), _turns(row["completion"], "assistant")
        given, flags = [*asked, *said], [False] * len(asked) + [True] * len(said)
    else:
        return None
    messages = [_message(message) for message in given]
    if flags is not None and len(flags) != len(messages):
        raise ValueError(f"train_turns has {len(flags)} flags for {len(messages)} messages")
    if (system := row.get("system")) and not any(m["role"] == "system" for m in messages):
        messages.insert(0, {"role": "system", "content": str(system)})
        flags = None if flags is None else [False, *flags]
    _name_calls(messages)
    tools = _list_of(row, "tools") if row.get("tools") else []
    return TrainingConversation(messages, [_tool(tool) for tool in tools], flags)


def _list_of(row: Mapping[str, Any], column: str) -> list[Any]:
    return _list(_parsed(row[column], column), column)


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} is {_shown(value)}, not a list")
    return value


def _parsed(value: Any, what: str) -> Any:
    """Structures are stored as text by some."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError(f"{what} is text that is no JSON: {error}") from error


def _turns(value: Any, role: str) -> list[Any]:
    """Messages, or one of `role`: an answer that is JSON, or looks like it, is text all the same,
    unless it is a list of messages."""
    if not isinstance(value, str):
        return _list(value, "a prompt or completion")
    try:
        made = json.loads(value)
    except ValueError:
        made = None
    if isinstance(made, list) and made and all(_is_message(one) for one in made):
        return made
    return [{"role": role, "content": value}]


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and "role" in value


def _message(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ValueError(f"a message is {_shown(given)}, not an object with role and content")
    message = {key: value for key, value in given.items() if value is not None}
    if "role" not in message and "from" in message:
        message = _of_share_gpt(message)
    if (role := message.get("role")) not in ROLES:
        raise ValueError(f"a message has role {role!r}; allowed: {', '.join(ROLES)}")
    if not isinstance(message.setdefault("content", ""), str | list):
        raise ValueError(f"a message's content is {_shown(message['content'])}, not text")
    if not isinstance(message.get("name", ""), str):
        raise ValueError(f"a message's name is {_shown(message['name'])}, not text")
    if role == "assistant":
        _name_reasoning(message)
    if calls := message.pop("tool_calls", None):
        calls = _list(_parsed(calls, "tool_calls"), "tool_calls")
        message["tool_calls"] = [_call(call) for call in calls]
    return message


def _name_reasoning(message: dict[str, Any]) -> None:
    """Reasoning under one name, where there is some."""
    found = [message.pop(name, None) for name in ("reasoning_content", "reasoning")]
    for reasoning in found:
        if reasoning is not None and not isinstance(reasoning, str):
            raise ValueError(f"a message's reasoning is {_shown(reasoning)}, not text")
    if not (reasoning := found[0] or found[1]):
        reasoning = _taken_from_content(message)
    if reasoning:
        message["reasoning_content"] = reasoning


def _taken_from_content(message: dict[str, Any]) -> str:
    """The reasoning that the content begins with, which it then has no more; empty for none. One
    without an end was cut off, and stays where it is."""
    text = text_of(message).lstrip()
    thought, end, content = text.removeprefix(THINK).partition(THINK_END)
    if not (text.startswith(THINK) and end):
        return ""
    message["content"] = content.lstrip()
    return thought.strip()


def _of_share_gpt(message: Mapping[str, Any]) -> dict[str, Any]:
    sender, value = message["from"], message.get("value", "")
    if sender not in _SHARE_GPT:
        raise ValueError(f"a message is from {sender!r}; allowed: {', '.join(_SHARE_GPT)}")
    if sender != "function_call":
        return {"role": _SHARE_GPT[sender], "content": value}
    calls = _parsed(value, "a function_call")
    return {"role": "assistant", "tool_calls": calls if isinstance(calls, list) else [calls]}


def _call(given: Any) -> dict[str, Any]:
    """OpenAI's {id, function: {name, arguments}}, or name and arguments alone."""
    function = given.get("function", given) if isinstance(given, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ValueError(f"a tool call is {_shown(given)}; it needs name and arguments")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    call = {"type": "function", "function": {"name": function["name"], "arguments": arguments}}
    return {"id": given["id"], **call} if given.get("id") else call


def _tool(given: Any) -> dict[str, Any]:
    """OpenAI's {type, function: {name, description, parameters}}, or the function alone."""
    function = given.get("function", given) if isinstance(given, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ValueError(f"a tool is {_shown(given)}; it needs a name, and parameters as a schema")
    schema = function.get("parameters") or {}
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties") or {}, Mapping):
        raise ValueError(f"parameters of tool {function['name']!r} are no schema of an object")
    return {"type": "function", "function": dict(function)} if given is function else dict(given)


def _name_calls(messages: Iterable[dict[str, Any]]) -> None:
    """Ids for calls without one, and for results without one that of the oldest call of their name
    that is unanswered; for results without a name that of their call."""
    count = 0
    waiting: list[tuple[str, str]] = []  # (id, name)
    for message in messages:
        for call in message.get("tool_calls", ()):
            call.setdefault("id", f"call-{count}")
            waiting.append((call["id"], call["function"]["name"]))
            count += 1
        if message["role"] == "tool":
            own, name = message.get("tool_call_id"), message.get("name") or None
            fits = [w for w in waiting if (w[0] == own if own else name in (None, w[1]))]
            if fits:
                waiting.remove(fits[0])
                message["tool_call_id"] = fits[0][0]
                message["name"] = name or fits[0][1]


def _shown(value: Any) -> str:
    return f"{str(value)[:60]!r} ({type(value).__name__})"
