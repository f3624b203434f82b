"""Tool declarations as text: OpenAI's JSON list, or TypeScript, which is much shorter."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

Style = Literal["json", "typescript"]
STYLES: tuple[Style, ...] = get_args(Style)

DEEPEST = 12
"""Schemas nested deeper are `any` from there on."""


def declare(tools: Sequence[Mapping[str, Any]], style: Style) -> str:
    """`tools` in OpenAI's form: `function` holds name, description and parameters."""
    if style == "json":
        return json.dumps(list(tools), ensure_ascii=False, separators=(",", ":"))
    functions = "\n".join(_function(tool["function"]) for tool in tools)
    return f"# Tools\n\nnamespace functions {{\n{functions}\n}}"


def _function(function: Mapping[str, Any]) -> str:
    schema = function.get("parameters") or {}
    comment = _comment(function.get("description"), "")
    argument = _type(schema, 0) if schema.get("properties") else "{}"
    return f"{comment}type {function['name']} = (_: {argument}) => any;"


def _comment(text: Any, indent: str) -> str:
    lines = str(text).splitlines() if text else []
    return "".join(f"{indent}// {line}\n" for line in lines if line.strip())


def _type(schema: Any, depth: int) -> str:
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return "any"
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if values := schema.get("enum"):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    for union in ("anyOf", "oneOf"):
        if options := schema.get(union):
            return " | ".join(dict.fromkeys(_type(option, depth + 1) for option in options))
    kind = schema.get("type")
    if isinstance(kind, list):
        options = (_type({**schema, "type": one}, depth + 1) for one in kind)
        return " | ".join(dict.fromkeys(options))
    match kind:
        case "string" | "boolean" | "null":
            return kind
        case "integer" | "number":
            return "number"
        case "array":
            inner = _type(schema.get("items"), depth + 1)
            return f"Array<{inner}>" if " " in inner else f"{inner}[]"
        case "object":
            return _object(schema, depth)
        case _:
            return "any"


def _object(schema: Mapping[str, Any], depth: int) -> str:
    properties = schema.get("properties") or {}
    if not properties:
        return "object"
    required = set(schema.get("required") or ())
    indent = "  " * (depth + 1)
    lines = [
        f"{_comment(_about(field), indent)}{indent}{_key(name)}"
        f"{'' if name in required else '?'}: {_type(field, depth + 1)},\n"
        for name, field in properties.items()
    ]
    return "{\n" + "".join(lines) + "  " * depth + "}"


def _about(field: Any) -> Any:
    return field.get("description") if isinstance(field, Mapping) else None


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name, ensure_ascii=False)
