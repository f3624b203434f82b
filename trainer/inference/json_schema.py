"""What a JSON schema says of one value, with references, `allOf` and unions worked in.

References within the schema (`#/...`) are followed; others say nothing here, and nothing is ever
fetched. What is too much to work out (`MOST`) is left to whoever checks the value.
"""

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import unquote

MOST = 256
"""Schemas that are looked into for one value, and alternatives that are kept of it."""

_WORKED_IN = ("$ref", "allOf", "anyOf", "oneOf")
_KINDS = ("object", "array", "string", "integer", "number", "boolean", "null")
_DEEPEST = 32
"""Parts within parts that are looked into at a time; a recursive schema has no end."""


class Said(NamedTuple):
    """One alternative: all that it says of a value holds together."""

    kind: str | None
    """A type of JSON; None where any will do."""
    values: list[Any] | None
    """The only ones there may be."""
    properties: dict[str, Any]
    """Schemas of those that can be had, required ones among them."""
    required: list[str]
    others: Any
    """Schema of further properties; False where there may be none."""
    items: Any
    """Schema of an array's items; False where there may be none."""


class Schema:
    """A schema that is looked into as far as values are read. Not to be changed meanwhile."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._known: dict[int, tuple[Any, list[Said]]] = {}
        """By identity; the schema is kept with it, so that its identity stays its own."""
        self._joined: dict[tuple[int, ...], dict[str, Any]] = {}
        """What `_both` made of which: the same again for the same, or recursion had no end."""
        self._busy: set[int] = set()
        self._left = 0

    def alternatives(self, schema: Any) -> list[Said]:
        """What a value under `schema`, which is this one or a part of it, may be. None at all where
        it contradicts itself."""
        known = self._known.get(id(schema))
        if known is None:
            self._left = MOST
            together = self._together(schema, frozenset())
            self._busy.add(id(schema))
            found = [said for parts in together for said in self._said(parts)]
            self._busy.remove(id(schema))
            known = self._known[id(schema)] = (schema, found)
        return known[1]

    def _together(self, schema: Any, above: frozenset[str]) -> list[list[Mapping[str, Any]]]:
        """Alternatives as lists of plain schemas that hold together. `above`: references that led
        here; one that leads back adds no alternative of its own."""
        self._left -= 1
        if schema is False:
            return []
        if not isinstance(schema, Mapping) or self._left < 0:
            return [[]]
        found: list[list[Mapping[str, Any]]] = [[_plain(schema)]]
        target = schema.get("$ref")
        if isinstance(target, str):
            if target in above:
                return []
            found = _each(found, self._together(self._at(target), above | {target}))
        for part in _listed(schema.get("allOf")):
            found = _each(found, self._together(part, above))
        for union in ("anyOf", "oneOf"):
            if options := _listed(schema.get(union)):
                flat = [one for option in options for one in self._together(option, above)]
                found = _each(found, flat)
        return found

    def _at(self, reference: str) -> Any:
        """The schema at a pointer into this one; True, which says nothing, where there is none."""
        if not reference.startswith("#") or reference[1:2] not in ("", "/"):
            return True
        place = self.root
        for step in unquote(reference).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(place, Mapping) and name in place:
                place = place[name]
            elif name.isdecimal() and int(name) < len(_listed(place)):
                place = place[int(name)]
            else:
                return True
        return place

    def _said(self, parts: Sequence[Mapping[str, Any]]) -> list[Said]:
        """One for each type, of those that can be met."""
        kinds = reduce(_narrowed, (part.get("type") for part in parts), frozenset(_KINDS))
        values = _values(parts)
        if values is not None:
            values = [value for value in values if _kinds_of(value) & kinds]
            return [Said(None, values, {}, [], True, True)] if values else []
        properties, required = self._properties(parts)
        items = self._possible(self._both([p["items"] for p in parts if _has_items(p)]))
        others = self._possible(self._both([_further(part) for part in parts]))
        if properties is None:
            kinds, properties = kinds - {"object"}, {}
        chosen: list[str | None] = [None]
        if kinds != frozenset(_KINDS):
            whole = "number" in kinds and "integer"
            chosen = [kind for kind in _KINDS if kind in kinds and kind != whole]
        return [Said(kind, None, properties, required, others, items) for kind in chosen]

    def _properties(
        self, parts: Sequence[Mapping[str, Any]]
    ) -> tuple[dict[str, Any] | None, list[str]]:
        """Those that can be had, None where a required one cannot; and which are required."""
        required = list(dict.fromkeys(n for part in parts for n in _listed(part.get("required"))))
        declared = [name for part in parts for name in _declared(part)]
        found: dict[str, Any] = {}
        for name in dict.fromkeys([*declared, *required]):
            said = [_declared(part).get(name, _further(part)) for part in parts]
            schema = self._possible(self._both(said), now=name in required)
            if schema is not False:
                found[name] = schema
            elif name in required:
                return None, required
        return found, required

    def _possible(self, schema: Any, *, now: bool = False) -> Any:
        """The schema, or False where no value is under it. `now`: a value of it is a part of the
        one that is being worked out, so it cannot have that one as its own part."""
        if id(schema) in self._busy:
            return False if now else schema
        if len(self._busy) > _DEEPEST or len(self._known) > MOST:
            return schema
        return schema if self.alternatives(schema) else False

    def _both(self, schemas: Sequence[Any]) -> Any:
        """One schema that says all that the given ones say."""
        telling = {id(schema): schema for schema in schemas if schema is not True}
        if len(telling) < 2:
            return next(iter(telling.values()), True)
        return self._joined.setdefault(tuple(telling), {"allOf": list(telling.values())})


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in _WORKED_IN}


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []


def _each(
    some: list[list[Mapping[str, Any]]], others: list[list[Mapping[str, Any]]]
) -> list[list[Mapping[str, Any]]]:
    """Every one with every other; `some` alone where that would be too many."""
    if len(some) * len(others) > MOST:
        return some
    return [[*a, *b] for a, b in product(some, others)]


def _narrowed(kinds: frozenset[str], types: Any) -> frozenset[str]:
    if types is None:
        return kinds
    named = {types} if isinstance(types, str) else set(_listed(types))
    return kinds & (named | {"integer"} if "number" in named else named)


def _values(parts: Sequence[Mapping[str, Any]]) -> list[Any] | None:
    """Those that every part allows; None where none names any."""
    lists = [[part["const"]] for part in parts if "const" in part]
    lists += [_listed(part["enum"]) for part in parts if "enum" in part]
    if not lists:
        return None
    common = set.intersection(*({_spelt(value) for value in one} for one in lists))
    return [value for value in lists[0] if _spelt(value) in common]


def _spelt(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _kinds_of(value: Any) -> set[str]:
    """Types that a value is of."""
    match value:
        case None:
            return {"null"}
        case bool():
            return {"boolean"}
        case int():
            return {"integer", "number"}
        case float():
            return {"integer", "number"} if value.is_integer() else {"number"}
        case str():
            return {"string"}
        case Mapping():
            return {"object"}
        case _:
            return {"array"}


def _declared(part: Mapping[str, Any]) -> Mapping[str, Any]:
    declared = part.get("properties")
    return declared if isinstance(declared, Mapping) else {}


def _further(part: Mapping[str, Any]) -> Any:
    """Schema of properties that are not declared; patterns are not told apart."""
    return True if "patternProperties" in part else part.get("additionalProperties", True)


def _has_items(part: Mapping[str, Any]) -> bool:
    """Not where `items` are those behind a tuple's, or the tuple itself."""
    return "prefixItems" not in part and isinstance(part.get("items"), Mapping | bool)
