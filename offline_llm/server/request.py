"""A chat request, read strictly: what a hosted server would refuse is refused with its words.

Nothing else reaches the roles. `key` is the digest of the request without its delivery options,
`talk` the digest of what stays the same during one conversation.
"""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from records.digest import digest
from records.model_names import in_digests, todays

_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_ROLES = ("system", "developer", "user", "assistant", "tool")
_DELIVERY = ("stream", "stream_options", "user", "metadata")

RequestMessage = dict[str, Any]


class RequestError(Exception):
    """A request that a server of this protocol answers with a 4xx."""

    def __init__(
        self, message: str, param: str | None, *, status: int = 400, code: str = ""
    ) -> None:
        super().__init__(message)
        self.param, self.status = param, status
        self.code = code or ("invalid_value" if param else "invalid_request")


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """One parsed request. `messages` have text content only, tools are the function objects."""

    model: str
    messages: list[RequestMessage]
    tools: list[dict[str, Any]]
    tool_choice: str
    """auto, none, required, or the name of the one tool that must be called."""
    parallel: bool
    schema_name: str | None
    json_schema: dict[str, Any] | None
    """Set when structured output is wanted; `{}` allows any object."""
    max_tokens: int | None
    stream: bool
    include_usage: bool
    key: str
    seed: int | None

    @cached_property
    def system(self) -> str:
        parts = [m["content"] for m in self.messages if m["role"] in ("system", "developer")]
        return "\n\n".join(parts)

    @cached_property
    def tools_text(self) -> str:
        """The tools as JSON."""
        return json.dumps(self.tools, ensure_ascii=False)

    @cached_property
    def talk(self) -> str:
        first = next((m["content"] for m in self.messages if m["role"] == "user"), "")
        names = [tool["name"] for tool in self.tools]
        return digest(in_digests(self.model), self.system, first, names, self.seed)


def parse_chat(body: Any) -> ChatRequest:
    """Raises RequestError naming the field, its value and what is allowed."""
    if not isinstance(body, dict):
        raise RequestError(f"the body must be a JSON object, got {type(body).__name__}", None)
    model = body.get("model")
    if not isinstance(model, str) or not model:
        _refuse("model", model, "the name of a model")
    tools = _tools(body.get("tools"))
    name, schema = _response_format(body.get("response_format"))
    options = body.get("stream_options") or {}
    parallel = body.get("parallel_tool_calls")
    if body.get("n") not in (None, 1):
        _refuse("n", body["n"], "1")
    deciding = {k: v for k, v in body.items() if k not in _DELIVERY}
    deciding["model"] = in_digests(todays(model))
    return ChatRequest(
        model=todays(model),
        messages=_messages(body.get("messages")),
        tools=tools,
        tool_choice=_tool_choice(body.get("tool_choice"), tools),
        parallel=parallel is not False,
        schema_name=name,
        json_schema=schema,
        max_tokens=_max_tokens(body),
        stream=bool(body.get("stream")),
        include_usage=bool(isinstance(options, dict) and options.get("include_usage")),
        key=digest(deciding, length=32),
        seed=body.get("seed") if isinstance(body.get("seed"), int) else None,
    )


def _refuse(param: str, value: Any, allowed: str) -> NoReturn:
    shown = repr(value)[:80]
    raise RequestError(f"{param} must be {allowed}, got {shown}", param)


def _messages(value: Any) -> list[RequestMessage]:
    if not isinstance(value, list) or not value:
        _refuse("messages", value, "a list of at least one message")
    messages: list[RequestMessage] = []
    waiting: list[str] = []  # calls of the last assistant message that have no result yet
    for index, message in enumerate(value):
        where = f"messages[{index}]"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in _ROLES:
            _refuse(f"{where}.role", role, "one of " + ", ".join(_ROLES))
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                _refuse(f"{where}.tool_call_id", message.get("tool_call_id"), "an unanswered call")
            waiting.remove(message["tool_call_id"])
        elif waiting:
            _refuse(where, role, f"a tool message that answers {waiting[0]}")
        calls = message.get("tool_calls") or []
        if calls:
            waiting = [_call_id(call, f"{where}.tool_calls") for call in calls]
        content = message.get("content")
        messages.append(
            message | {"content": _text(content, f"{where}.content", calls=bool(calls))}
        )
    if waiting:
        _refuse("messages", "no result", f"followed by a tool message that answers {waiting[0]}")
    return messages


def _call_id(call: Any, where: str) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        _refuse(where, call, "a list of function calls")
    if not isinstance(function.get("arguments"), str) or not isinstance(call.get("id"), str):
        _refuse(where, call, "calls with an id and arguments as a JSON string")
    return call["id"]


def _text(content: Any, where: str, *, calls: bool) -> str:
    if content is None and calls:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return "".join(part["text"] for part in content if isinstance(part.get("text"), str))
    _refuse(where, content, "a string or a list of text parts")


def _tools(value: Any) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        _refuse("tools", value, "a list")
    functions = []
    for index, tool in enumerate(value):
        where = f"tools[{index}]"
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or tool.get("type") != "function":
            _refuse(where, tool, 'an object {"type": "function", "function": {...}}')
        if not isinstance(function.get("name"), str) or not _NAME.match(function["name"]):
            _refuse(f"{where}.function.name", function.get("name"), f"of the form {_NAME.pattern}")
        if not isinstance(function.get("parameters", {}), dict):
            _refuse(f"{where}.function.parameters", function["parameters"], "a JSON Schema object")
        functions.append(function)
    return functions


def _tool_choice(value: Any, tools: list[dict[str, Any]]) -> str:
    if value is None:
        return "auto"
    if isinstance(value, dict):
        name = (value.get("function") or {}).get("name")
        if isinstance(name, str) and name in [tool["name"] for tool in tools]:
            return name
        _refuse("tool_choice", name, "the name of a given tool")
    if value not in ("auto", "none", "required"):
        _refuse("tool_choice", value, "auto, none, required or a function")
    if value == "required" and not tools:
        _refuse("tool_choice", value, "auto or none when no tools are given")
    return value


def _response_format(value: Any) -> tuple[str | None, dict[str, Any] | None]:
    if value is None:
        return None, None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return None, None
    if kind == "json_object":
        return None, {}
    if kind != "json_schema":
        _refuse("response_format.type", kind, "text, json_object or json_schema")
    form = value.get("json_schema")
    if not isinstance(form, dict) or not isinstance(form.get("name"), str):
        _refuse("response_format.json_schema", form, "an object with name and schema")
    if not isinstance(form.get("schema"), dict):
        _refuse("response_format.json_schema.schema", form.get("schema"), "a JSON Schema object")
    return form["name"], form["schema"]


def _max_tokens(body: dict[str, Any]) -> int | None:
    for field in ("max_completion_tokens", "max_tokens"):
        value = body.get(field)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            _refuse(field, value, "an integer of at least 1")
        return value
    return None
