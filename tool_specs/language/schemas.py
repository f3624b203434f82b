"""Compiled JSON Schema validators for schemas and values that nobody here wrote.

jsonschema-rs takes microseconds where `jsonschema` takes hundreds. Nothing is fetched, patterns
match in linear time, and a schema that could cost more than its size (recursion, references that
multiply) is refused before it is compiled.
"""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from tool_specs.language.values import EvaluationError, in_range, show_value

MAX_SCHEMA_DEPTH = 40
MAX_SCHEMA_NODES = 10_000
"""Objects, arrays and scalars of a schema, with every local reference counted as often as it is
used: what validation may walk. The largest of 6,044 real MCP tools has 3,631."""

_EXPLAINED = 500_000
"""Schema nodes times value nodes up to which problems are put into words: every failed branch of
an anyOf is an error object, so that the words can cost memory without end."""

_PATTERNS = jsonschema_rs.RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20)
_SHOWN = 3
"""Problems that one message names: enough to repair a call, short enough to read."""


_SHOWN_CHARS = 160
"""Of a value or a description inside a message."""


class SchemaError(ValueError):
    """A schema that is refused: invalid, too large, recursive, or pointing outside itself."""


class Validator:
    """Validates values against one schema (draft 2020-12). Never fetches, never backtracks."""

    def __init__(self, schema: dict[str, Any] | bool) -> None:
        """Raises SchemaError."""
        self.size = _size(schema)
        self.schema = schema
        try:
            self._compiled = jsonschema_rs.Draft202012Validator(
                schema, pattern_options=_PATTERNS, offline=True, validate_formats=False
            )
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise SchemaError(str(error).split("\n", 1)[0]) from None

    def is_valid(self, value: Any) -> bool:
        """For a JSON value that is bounded already (`fields.clean_json`)."""
        return self._compiled.is_valid(value)

    def problems(self, value: Any) -> list[str]:
        """At most three problems in words: where, what, and what is allowed. Empty if valid."""
        if self._compiled.is_valid(value):
            return []
        if not _is_small(value, _EXPLAINED // self.size):
            return ["arguments: too large to say what is wrong; send less"]
        found: list[str] = []
        for error in self._compiled.iter_errors(value):
            if len(found) == _SHOWN:
                break
            found.append(_words(error, self.schema))
        return found


def _words(error: jsonschema_rs.ValidationError, schema: dict[str, Any] | bool) -> str:
    where = ".".join(str(step) for step in error.instance_path)
    parent = _parent(schema, error.schema_path)
    kind = type(error.kind).__name__
    if kind == "Required":
        name = error.kind.as_dict()["property"]
        return f"{_join(where, name)} is missing{_expected(parent, name)}"
    if kind == "AdditionalProperties":
        names = ", ".join(error.kind.as_dict()["unexpected"])
        allowed = ", ".join(parent.get("properties", {})) or "none"
        return f"{_join(where, names)}: no such parameter; allowed: {allowed}"
    words = parent.get("description")
    return f"{where or 'arguments'}: {_cut(error.message)}" + (f" ({_cut(words)})" if words else "")


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _parent(schema: Any, path: list[str | int]) -> dict[str, Any]:
    """The subschema whose keyword failed; empty where the path leaves the schema by a $ref."""
    for step in path[:-1]:
        if isinstance(schema, list) and isinstance(step, int) and step < len(schema):
            schema = schema[step]
        else:
            schema = schema.get(step) if isinstance(schema, dict) else None
    return schema if isinstance(schema, dict) else {}


def _expected(parent: dict[str, Any], name: str) -> str:
    member = parent.get("properties", {}).get(name)
    if not isinstance(member, dict):
        return ""
    kind = " or ".join(map(str, member.get("enum", []))) or member.get("type")
    words = [_cut(part) for part in (kind, member.get("description")) if part]
    return f" ({': '.join(words)})" if words else ""


def _cut(value: Any) -> str:
    text = str(value).rstrip(".")
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."


def _is_small(value: Any, limit: int) -> bool:
    """Whether a bounded JSON value has at most `limit` nodes."""
    nodes, stack = 0, [value]
    while stack and nodes <= limit:
        node = stack.pop()
        nodes += 1
        if isinstance(node, dict | list):
            stack.extend(node.values() if isinstance(node, dict) else node)
    return nodes <= limit


def _size(schema: Any) -> int:
    """Nodes with references expanded; each target is counted once, so this is linear itself.

    Raises SchemaError for what is too deep, too large, recursive or points elsewhere.
    """
    if not isinstance(schema, dict | bool):
        raise SchemaError(f"a schema is an object or a boolean, got {show_value(schema)}")
    _refuse_deep(schema)
    return _expanded(schema, schema, {}, frozenset())


def _refuse_deep(schema: Any) -> None:
    """Without recursion of its own, so that depth cannot exhaust the stack."""
    layer, depth, nodes = [schema], 0, 0
    while layer:
        nodes += len(layer)
        if depth > MAX_SCHEMA_DEPTH or nodes > MAX_SCHEMA_NODES:
            raise SchemaError(
                f"over {MAX_SCHEMA_DEPTH} levels or {MAX_SCHEMA_NODES} values; both are limits"
            )
        layer, depth = [child for node in layer for child in _children(node)], depth + 1


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        for key in node:
            if not isinstance(key, str):
                raise SchemaError(f"names must be text, got {show_value(key)}")
        yield from node.values()
    elif isinstance(node, list):
        yield from node
    elif isinstance(node, int | float) and not isinstance(node, bool):
        try:
            in_range(node)
        except EvaluationError as error:
            raise SchemaError(str(error)) from None


def _expanded(node: Any, root: Any, sizes: dict[str, int], above: frozenset[str]) -> int:
    size = 1
    if isinstance(node, dict):
        for keyword in ("$dynamicRef", "$recursiveRef"):
            if keyword in node:
                raise SchemaError(f"{keyword} is not supported")
        if node is not root and isinstance(node.get("$id"), str):
            raise SchemaError("$id below the top is not supported: it changes what $ref means")
        reference = node.get("$ref")
        if isinstance(reference, str):
            size += _target_size(reference, root, sizes, above)
    for child in _children({**node, **_data_in(node)} if isinstance(node, dict) else node):
        size += _expanded(child, root, sizes, above)
    if size > MAX_SCHEMA_NODES:
        raise SchemaError(f"over {MAX_SCHEMA_NODES} values once references are expanded")
    return size


def _data_in(node: dict[str, Any]) -> dict[str, None]:
    """The lists of values in a schema, in which `$ref` would be just a key; counted already."""
    return {key: None for key in ("enum", "examples") if isinstance(node.get(key), list)}


def _target_size(reference: str, root: Any, sizes: dict[str, int], above: frozenset[str]) -> int:
    if not reference.startswith("#"):
        raise SchemaError(f"$ref {show_value(reference)} points outside the schema")
    if reference in above:
        raise SchemaError(f"$ref {show_value(reference)} is recursive")
    if reference not in sizes:
        sizes[reference] = _expanded(
            _resolve(reference, root), root, sizes, above | frozenset([reference])
        )
    return sizes[reference]


def _resolve(reference: str, root: Any) -> Any:
    node = root
    for step in reference[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and step in node:
            node = node[step]
        elif isinstance(node, list) and step.isdecimal() and int(step) < len(node):
            node = node[int(step)]
        else:
            raise SchemaError(f"$ref {show_value(reference)} points at nothing")
    return node
