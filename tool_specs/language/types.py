"""Static types of the expression language: enough to refuse a domain before it runs.

Text kinds (string, date, datetime, enum, ref) compare with one another; integer widens to number;
`any` fits everywhere and is checked at run time. A type may be nullable, and nullability is
checked at run time only: `require args.x != null` makes a null impossible in ways that a type
does not show.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tool_specs.language.values import is_date, is_datetime

TEXT_KINDS = frozenset({"string", "date", "datetime", "enum", "ref"})
NUMBER_KINDS = frozenset({"integer", "number"})
OBJECT_KINDS = frozenset({"object", "row"})
EXAMPLES = {"date": "2026-03-02", "datetime": "2026-03-02T09:00:00"}


@dataclass(frozen=True, slots=True)
class Type:
    kind: str
    """any null boolean integer number string date datetime enum ref list object row"""
    nullable: bool = False
    of: "Type | None" = None
    """What a list holds; None for a list of anything."""
    entity: str | None = None
    """Of a row, or what a ref points at."""
    values: tuple[str, ...] = ()
    """Members of an enum."""
    fields: "Mapping[str, Type] | None" = None
    """Of an object or a row; None for an object of any shape."""

    def __str__(self) -> str:
        if self.kind == "list":
            return f"list of {self.of or ANY}"
        if self.kind in ("row", "ref"):
            return f"{self.kind} of {self.entity}"
        return f"one of {', '.join(self.values)}" if self.kind == "enum" else self.kind


ANY, NULL, BOOLEAN = Type("any", nullable=True), Type("null", nullable=True), Type("boolean")
INTEGER, NUMBER, STRING = Type("integer"), Type("number"), Type("string")
DATE, DATETIME = Type("date"), Type("datetime")


def list_of(item: Type | None) -> Type:
    return Type("list", of=item)


def nullable(type_: Type) -> Type:
    return type_ if type_.nullable else replace(type_, nullable=True)


def union(types: Iterable[Type]) -> Type:
    """The narrowest type that holds them all; `any` where there is none, or there are none."""
    result: Type | None = None
    for type_ in types:
        result = type_ if result is None else _union(result, type_)
    return result or ANY


def _union(a: Type, b: Type) -> Type:
    may_be_null = a.nullable or b.nullable
    if a.kind == "null" or b.kind == "null":
        return nullable(b if a.kind == "null" else a)
    if a.kind == b.kind == "enum":
        merged = Type("enum", values=tuple(dict.fromkeys(a.values + b.values)))
    elif a.kind == b.kind == "list":
        merged = list_of(_union(a.of, b.of) if a.of and b.of else a.of or b.of)
    elif replace(a, nullable=False) == replace(b, nullable=False):
        merged = a
    elif a.kind in NUMBER_KINDS and b.kind in NUMBER_KINDS:
        merged = NUMBER
    elif a.kind in TEXT_KINDS and b.kind in TEXT_KINDS:
        merged = STRING
    else:
        return ANY
    return nullable(merged) if may_be_null else merged


def comparable(a: Type, b: Type) -> bool:
    """Whether `a == b` can be true: the same family, or one side is null or unknown."""
    if "any" in (a.kind, b.kind) or "null" in (a.kind, b.kind):
        return True
    return any(
        a.kind in family and b.kind in family for family in (TEXT_KINDS, NUMBER_KINDS, OBJECT_KINDS)
    ) or (a.kind == b.kind)


def mismatch(value: Type, field: Type, *, exact: bool = False) -> str | None:
    """Why a value of this type can never be stored in the field, or None. `exact` is for records
    that an expression spells out: their members have to be those of the field.

    Text may turn out to be a date or an id, so string fits date, datetime and ref; the store
    checks the value itself.
    """
    if "any" in (value.kind, field.kind) or value.kind == "null":
        return None
    if value.kind == "enum" and field.kind in ("date", "datetime"):
        check = is_date if field.kind == "date" else is_datetime
        wrong = [v for v in value.values if not check(v)]
        return (
            f"needs a {field} such as {EXAMPLES[field.kind]}, not {wrong[0]!r}" if wrong else None
        )
    if field.kind == "enum":
        if value.kind != "enum":
            return f"needs {field}, got {value}"
        extra = [v for v in value.values if v not in field.values]
        return f"allows {', '.join(field.values)}, not {', '.join(extra)}" if extra else None
    if field.kind == "ref" and value.kind == "ref" and value.entity != field.entity:
        return f"needs an id of {field.entity}, got an id of {value.entity}"
    if field.kind == "list" and value.kind == "list":
        return mismatch(value.of, field.of, exact=exact) if value.of and field.of else None
    if exact and field.kind == value.kind == "object" and field.fields and value.fields:
        return _wrong_member(value.fields, field.fields)
    fits = {
        "string": TEXT_KINDS,
        "date": {"date", "string"},
        "datetime": {"datetime", "string"},
        "ref": {"ref", "string", "enum"},
        "number": NUMBER_KINDS,
        "object": OBJECT_KINDS,
    }.get(field.kind, {field.kind})
    return None if value.kind in fits else f"needs {field}, got {value}"


def _wrong_member(value: Mapping[str, Type], field: Mapping[str, Type]) -> str | None:
    """Why an object with these members can never be stored where those belong, or None."""
    if extra := [name for name in value if name not in field]:
        return f"has no member {extra[0]!r}; members: {', '.join(field)}"
    for name, member in field.items():
        if name not in value and not member.nullable:
            return f"needs the member {name!r} as well"
        if name in value and (reason := mismatch(value[name], member, exact=True)):
            return f"member {name!r} {reason}"
    return None


_JSON_TYPES = {
    "boolean": "boolean",
    "integer": "integer",
    "number": "number",
    "list": "array",
    "object": "object",
    "row": "object",
    "null": "null",
}


def json_schema(type_: Type) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) that every value of the type satisfies."""
    if type_.kind == "any":
        return {}
    name = _JSON_TYPES.get(type_.kind, "string")
    may_be_null = type_.nullable and type_.kind != "null"
    schema: dict[str, Any] = {"type": [name, "null"] if may_be_null else name}
    if type_.kind == "enum":
        schema["enum"] = [*type_.values, None] if may_be_null else list(type_.values)
    elif type_.kind == "date":
        schema["format"] = "date"
    elif type_.kind == "list" and type_.of is not None:
        schema["items"] = json_schema(type_.of)
    elif type_.fields is not None:
        schema["properties"] = {n: json_schema(t) for n, t in type_.fields.items()}
        schema["required"] = list(type_.fields)
        schema["additionalProperties"] = False
    return schema


def literal_type(value: Any) -> Type:
    """Of a value that stands in an expression."""
    if value is None:
        return NULL
    if isinstance(value, str):
        # an enum of one: that is how a literal is checked against the members of a field
        return Type("enum", values=(value,))
    return {bool: BOOLEAN, int: INTEGER, float: NUMBER}[type(value)]
