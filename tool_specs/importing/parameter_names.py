"""Parameters of a tool under names that models can write, and a call's arguments under the tool's.

Names are mapped wherever the schema declares members, at any depth, each to the same name within a
tool. A schema that speaks of names by patterns (`patternProperties`, `propertyNames`) keeps its
own, since another name would match other patterns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tool_specs.importing.dialects import ONE_SCHEMA, SCHEMA_LISTS, SCHEMA_MAPS
from tool_specs.importing.names import mapped_names

_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
"""Keywords whose schemas are about the same value."""


class WritableSchema(NamedTuple):
    schema: dict[str, Any]
    """With the names that models write."""
    originals: dict[str, str]
    """Name that models write -> the tool's own, of those that differ."""


def writable(schema: dict[str, Any]) -> WritableSchema:
    """The schema, normalised before, with names of members that every API takes."""
    nodes = list(_nodes(schema))
    own = {name for node in nodes for name in _declared(node)}
    names = mapped_names(own, "parameter")
    changed = {name: mapped for name, mapped in names.items() if name != mapped}
    by_pattern = any(node.keys() & {"patternProperties", "propertyNames"} for node in nodes)
    if not changed or by_pattern:
        return WritableSchema(schema, {})
    originals = {mapped: name for name, mapped in sorted(changed.items())}
    return WritableSchema(_renamed(schema, changed), originals)


def own_arguments(arguments: Mapping[str, Any], tool: WritableSchema) -> dict[str, Any]:
    """A call's arguments under the tool's own names; members that no schema declares stay."""
    return _value(arguments, [tool.schema], tool.originals) if tool.originals else dict(arguments)


def written_arguments(arguments: Mapping[str, Any], tool: WritableSchema) -> dict[str, Any]:
    """The other way: arguments under the tool's own names as models write them."""
    if not tool.originals:
        return dict(arguments)
    written = {own: name for name, own in tool.originals.items()}
    return _value(arguments, [_renamed(tool.schema, tool.originals)], written)


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    """The schema and all schemas in it, booleans apart."""
    if isinstance(node, dict):
        yield node
        for below in _below(node):
            yield from _nodes(below)


def _below(node: Mapping[str, Any]) -> Iterator[Any]:
    for key, value in node.items():
        if key in SCHEMA_MAPS:
            yield from value.values()
        elif key in SCHEMA_LISTS:
            yield from value
        elif key == "items" or key in ONE_SCHEMA:
            yield value


def _declared(node: Mapping[str, Any]) -> Iterator[str]:
    for keyword in ("properties", "dependentSchemas", "dependentRequired", "required"):
        yield from node.get(keyword, ())
    for names in node.get("dependentRequired", {}).values():
        yield from names


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(node, dict):
        return node
    found: dict[str, Any] = {}
    for key, value in node.items():
        if key in SCHEMA_MAPS:
            found[key] = {
                names.get(name, name): _renamed(one, names) for name, one in value.items()
            }
        elif key in SCHEMA_LISTS:
            found[key] = [_renamed(one, names) for one in value]
        elif key == "items" or key in ONE_SCHEMA:
            found[key] = _renamed(value, names)
        elif key == "required":
            found[key] = [names.get(name, name) for name in value]
        elif key == "dependentRequired":
            found[key] = {
                names.get(name, name): [names.get(one, one) for one in wanted]
                for name, wanted in value.items()
            }
        elif key in ("const", "default"):
            found[key] = _value(value, [node], names)
        elif key in ("enum", "examples") and isinstance(value, list):
            found[key] = [_value(one, [node], names) for one in value]
        else:
            found[key] = value
    return found


def _value(value: Any, schemas: Sequence[Any], names: Mapping[str, str]) -> Any:
    """A value of which the schemas speak, members that they declare under their other names."""
    parts = list(_about_it(schemas))
    if isinstance(value, list):
        return [_value(one, _elements(parts, place), names) for place, one in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    declared = {name for part in parts for name in _declared(part)}
    changed = declared & names.keys()
    free = {
        name: _value(one, _members(parts, name), names)
        for name, one in value.items()
        if name not in changed
    }
    return free | {
        names[name]: _value(one, _members(parts, name), names)
        for name, one in value.items()
        if name in changed
    }


def _about_it(schemas: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for schema in schemas:
        if isinstance(schema, dict):
            yield schema
            for key in _IN_PLACE:
                inner = schema.get(key, ())
                if key in SCHEMA_LISTS:
                    yield from _about_it(inner)
                elif key in SCHEMA_MAPS and inner:
                    yield from _about_it(inner.values())
                elif key in ONE_SCHEMA:
                    yield from _about_it([inner])


def _members(parts: Iterable[dict[str, Any]], name: str) -> list[Any]:
    found = []
    for part in parts:
        properties = part.get("properties", {})
        found += [
            properties[name] if name in properties else part.get("additionalProperties"),
            part.get("unevaluatedProperties"),
        ]
    return found


def _elements(parts: Iterable[dict[str, Any]], place: int) -> list[Any]:
    found = []
    for part in parts:
        prefix = part.get("prefixItems", ())
        found.append(prefix[place] if place < len(prefix) else part.get("items"))
        found += [part.get("contains"), part.get("unevaluatedItems")]
    return found
