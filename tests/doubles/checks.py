"""What a double refuses of a request, in the order in which servers look at it."""

import re
from collections.abc import Iterator
from typing import Any

from aiohttp import web

from records.sizes import count_tokens
from tests.doubles.double import FLAGGED, Double
from tests.doubles.errors import RefusedError

Body = dict[str, Any]


def check(double: Double, body: Body) -> None:
    """Raises RefusedError."""
    _fields(double, body)
    _modes(double, body)
    _messages(double, body["messages"])
    _sizes(double, body)
    if "moderation" in double.words and any(FLAGGED in text for text in _texts(body)):
        raise RefusedError("moderation", value=FLAGGED)


def authorize(double: Double, request: web.Request) -> None:
    if double.api_key is not None:
        headers = request.headers
        sent = headers.get(double.key_header, "")
        wanted = double.api_key if double.key_header == "api-key" else f"Bearer {double.api_key}"
        # Azure looks at a bearer token first, and no key beside it helps one that is wrong
        if sent != wanted or (double.key_header == "api-key" and "authorization" in headers):
            raise RefusedError("auth")
    for name, value in double.query.items():
        if request.query.get(name) != value:
            raise RefusedError("query", field=name, value=request.query.get(name), limit=value)


def token_limit(body: Body) -> int | None:
    """The most tokens of the answer that the request allows."""
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    return limit if isinstance(limit, int) else None


def prompt_tokens(body: Body) -> int:
    """As a server without the model's tokenizer would count them."""
    return sum(map(count_tokens, _texts(body))) + count_tokens(str(body.get("tools") or ""))


def _fields(double: Double, body: Body) -> None:
    for field, value in body.items():
        if field in double.refused_fields:
            raise RefusedError(double.refused_fields[field], field=field, value=value)
        if double.known_fields is not None and field not in double.known_fields:
            raise RefusedError("unknown_field", field=field, value=value)
    for field, allowed in double.fixed_values.items():
        if body.get(field, allowed) != allowed:
            raise RefusedError("unsupported_value", field=field, value=body[field], limit=allowed)
    if body.get("tools") == []:
        raise RefusedError("body", value="tools must not be an empty list")


def _modes(double: Double, body: Body) -> None:
    form = body.get("response_format") or {}
    kind = form.get("type", "text")
    if kind == "json_schema" and double.json_schema == "refused":
        raise RefusedError("mode", value=kind)
    if kind == "json_object":
        if double.json_object == "refused":
            raise RefusedError("mode", value=kind)
        if double.needs_word_json and not any("json" in text.lower() for text in _texts(body)):
            raise RefusedError("word_json")
    wanted = form.get("json_schema") or {}
    if double.strict_schemas and kind == "json_schema" and wanted.get("strict"):
        for where, wrong in _open_objects(wanted.get("schema") or {}, ()):
            raise RefusedError("schema", field=wanted.get("name"), value=where, schema=wrong)
    choice = body.get("tool_choice")
    if choice not in (None, "auto", "none") and not double.forced_choice:
        raise RefusedError("choice", value=choice)


def _open_objects(schema: Any, where: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Objects of a schema that a strict one may not have, with what is wrong."""
    if isinstance(schema, list):
        for item in schema:
            yield from _open_objects(item, where)
    if not isinstance(schema, dict):
        return
    members = schema.get("properties")
    if schema.get("type") == "object" or isinstance(members, dict):
        names = set(members or {})
        if schema.get("additionalProperties") is not False:
            yield str(where), "'additionalProperties' is required to be supplied and to be false."
        elif names - set(schema.get("required") or []):
            yield (
                str(where),
                "'required' is required to be supplied and to be an array including every key in"
                " properties.",
            )
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            for name, member in value.items():
                yield from _open_objects(member, (*where, "properties", name))
        elif key in ("items", "anyOf", "$defs"):
            inner = list(value.values()) if key == "$defs" else value
            yield from _open_objects(inner, (*where, key))


def _messages(double: Double, messages: list[Body]) -> None:
    before = ""
    for index, message in enumerate(messages):
        role = str(message.get("role"))
        if double.message_fields is not None:
            for field in sorted(message.keys() - double.message_fields):
                path = f"messages.{index}.{role}.{field}"
                raise RefusedError("message_field", field=field, value=message[field], role=path)
        if role in ("system", "developer") and not double.system_role:
            raise RefusedError("system")
        if role == "user" and before == "tool" and not double.user_after_tool:
            raise RefusedError("order", role=role, value=before)
        before = role
        said = message.get("content") or message.get("tool_calls")
        if not double.empty_messages and not said:
            raise RefusedError("empty")
        for call in message.get("tool_calls") or []:
            if double.call_id and not re.fullmatch(double.call_id, str(call.get("id"))):
                raise RefusedError("call_id", value=call.get("id"))
        is_bare = message.get("tool_calls") and not message.get("reasoning_content")
        if double.reasoning_back and is_bare:
            raise RefusedError("reasoning_back")
    if double.alternation:
        _alternation(messages)


def _alternation(messages: list[Body]) -> None:
    """A first system message, then user and assistant in turn; results and the calls that they
    answer do not count."""
    turns = messages[messages[0].get("role") in ("system", "developer") :]
    plain = [m for m in turns if m.get("role") != "tool" and not m.get("tool_calls")]
    for index, message in enumerate(plain):
        if (message.get("role") == "user") != (index % 2 == 0):
            raise RefusedError("alternation")


def _sizes(double: Double, body: Body) -> None:
    limit, field = token_limit(body), "max_tokens"
    if limit and double.max_output_tokens and limit > double.max_output_tokens:
        raise RefusedError("max_tokens", field=field, value=limit, limit=double.max_output_tokens)
    if double.context_tokens and not double.cuts_prompts:
        tokens = prompt_tokens(body)
        if tokens > double.context_tokens:
            raise RefusedError("context", limit=double.context_tokens, tokens=tokens)


def _texts(body: Body) -> Iterator[str]:
    for message in body["messages"]:
        content = message.get("content")
        for part in content if isinstance(content, list) else [{"text": content}]:
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                yield part["text"]
