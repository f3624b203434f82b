"""The single values of a case that may be moved: arguments, members of them, fields of rows, and
members of what these hold."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tool_specs.domains.domain import Domain
from tool_specs.execution.fields import refs_of
from tool_specs.execution.state import EntityRow
from tool_specs.language.domain_file import FieldSpec, ParamSpec
from tool_specs.validation.states.cases import FuzzCase
from tool_specs.validation.states.made_states import ValueChange
from tool_specs.validation.states.measuring import shifted
from tool_specs.validation.states.near_values import moment_of

_ELEMENTS = 2
"""Of a list, whose values are moved."""

_DIGITS = 0.1273
"""Shows what is rounded."""


class MovableValue(NamedTuple):
    """One value, and the way to it."""

    entity: str
    """Empty for an argument."""
    key: str
    field: str
    """Of the row, or the argument's name."""
    path: tuple[str | int, ...]
    """Below that."""
    whole: Any
    """What the field, or the argument, holds."""
    value: Any
    integral: bool

    def put(self, value: Any) -> ValueChange:
        return ValueChange(self.entity, self.key, self.field, _with(self.whole, self.path, value))

    @property
    def steps(self) -> tuple[float, ...]:
        """How far the value is moved to see what moves with it: days of a date, minutes of a
        date-time."""
        return (1440, 60) if isinstance(self.value, str) and len(self.value) == 19 else (1,)

    def moved(self, by: float) -> Any:
        value = shifted(self.value, by)
        return round(value) if self.integral else value

    @property
    def is_moved(self) -> bool:
        return type(self.value) in (int, float) or moment_of(str(self.value)) is not None

    def written_otherwise(self, function: str | None) -> Iterator[Any]:
        """Values that stand for nearly the same, and show what an expression does to them: what
        this function does, if it is given."""
        value = self.value
        if isinstance(value, str):
            kind = "text" if moment_of(value) is None else "day"
        else:
            kind = "number"
        if function is None or _SHOWN_BY.get(function, kind) == kind:
            yield from _FORMS[kind](value, self.integral)


def _texts_like(text: str, integral: bool) -> Iterator[str]:
    yield from (text.swapcase(), f" {text} ", text.title(), f"{text} {text}")


def _moments_like(moment: str, integral: bool) -> Iterator[str]:
    if len(moment) == 19:
        yield from (f"{moment[:10]}T00:00:00", f"{moment[:10]}T23:59:00")
        yield from (shifted(moment, minutes) for minutes in (90, 1440, -1440))
    else:
        yield from (shifted(moment, 1), shifted(moment, -1))


def _numbers_like(number: float, integral: bool) -> Iterator[float]:
    if integral:
        yield from (number + 1, number - 1, number + 7)
    else:
        yield from (round(number + _DIGITS, 4), round(number + 0.005, 4), number + 1)


_FORMS = {"text": _texts_like, "day": _moments_like, "number": _numbers_like}

_SHOWN_BY = {
    "round": "number",
    **dict.fromkeys(("lower", "upper", "title", "trim"), "text"),
    "date": "day",
}
"""Function -> kind of the values that show what it does."""


def unknowns_of(
    case: FuzzCase,
    params: Mapping[str, ParamSpec],
    rows: Sequence[tuple[str, EntityRow]],
    domain: Domain,
    about: Collection[str],
) -> Iterator[MovableValue]:
    """Of the arguments, and of these rows (entity, row); fields by these names alone."""
    for name, spec in params.items():
        if (value := case.arguments.get(name)) is not None and spec.ref is None:
            for path, leaf, own in _leaves(value, spec):
                if not isinstance(own, ParamSpec) or own.ref is None:
                    yield MovableValue("", "", name, path, value, leaf, own.type == "integer")
    for entity, row in rows:
        fields, key = domain.entities[entity].fields, domain.entities[entity].key
        for name, spec in fields.items():
            if name == key or name not in about or name in refs_of(domain.entities[entity]):
                continue
            for path, leaf, own in _leaves(row[name], spec):
                whole = row[name]
                yield MovableValue(entity, row[key], name, path, whole, leaf, own.type == "integer")


_Spec = FieldSpec | ParamSpec


def _leaves(value: Any, spec: _Spec) -> Iterator[tuple[tuple[str | int, ...], Any, _Spec]]:
    """(path, leaf, its declaration) of numbers and texts; of the first elements of lists."""
    if type(value) is list:
        of = spec.items if isinstance(spec, ParamSpec) else spec
        for i, item in enumerate(value[:_ELEMENTS]):
            for path, leaf, own in _leaves(item, of or spec):
                yield (i, *path), leaf, own
    elif type(value) is dict:
        members: Mapping[str, _Spec] = spec.properties or {}
        for name, item in value.items():
            if name in members:
                for path, leaf, own in _leaves(item, members[name]):
                    yield (name, *path), leaf, own
    elif type(value) in (int, float) or (type(value) is str and spec.type != "enum"):
        yield (), value, spec


def _with(whole: Any, path: tuple[str | int, ...], value: Any) -> Any:
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(first, int):
        return [_with(item, rest, value) if i == first else item for i, item in enumerate(whole)]
    return {**whole, first: _with(whole[first], rest, value)}
