"""Schemas that nothing satisfies: a proof that there is no value, never a guess.

For a list of schemas that one value must satisfy together, the kinds of JSON values that may do so
are narrowed by each keyword; where none is left there is no value. Values that a schema lists
(`const`, `enum`, the booleans, null) are tried on the validator itself. Keywords that are not
looked at (`if`, most of `not`, `format`, `unevaluated...`) narrow nothing, and work that would grow
too long narrows nothing either.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, inf, lcm
from typing import Any

from records.digest import canonical_json
from tool_specs.importing.dialects import WORDS
from tool_specs.language.schemas import Validator

MAX_STEPS = 3_000
"""Lists of schemas looked at for one schema; beyond, it counts as one that can be satisfied."""

_KINDS = frozenset({"null", "boolean", "integer", "fraction", "string", "array", "object"})
"""JSON's types, numbers in two: those that are whole (1.0 among them), and the others."""

_COMBINED = frozenset({"allOf", "anyOf", "oneOf", "unevaluatedItems", "unevaluatedProperties"})


def unsatisfiable(schema: dict[str, Any] | bool) -> bool:
    """Whether no value satisfies the schema (draft 2020-12, without references, compiled before).
    False also where that cannot be told."""
    return not _Search().kinds([schema])


class _Search:
    def __init__(self) -> None:
        self._steps = 0
        self._validators: dict[int, tuple[Any, Validator]] = {}

    def kinds(self, schemas: Iterable[Any]) -> frozenset[str]:
        """Kinds of values that may satisfy all of the schemas; empty: there is no such value."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            return _KINDS
        parts = _flat(schemas)
        if not parts:
            return frozenset() if parts is None else _KINDS
        lists = [[p["const"]] if "const" in p else p["enum"] for p in parts if p.keys() & _LISTING]
        if lists:
            return frozenset(_kind(v) for v in min(lists, key=len) if self._accept(parts, v))
        found = _KINDS
        for part in parts:
            found &= _kinds_of(part.get("type"))
            found -= _refused_by(part.get("not", False))
        found = frozenset(kind for kind in found if self._may_be(kind, parts))
        plain = [{k: v for k, v in part.items() if k not in _COMBINED} for part in parts]
        for branches in _alternatives(parts):
            if found:
                found &= frozenset().union(*(self.kinds([*plain, one]) for one in branches))
        return found

    def _accept(self, parts: Sequence[Mapping[str, Any]], value: Any) -> bool:
        return all(self._validator(part).is_valid(value) for part in parts)

    def _validator(self, schema: Any) -> Validator:
        """Kept with its schema, whose identity names it as long as it lives."""
        if id(schema) not in self._validators:
            self._validators[id(schema)] = schema, Validator(schema)
        return self._validators[id(schema)][1]

    def _may_be(self, kind: str, parts: Sequence[Mapping[str, Any]]) -> bool:
        match kind:
            case "null":
                return self._accept(parts, None)
            case "boolean":
                return self._accept(parts, True) or self._accept(parts, False)
            case "integer" | "fraction":
                return _number_exists(parts, is_whole=kind == "integer")
            case "string":
                return _most(parts, "minLength") <= _least(parts, "maxLength")
            case "array":
                return self._array_exists(parts)
        return self._object_exists(parts)

    def _array_exists(self, parts: Sequence[Mapping[str, Any]]) -> bool:
        least, most = _most(parts, "minItems"), _least(parts, "maxItems")
        longest = max((len(part.get("prefixItems", ())) for part in parts), default=0)
        for place in range(longest + 1):  # the last one stands for all that follow
            if place < most and not self.kinds(_elements(parts, place)):
                most = place
        for part in parts:
            wanted = part.get("minContains", 1)
            if "contains" not in part or wanted == 0:
                continue
            least = max(least, wanted)
            beside = [] if longest else _elements(parts, 0)
            if wanted > part.get("maxContains", inf) or not self.kinds([part["contains"], *beside]):
                return False
        return least <= most

    def _object_exists(self, parts: Sequence[Mapping[str, Any]]) -> bool:
        asked = _asked_for(parts)
        if asked is None:
            return False
        parts, required = asked
        for name in required:
            if not self.kinds(_members(parts, name)):
                return False
            if not all(
                self._validator(part["propertyNames"]).is_valid(name)
                for part in parts
                if "propertyNames" in part
            ):
                return False
        least, most = (
            max(_most(parts, "minProperties"), len(required)),
            _least(parts, "maxProperties"),
        )
        for part in parts:
            if part.get("additionalProperties") is False and not part.get("patternProperties"):
                named = part.get("properties", {})
                if least > len(required):
                    named = [name for name in named if self.kinds(_members(parts, name))]
                most = min(most, len(named))
        return least <= most


_LISTING = frozenset({"const", "enum"})


def _flat(schemas: Iterable[Any]) -> list[Mapping[str, Any]] | None:
    """The schemas and those of their `allOf`, at any depth; None if one of them is False."""
    found: list[Mapping[str, Any]] = []
    stack = list(schemas)
    while stack:
        schema = stack.pop()
        if schema is False:
            return None
        if isinstance(schema, Mapping):
            found.append(schema)
            stack += schema.get("allOf", ())
    return found


def _alternatives(parts: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """Of each anyOf and oneOf what a value may satisfy: of two equal branches of oneOf, neither."""
    for part in parts:
        if "anyOf" in part:
            yield part["anyOf"]
        if "oneOf" in part:
            count = Counter(map(canonical_json, part["oneOf"]))
            yield [one for one in part["oneOf"] if count[canonical_json(one)] == 1]


def _kinds_of(types: Any) -> frozenset[str]:
    if types is None:
        return _KINDS
    named = {types} if isinstance(types, str) else set(types)
    return frozenset(named - {"number"}) | (
        {"integer", "fraction"} if "number" in named else frozenset()
    )


def _refused_by(schema: Any) -> frozenset[str]:
    """Kinds of which the schema accepts every value."""
    if isinstance(schema, bool):
        return _KINDS if schema else frozenset()
    return _kinds_of(schema.get("type")) if schema.keys() <= {"type", *WORDS} else frozenset()


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "integer" if value == floor(value) else "fraction"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object"


def _most(parts: Sequence[Mapping[str, Any]], keyword: str) -> float:
    return max((part[keyword] for part in parts if keyword in part), default=0)


def _least(parts: Sequence[Mapping[str, Any]], keyword: str) -> float:
    return min((part[keyword] for part in parts if keyword in part), default=inf)


def _number_exists(parts: Sequence[Mapping[str, Any]], *, is_whole: bool) -> bool:
    """Steps that are no whole numbers are left to the validator, which rounds."""
    low, is_open_low = _bound(parts, "minimum", "exclusiveMinimum", 1)
    high, is_open_high = _bound(parts, "maximum", "exclusiveMaximum", -1)
    steps = [part["multipleOf"] for part in parts if "multipleOf" in part]
    whole = [int(step) for step in steps if step == floor(step)]
    if not is_whole and whole:
        return False
    if low is None or high is None:
        return True
    if low > high or (low == high and (is_open_low or is_open_high)):
        return False
    if not is_whole:
        return low < high or low.denominator > 1
    step = lcm(*whole)
    first = ceil(low / step) * step
    if first == low and is_open_low:
        first += step
    return first < high or (first == high and not is_open_high)


def _bound(
    parts: Sequence[Mapping[str, Any]], closed: str, opened: str, sign: int
) -> tuple[Fraction | None, bool]:
    """The tightest bound, exact, and whether it is no value itself; None without one."""
    found = [(sign * Fraction(part[closed]), False) for part in parts if closed in part]
    found += [(sign * Fraction(part[opened]), True) for part in parts if opened in part]
    if not found:
        return None, False
    value, is_open = max(found)
    return sign * value, is_open


def _elements(parts: Sequence[Mapping[str, Any]], place: int) -> list[Any]:
    """Schemas of the array's element at `place`."""
    found = []
    for part in parts:
        prefix = part.get("prefixItems", ())
        if place < len(prefix):
            found.append(prefix[place])
        elif "items" in part:
            found.append(part["items"])
    return found


def _asked_for(
    parts: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], set[str]] | None:
    """The schemas and names that an object must satisfy and have, by `dependentRequired` and
    `dependentSchemas` too; None if one of these schemas is False."""
    known, required = list(parts), set[str]()
    while True:
        names = {name for part in known for name in part.get("required", ())}
        names |= {
            wanted
            for part in known
            for name, listed in part.get("dependentRequired", {}).items()
            if name in required
            for wanted in listed
        }
        told = [
            schema
            for part in known
            for name, schema in part.get("dependentSchemas", {}).items()
            if name in required
        ]
        more = _flat(told)
        if more is None:
            return None
        new = [part for part in more if not any(part is other for other in known)]
        if names <= required and not new:
            return known, required
        required |= names
        known += new


def _members(parts: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """Schemas of the object's member of that name."""
    found = []
    for part in parts:
        properties = part.get("properties", {})
        own = [properties[name]] if name in properties else []
        own += [
            schema
            for pattern, schema in part.get("patternProperties", {}).items()
            if _matcher(pattern).is_valid(name)
        ]
        found += own or [part.get("additionalProperties", True)]
    return found


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Validator:
    return Validator({"pattern": pattern})
