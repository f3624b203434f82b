"""A request in the form that one endpoint takes: what its profile says, and nothing else, changes.

The form of an answer is asked for in the surest way that the endpoint has. Where it has none, the
JSON Schema stands in words at the end of the last message.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from records.digest import digest
from synth.llm.settings.profile import USUAL, Profile
from synth.llm.wire.request import AnswerForm, Message

BYTES_PER_TOKEN = 3
"""To tell what room a context leaves for an answer: rather too many tokens than too few."""

LEAST_ROOM = 64
"""Tokens of an answer that are asked for, however full the context is: the server may say no."""

_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_STRICT_KEYWORDS = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
        *("description", "title", "anyOf", "$ref", "$defs", "minItems", "maxItems", "minimum"),
        *("maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format"),
    }
)
"""What servers that enforce a schema strictly take in one."""


def is_plain(profile: Profile) -> bool:
    """Whether requests travel as they are, so that their bytes need not be made again."""
    asked = {name: getattr(profile, name) for name in type(profile).model_fields}
    ignored = ("context_tokens", "cached_usage", "rate_headers", "stream_usage", "tool_choice")
    return all(
        value is None or value == getattr(USUAL, name)
        for name, value in asked.items()
        if name not in ignored
    ) and (profile.context_tokens is None)


def shaped(
    body: Mapping[str, Any],
    profile: Profile,
    *,
    size: int = 0,
    messages: Sequence[Message] | None = None,
) -> dict[str, Any]:
    """The body to send: `body` is a request as `chat_request` makes it, and stays as it is. `size`
    is its length in bytes, where the context's length counts; `messages` are those with the
    reasoning that the body leaves out."""
    sent = dict(body)
    given = body["messages"] if messages is None or not profile.reasoning_back else messages
    sent["messages"] = _messages(given, profile)
    if profile.seed is False:
        sent.pop("seed", None)
    if profile.sampling is False:
        sent.pop("temperature", None)
        sent.pop("top_p", None)
    if form := form_of(body):
        _ask_for(sent, form, profile)
    elif sent.get("tools") and profile.parallel_tool_calls is not None:
        sent["parallel_tool_calls"] = profile.parallel_tool_calls
    if "reasoning_effort" in body:
        _set_effort(sent, body["reasoning_effort"], profile)
    if "max_tokens" in sent:
        most = most_tokens(sent.pop("max_tokens"), profile, size)
        sent[profile.max_tokens_field or "max_tokens"] = most
    if profile.stream:
        sent["stream"] = True
        if profile.stream_usage is not False:
            sent["stream_options"] = {"include_usage": True}
    return sent


def form_of(body: Mapping[str, Any]) -> AnswerForm | None:
    """The form that a request, not yet shaped, asks for."""
    asked = body.get("response_format")
    if not isinstance(asked, dict) or asked.get("type") != "json_schema":
        return None
    return asked["json_schema"]["name"], asked["json_schema"]["schema"]


def words_for(form: AnswerForm) -> str:
    """The form in words, for endpoints that are not given the schema itself."""
    name, schema = form
    wanted = json.dumps(schema, ensure_ascii=False, indent=1)
    return (
        f"Answer with one JSON value that fits this JSON Schema, named {name}, and with nothing"
        f" else:\n\n```json\n{wanted}\n```"
    )


def is_strict(schema: Any) -> bool:
    """Whether a server that enforces schemas strictly takes this one, alone or within an object:
    every property of every object is required, and no other is allowed."""
    if not isinstance(schema, dict):
        return isinstance(schema, bool) is False
    if schema.keys() - _STRICT_KEYWORDS:
        return False
    if "properties" in schema or schema.get("type") == "object":
        properties = schema.get("properties")
        if not properties or schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", ())) != properties.keys():
            return False
    inner = [
        *schema.get("properties", {}).values(),
        *schema.get("$defs", {}).values(),
        *schema.get("anyOf", ()),
    ]
    if "items" in schema:
        inner.append(schema["items"])
    return all(map(is_strict, inner))


def _ask_for(sent: dict[str, Any], form: AnswerForm, profile: Profile) -> None:
    name, schema = form
    is_object = schema.get("type") == "object"
    match profile.structured:
        case "json_schema_strict" if is_object and is_strict(schema):
            wanted = {"name": name, "schema": schema, "strict": True}
            sent["response_format"] = {"type": "json_schema", "json_schema": wanted}
        case None | "json_schema" | "json_schema_strict":
            pass  # as it stands in the request
        case "json_object" if is_object:
            sent["response_format"] = {"type": "json_object"}
            sent["messages"] = _with_words(sent["messages"], words_for(form), profile)
        case "tool" if is_object:
            del sent["response_format"]
            sent["tools"] = [_answer_tool(name, schema)]
            named = {"type": "function", "function": {"name": name}}
            choice = {"required": "required", "auto": "auto"}
            sent["tool_choice"] = choice.get(profile.tool_choice or "named", named)
            if profile.tool_choice == "auto":
                said = f"Give your answer as one call of the tool `{name}`."
                sent["messages"] = _with_words(sent["messages"], said, profile)
        case _:
            del sent["response_format"]
            sent["messages"] = _with_words(sent["messages"], words_for(form), profile)


def _answer_tool(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "description": "Gives the answer.", "parameters": schema}
    return {"type": "function", "function": function}


def _with_words(messages: Sequence[Message], words: str, profile: Profile) -> list[Message]:
    *before, last = messages
    if last["role"] == "user" and isinstance(last.get("content"), str):
        return [*before, last | {"content": f"{last['content']}\n\n{words}"}]
    return [*messages, {"role": "user", "content": words}]


def _set_effort(sent: dict[str, Any], effort: str, profile: Profile) -> None:
    del sent["reasoning_effort"]
    thinks = effort not in ("none", "minimal")
    match profile.effort_field:
        case None | "reasoning_effort":
            sent["reasoning_effort"] = effort
        case "reasoning.effort":
            sent["reasoning"] = {"effort": effort}
        case "enable_thinking":
            given = sent.get("chat_template_kwargs", {})
            sent["chat_template_kwargs"] = given | {"enable_thinking": thinks}
        case "thinking":
            sent["thinking"] = {"type": "enabled" if thinks else "disabled"}
        case "none":
            pass


def most_tokens(wanted: int, profile: Profile, size: int) -> int:
    """Of an answer, as the endpoint lets one ask for it: `wanted`, or less."""
    if profile.max_output_tokens is not None:
        wanted = min(wanted, profile.max_output_tokens)
    if profile.context_tokens is not None:
        wanted = min(wanted, max(LEAST_ROOM, profile.context_tokens - size // BYTES_PER_TOKEN))
    return wanted


def _messages(messages: Sequence[Message], profile: Profile) -> Sequence[Message]:
    changes: list[Callable[[Sequence[Message]], list[Message]]] = []
    if profile.reasoning_field in ("reasoning", "think", "none"):
        changes.append(lambda given: _reasoning_as(given, profile.reasoning_field or ""))
    if profile.system_role in ("developer", "user"):
        changes.append(lambda given: _system_as(given, profile.system_role or ""))
    if profile.alternation:
        changes.append(_alternating)
    if profile.call_arguments == "json":
        changes.append(_with_json_arguments)
    if profile.call_ids == "nine":
        changes.append(_with_short_ids)
    for change in changes:
        messages = change(messages)
    return messages


def _reasoning_as(messages: Sequence[Message], field: str) -> list[Message]:
    """Earlier reasoning where the server writes it itself; nowhere if it has no place for it."""
    made = []
    for message in messages:
        if reasoning := message.get("reasoning_content"):
            message = {k: v for k, v in message.items() if k != "reasoning_content"}
            if field == "reasoning":
                message["reasoning"] = reasoning
            elif field == "think":
                said = message.get("content") or ""
                message["content"] = f"<think>\n{reasoning}\n</think>\n\n{said}"
        made.append(message)
    return made


def _system_as(messages: Sequence[Message], role: str) -> list[Message]:
    if role == "developer":
        return [m | {"role": "developer"} if m["role"] == "system" else m for m in messages]
    said = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
    rest = [m for m in messages if m["role"] != "system"]
    if not said:
        return rest
    first = rest[0] if rest else {}
    if first.get("role") != "user" or not isinstance(first.get("content"), str):
        return [{"role": "user", "content": said}, *rest]
    return [first | {"content": f"{said}\n\n{first['content']}"}, *rest[1:]]


def _alternating(messages: Sequence[Message]) -> list[Message]:
    """Neighbours of one role as one message; what begins with the assistant gets a user before."""
    made: list[Message] = []
    for message in messages:
        last = made[-1] if made else None
        plain = last is not None and _is_plain_text(last) and _is_plain_text(message)
        if last is not None and plain and last["role"] == message["role"]:
            made[-1] = last | {"content": f"{last['content']}\n\n{message['content']}"}
        else:
            made.append(message)
    spoken = next((m for m in made if m["role"] not in ("system", "developer")), None)
    if spoken is not None and spoken["role"] == "assistant":
        made.insert(made.index(spoken), {"role": "user", "content": "(begins)"})
    return made


def _with_short_ids(messages: Sequence[Message]) -> list[Message]:
    """Calls and their results under ids of nine letters and digits; equal ids stay equal."""
    made = []
    for message in messages:
        if calls := message.get("tool_calls"):
            calls = [call | {"id": _nine(call["id"])} for call in calls]
            message = message | {"tool_calls": calls}
        if "tool_call_id" in message:
            message = message | {"tool_call_id": _nine(message["tool_call_id"])}
        made.append(message)
    return made


def _with_json_arguments(messages: Sequence[Message]) -> list[Message]:
    return [
        message | {"tool_calls": [_with_json_argument(call) for call in calls]}
        if (calls := message.get("tool_calls"))
        else message
        for message in messages
    ]


def _with_json_argument(call: dict[str, Any]) -> dict[str, Any]:
    if is_json_object(call["function"]["arguments"]):
        return call
    return call | {"function": call["function"] | {"arguments": "{}"}}


def is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _nine(call_id: str) -> str:
    return digest("call", call_id)[:9]


def _is_plain_text(message: Message) -> bool:
    return isinstance(message.get("content"), str) and not (
        message.get("tool_calls") or message["role"] == "tool"
    )
