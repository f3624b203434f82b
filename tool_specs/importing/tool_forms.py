"""Tools in the forms of each vendor as MCP lists them: name, description, inputSchema.

Read are OpenAI's forms (chat, responses, the old functions), Anthropic's, Gemini's function
declarations, Bedrock's Converse, and LangChain's: what `convert_to_openai_tool` gives, dumps of
tools with their `args_schema` or `args`, and JSON Schemas of pydantic models, whose title is the
name. Lists stand by themselves or in the bodies of requests, those of batches too.
"""

from collections.abc import Mapping
from typing import Any

_LISTS = ("tools", "functions")
_DECLARED = ("functionDeclarations", "function_declarations")
"""Keys of lists of tools; of those of one tool of Gemini."""

_AROUND = ("result", "toolConfig", "tool_config", "body", "params", "request", "config", "kwargs")
"""Keys of what holds such a list: answers, Bedrock's and Gemini's configurations, lines of batches,
and what LangChain binds to a model."""

_SCHEMAS = (
    "parameters",
    "input_schema",
    "parametersJsonSchema",
    "parameters_json_schema",
    "args_schema",
)
"""Keys of a tool's schema that are not MCP's."""

_GEMINI_TYPES = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})

_GEMINI_KEYS = {
    "any_of": "anyOf",
    "additional_properties": "additionalProperties",
    "max_items": "maxItems",
    "min_items": "minItems",
    "max_length": "maxLength",
    "min_length": "minLength",
    "max_properties": "maxProperties",
    "min_properties": "minProperties",
    "property_ordering": "propertyOrdering",
}
"""Of dumps of Google's Python library."""

_COUNTS = frozenset(
    {"maxItems", "minItems", "maxLength", "minLength", "maxProperties", "minProperties"}
)
"""Keywords whose 64-bit numbers Google's JSON writes as text."""


def tools_in(entry: Any) -> list[Any] | None:
    """The tools of an answer, a request to a model or a line about a server; None if it holds no
    list of them."""
    if not isinstance(entry, Mapping):
        return None
    if (declared := _declared(entry)) is not None:
        return declared
    for key in _LISTS:
        if isinstance(entry.get(key), list):
            return [one for tool in entry[key] for one in _declared(tool) or [tool]]
    for key in _AROUND:
        if (found := tools_in(entry.get(key))) is not None:
            return found
    return None


def _declared(tool: Any) -> list[Any] | None:
    """The functions of a tool of Gemini, as those of OpenAI; None for any other tool."""
    for key in _DECLARED:
        if isinstance(tool, Mapping) and isinstance(tool.get(key), list):
            return [{"type": "function", "function": one} for one in tool[key]]
    return None


def as_mcp(tool: Any) -> Any:
    """The tool in MCP's form; itself where it is none that is known."""
    if not isinstance(tool, Mapping):
        return tool
    inner = next(
        (tool[key] for key in ("function", "toolSpec") if isinstance(tool.get(key), Mapping)), tool
    )
    if "inputSchema" in inner:
        return _of_bedrock(inner)
    for key in _SCHEMAS:
        if inner.get(key) is not None:
            return _without(inner, *_SCHEMAS) | {"inputSchema": _json_schema(inner[key])}
    if tool.get("type") == "function":  # without parameters it takes none
        return _without(inner, *_SCHEMAS) | {"inputSchema": _object({})}
    if isinstance(inner.get("name"), str) and isinstance(inner.get("args"), Mapping):
        return _without(inner, "args") | {"inputSchema": _object(inner["args"])}
    return _of_model(inner)


def _of_bedrock(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = tool["inputSchema"]
    if isinstance(schema, Mapping) and schema.keys() == {"json"}:
        return {**tool, "inputSchema": schema["json"]}
    return tool


def _of_model(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A JSON Schema of a pydantic model, of which LangChain makes a tool of the model's name."""
    is_model = isinstance(schema.get("title"), str) and isinstance(
        schema.get("properties"), Mapping
    )
    if not is_model or "name" in schema:
        return schema
    words = {"name": schema["title"], "description": schema.get("description")}
    return words | {"inputSchema": _without(schema, "title", "description")}


def _object(members: Mapping[str, Any]) -> dict[str, Any]:
    """Members of a pydantic model: required are those without a default."""
    required = [
        name for name, one in members.items() if isinstance(one, Mapping) and "default" not in one
    ]
    plain = {"type": "object", "properties": dict(members)}
    return plain | {"required": required} if required else plain


def _without(node: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in keys}


def _json_schema(schema: Any) -> Any:
    """Gemini's schemas as JSON Schemas, others as they are."""
    is_gemini = isinstance(schema, Mapping) and _is_gemini_type(schema.get("type"))
    return _of_gemini(schema) if is_gemini else schema


def _is_gemini_type(kind: Any) -> bool:
    return isinstance(kind, str) and kind in _GEMINI_TYPES


def _of_gemini(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    found: dict[Any, Any] = {}
    for written, value in schema.items():
        key = _GEMINI_KEYS.get(written, written)
        if value is None:
            continue  # a field that a dump names and the author did not set
        if key == "type":
            if value != "TYPE_UNSPECIFIED":
                found[key] = value.lower() if _is_gemini_type(value) else value
        elif key == "properties" and isinstance(value, Mapping):
            found[key] = {name: _of_gemini(one) for name, one in value.items()}
        elif key == "anyOf" and isinstance(value, list):
            found[key] = [_of_gemini(one) for one in value]
        elif key in ("items", "additionalProperties"):
            found[key] = _of_gemini(value)
        elif key in _COUNTS and isinstance(value, str) and value.isdecimal():
            found[key] = int(value)
        else:
            found[key] = value
    return _nullable(_ordered(found))


def _ordered(schema: dict[str, Any]) -> dict[str, Any]:
    """Members in the order that the author asks for."""
    order, members = schema.pop("propertyOrdering", None), schema.get("properties")
    if isinstance(order, list) and isinstance(members, dict):
        first = [name for name in order if isinstance(name, str) and name in members]
        schema["properties"] = {name: members[name] for name in dict.fromkeys([*first, *members])}
    return schema


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Null beside the type, and among the values of an enum."""
    if schema.get("nullable") is True and isinstance(schema.get("enum"), list):
        schema["enum"] = [*schema["enum"], None]
    return schema
