"""Functions of the expression grammar: what they are called with, and the type that comes out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from tool_specs.language import summaries, values
from tool_specs.language.types import (
    ANY,
    BOOLEAN,
    DATE,
    DATETIME,
    INTEGER,
    NUMBER,
    NUMBER_KINDS,
    STRING,
    TEXT_KINDS,
    Type,
    list_of,
    nullable,
    union,
)


class Function(NamedTuple):
    apply: Callable[..., Any]
    usage: str
    least: int
    most: int
    result: Callable[[list[Type]], Type]
    accepts: frozenset[str] | None = None
    """Kinds of the arguments; None for any."""


def _keep_null(type_: Type) -> Callable[[list[Type]], Type]:
    return lambda types: nullable(type_) if any(t.nullable for t in types) else type_


def _coalesced(types: list[Type]) -> Type:
    result = union(types)
    if all(t.nullable for t in types) or result.kind == "any":
        return result
    return Type(result.kind, False, result.of, result.entity, result.values, result.fields)


def _extreme_type(types: list[Type]) -> Type:
    if len(types) > 1:
        return union(types)
    return nullable(types[0].of) if types[0].of is not None else ANY


def _sum_type(types: list[Type]) -> Type:
    of = types[0].of
    return INTEGER if of is not None and of.kind == "integer" else NUMBER


def _round_type(types: list[Type]) -> Type:
    return _keep_null(INTEGER if len(types) == 1 else NUMBER)(types[:1])


def _moved_date(types: list[Type]) -> Type:
    return _keep_null(types[0] if types[0].kind in ("date", "datetime") else STRING)(types)


def _first_type(types: list[Type]) -> Type:
    return nullable(types[0].of or ANY)


def _distinct_type(types: list[Type]) -> Type:
    return list_of(types[0].of and _present(types[0].of))


def _tally_type(types: list[Type]) -> Type:
    value = _present(types[0].of or ANY)
    return list_of(Type("object", fields={"value": value, "count": INTEGER}))


def _present(type_: Type) -> Type:
    """Of what is left once nulls are skipped."""
    return type_ if type_.kind == "any" else replace(type_, nullable=False)


def _text(name: str, change: Callable[[str], str]) -> Function:
    apply = summaries.case_of(name, change)
    return Function(apply, f"{name}(text)", 1, 1, _keep_null(STRING), _DAYS)


def _whole_text(types: list[Type]) -> Type:
    """Of a function whose first argument alone may be null."""
    return _keep_null(STRING)(types[:1])


_DAYS = TEXT_KINDS | {"any", "null"}
LISTS = frozenset({"list", "any"})
_MANY = 20

FUNCTIONS: dict[str, Function] = {
    "coalesce": Function(values.coalesce, "coalesce(a, b, ...)", 2, _MANY, _coalesced),
    "date": Function(values.date_of, "date(when)", 1, 1, _keep_null(DATE), _DAYS),
    "days_between": Function(
        values.days_between, "days_between(first, second)", 2, 2, _keep_null(INTEGER), _DAYS
    ),
    "add_days": Function(
        values.add_days, "add_days(date, days)", 2, 2, _moved_date, _DAYS | {"integer"}
    ),
    "minutes_between": Function(
        summaries.minutes_between, "minutes_between(start, end)", 2, 2, _keep_null(INTEGER), _DAYS
    ),
    "add_minutes": Function(
        summaries.add_minutes,
        "add_minutes(start, minutes)",
        2,
        2,
        _keep_null(DATETIME),
        _DAYS | {"integer"},
    ),
    "count": Function(values.count, "count(list)", 1, 1, lambda types: INTEGER, LISTS),
    "sum": Function(values.total, "sum(list.field)", 1, 1, _sum_type, LISTS),
    "average": Function(
        summaries.average, "average(list.field)", 1, 1, lambda types: nullable(NUMBER), LISTS
    ),
    "first": Function(summaries.first, "first(list)", 1, 1, _first_type, LISTS),
    "distinct": Function(summaries.distinct, "distinct(list.field)", 1, 1, _distinct_type, LISTS),
    "tally": Function(summaries.tally, "tally(list.field)", 1, 1, _tally_type, LISTS),
    "min": Function(values.smallest, "min(list) or min(a, b, ...)", 1, _MANY, _extreme_type),
    "max": Function(values.largest, "max(list) or max(a, b, ...)", 1, _MANY, _extreme_type),
    "round": Function(
        values.round_half_up, "round(x, digits)", 1, 2, _round_type, NUMBER_KINDS | {"any"}
    ),
    "exists": Function(values.exists, "exists(list)", 1, 1, lambda types: BOOLEAN),
    "lower": _text("lower", str.lower),
    "upper": _text("upper", str.upper),
    "title": _text("title", summaries.titled),
    "trim": _text("trim", str.strip),
    "length": Function(summaries.length, "length(text)", 1, 1, _keep_null(INTEGER), _DAYS),
    "replace": Function(summaries.replaced, "replace(text, old, new)", 3, 3, _whole_text, _DAYS),
    "split": Function(
        summaries.split, "split(text, separator)", 2, 2, lambda types: list_of(STRING), _DAYS
    ),
    "part": Function(
        summaries.part,
        "part(text, separator, number)",
        3,
        3,
        lambda types: nullable(STRING),
        _DAYS | {"integer"},
    ),
    "join": Function(
        summaries.joined, "join(list, separator)", 2, 2, lambda types: STRING, LISTS | TEXT_KINDS
    ),
    "concat": Function(values.concat, "concat(a, b, ...)", 1, _MANY, lambda types: STRING),
}
"""Besides these, in `evaluation.py`: `now()` and `lookup('entity', key)`, which need the clock and
the state; `if(condition, a, b)`, which evaluates one side alone; `pick(rows, 'field', ...)` and
`format(value, how)`, whose last arguments are literals."""
