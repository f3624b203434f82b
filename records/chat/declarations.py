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
    argument = _Types(schema).of(schema, 0) if schema.get("properties") else "{}"
    return f"{comment}type {function['name']} = (_: {argument}) => any;"


def _comment(text: Any, indent: str) -> str:
    lines = str(text).splitlines() if text else []
    return "".join(f"{indent}// {line}\n" for line in lines if line.strip())


class _Types:
    """TypeScript's words for the parts of one schema, whose `$ref`s lead to its own places."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._open: list[str] = []
        """References that are being followed: one that leads to itself is `any`."""

    def of(self, schema: Any, depth: int) -> str:
        if not isinstance(schema, Mapping) or depth > DEEPEST:
            return "any"
        if isinstance(reference := schema.get("$ref"), str):
            return self._referred(reference, depth)
        if "const" in schema:
            return json.dumps(schema["const"], ensure_ascii=False)
        if values := schema.get("enum"):
            return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
        for union in ("anyOf", "oneOf"):
            if options := schema.get(union):
                return " | ".join(dict.fromkeys(self.of(option, depth + 1) for option in options))
        if parts := schema.get("allOf"):
            return " & ".join(dict.fromkeys(self.of(part, depth + 1) for part in parts))
        return self._plain(schema, depth)

    def _plain(self, schema: Mapping[str, Any], depth: int) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            options = (self.of({**schema, "type": one}, depth + 1) for one in kind)
            return " | ".join(dict.fromkeys(options))
        match kind:
            case "string" | "boolean" | "null":
                return kind
            case "integer" | "number":
                return "number"
            case "array":
                inner = self.of(schema.get("items"), depth + 1)
                return f"Array<{inner}>" if " " in inner else f"{inner}[]"
            case "object":
                return self._object(schema, depth)
            case _:
                return "any"

    def _referred(self, reference: str, depth: int) -> str:
        if not reference.startswith("#") or reference in self._open:
            return "any"
        found: Any = self._root
        for part in reference.removeprefix("#").split("/")[1:]:
            found = found.get(part) if isinstance(found, Mapping) else None
        self._open.append(reference)
        made = self.of(found, depth)
        self._open.pop()
        return made

    def _object(self, schema: Mapping[str, Any], depth: int) -> str:
        properties = schema.get("properties") or {}
        if not properties:
            return "object"
        required = set(schema.get("required") or ())
        indent = "  " * (depth + 1)
        lines = [
            f"{_comment(_about(field), indent)}{indent}{_key(name)}"
            f"{'' if name in required else '?'}: {self.of(field, depth + 1)},\n"
            for name, field in properties.items()
        ]
        return "{\n" + "".join(lines) + "  " * depth + "}"


def _about(field: Any) -> Any:
    return field.get("description") if isinstance(field, Mapping) else None


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name, ensure_ascii=False)
