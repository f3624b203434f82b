"""The request as the offline model wants it, made from the one that a client shaped for a server.

A client that may not send `response_format: json_schema` says the schema otherwise: in words at the
end of a message, or as the parameters of the one tool that must be called. The offline model finds
it in `response_format` only, and its roles know their prompts without those words.
"""

import json
import re
from typing import Any, Literal, NamedTuple

from tests.doubles.double import Double

Body = dict[str, Any]

SCHEMA_WORDS = (
    "Answer with one JSON value that fits this JSON Schema, named {name}, and with nothing else:"
)
"""The line before the fenced schema, as clients of the doubles write it."""
_BLOCK = re.compile(
    r"(?:\A|\n\n)"
    + re.escape(SCHEMA_WORDS).replace(re.escape("{name}"), r"(?P<name>[\w-]+)")
    + r"\n\n```json\n(?P<schema>.*?)\n```",
    re.DOTALL,
)
_PASSED = ("temperature", "top_p", "seed", "tools", "tool_choice", "parallel_tool_calls")
_REASONING = ("reasoning_content", "reasoning", "reasoning_details")


class Canonical(NamedTuple):
    body: Body
    asked: Literal["words", "enforced", "loose", "tool"]
    """words: no form is wanted. enforced: the server holds the answer to a schema or to JSON.
    loose: words alone ask for JSON. tool: the answer is the arguments of a call of `tool`."""
    tool: str | None = None


def canonical(double: Double, body: Body, *, limit: int | None) -> Canonical:
    """`limit`: the most tokens of what is said."""
    asked = _asked(double, body, limit)
    if not double.system_role:
        form = asked.body.get("response_format") or {}
        name = (form.get("json_schema") or {}).get("name")
        is_long = bool(asked.body.get("tools")) or name == "user_turn"
        asked.body["messages"] = _with_system(asked.body["messages"], is_long=is_long)
    return asked


def _asked(double: Double, body: Body, limit: int | None) -> Canonical:
    messages, name, schema = _without_block(body["messages"])
    made: Body = {"model": body["model"], "messages": messages}
    made |= {field: body[field] for field in _PASSED if body.get(field) is not None}
    if limit is not None:
        made["max_tokens"] = limit
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema" and double.json_schema == "yes":
        wanted = form["json_schema"]
        made["response_format"] = _wanting(wanted["name"], wanted.get("schema") or {})
        return Canonical(made, "enforced")
    is_json = form.get("type") == "json_object" and double.json_object == "yes"
    if name is not None:
        made["response_format"] = _wanting(name, schema)
        return Canonical(made, "enforced" if is_json else "loose")
    if is_json:
        made["response_format"] = {"type": "json_object"}
        return Canonical(made, "enforced")
    tools, choice = made.get("tools") or [], made.get("tool_choice")
    if len(tools) == 1 and choice not in (None, "none"):
        function = tools[0]["function"]
        made["response_format"] = _wanting(function["name"], function.get("parameters") or {})
        del made["tools"], made["tool_choice"]
        made.pop("parallel_tool_calls", None)
        return Canonical(made, "tool", function["name"])
    if choice == "any":  # Mistral's word for it
        made["tool_choice"] = "required"
    return Canonical(made, "words")


def _with_system(messages: list[Body], *, is_long: bool) -> list[Body]:
    """The system prompt that the first message begins with, as a message of its own again. It is
    one paragraph, or a long one before the user's single paragraph."""
    first, *others = messages
    text = str(first.get("content"))
    if first.get("role") != "user" or "\n\n" not in text:
        return messages
    parts = text.rsplit("\n\n", 1) if is_long else text.split("\n\n", 1)
    own = [{"role": "system", "content": parts[0]}, first | {"content": parts[1]}]
    return [*own, *others]


def _wanting(name: str, schema: Body) -> Body:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


def _without_block(messages: list[Body]) -> tuple[list[Body], str | None, Body]:
    """The messages without the words that give a schema, its name, and the schema."""
    kept = [{k: v for k, v in m.items() if k not in _REASONING} for m in messages]
    for message in reversed(kept):
        text = message.get("content")
        if isinstance(text, str) and (found := _BLOCK.search(text)):
            message["content"] = text[: found.start()] + text[found.end() :]
            return kept, found["name"], json.loads(found["schema"])
    return kept, None, {}
