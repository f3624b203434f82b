"""Values that come near what a tool's conditions ask: constants, their neighbours, what rows have.

A call is one tool's call in one state: its arguments, and the rows that it has to do with. From
these and from the constants of the tool come the numbers, days and texts that are worth trying.
"""

import re
from collections.abc import Iterator, Sequence, Set
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from tool_specs.domains.domain import Domain
from tool_specs.execution.fields import ids_in
from tool_specs.execution.state import EntityRow, State
from tool_specs.language.domain_file import FieldSpec, ParamSpec

_KEYS = 12
_POINTS = 8
"""Numbers of rows that others are computed from."""
_FAR = 4000
"""Days beyond which no condition looks."""
_DAY = 24 * 60
_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3])(?::([0-5]\d))?")
_SOONEST, _LATEST = "0100-01-01", "9900-01-01"

_CASES = frozenset({"lower", "upper", "title"})
"""Functions that look past capitals."""

_AT_A_TIME = 0.4
"""Share of date-times at a time of the day that a condition asks for, where one does."""

_ValueSpec = FieldSpec | ParamSpec


class NearCall(NamedTuple):
    """What the values are near to."""

    arguments: Any
    rows: Sequence[tuple[str, EntityRow]]
    """(entity, row)"""
    state: State


class NearValues:
    """Of one tool of a domain; `constants` and `functions` are those of its expressions."""

    def __init__(
        self, domain: Domain, constants: Sequence[Any], functions: Set[str], rng: Random
    ) -> None:
        self.domain, self.constants, self.rng = domain, constants, rng
        self.functions = functions
        self.times = sorted(_times_of_day(constants, functions))

    def choice(self, spec: _ValueSpec, name: str, call: NearCall, *, null: bool) -> Any:
        """One value for a field or a parameter of the name; None also where there is none."""
        if null and spec.optional and self.rng.random() < 0.2:
            return None
        match spec.type:
            case "boolean":
                return self.rng.random() < 0.5
            case "enum":
                return self.rng.choice(spec.values)
            case "integer" | "number":
                return self._number(spec, call)
            case "date" | "datetime":
                return self._moment(spec.type, call)
        to = spec.to if isinstance(spec, FieldSpec) else spec.ref
        texts = self._keys(to, call) if to is not None else self._texts(name, call)
        if spec.type == "list":
            items = self.rng.sample(texts, min(len(texts), self.rng.randint(0, 3)))
            return list(dict.fromkeys(items))
        if to is not None and isinstance(spec, ParamSpec) and self.rng.random() < 0.2:
            return "XX-0"
        return self._written(self.rng.choice(texts), to) if texts else None

    def _written(self, text: str, to: str | None) -> str:
        """The text as somebody else may write it, where the tool has a function for that."""
        if to is None and "trim" in self.functions and self.rng.random() < 0.4:
            text = f" {text} "
        if to is None and self.functions & _CASES and self.rng.random() < 0.4:
            text = text.swapcase()
        return text

    def _keys(self, entity: str, call: NearCall) -> list[str]:
        key = self.domain.entities[entity].key
        return [row[key] for row in islice(call.state.tables[entity].rows(), _KEYS)]

    def _texts(self, name: str, call: NearCall) -> list[str]:
        texts = [c for c in self.constants if isinstance(c, str)] + texts_in(call.arguments)
        for _, row in call.rows:
            texts += [value for value in ids_in(row.get(name)) if isinstance(value, str)]
        return [*texts, *(word for text in texts for word in text.split()[1:]), "zzzz"]

    def _number(self, spec: _ValueSpec, call: NearCall) -> Any:
        """A number that stands somewhere, or is computed from two that do, or next to it."""
        own = [*numbers_in(self.constants), *numbers_in(call.arguments), 0]
        own += [bound for bound in (spec.min, spec.max) if bound is not None]
        some = self.rng.sample(call.rows, min(len(call.rows), _POINTS))
        seen = own + numbers_in([list(row.values()) for _, row in some])
        one, other = self.rng.choice(seen), self.rng.choice(seen)
        computed = (one, one, one - other, one + other, one * other, other / one if one else 0)
        value = self.rng.choice(computed) + self.rng.choice((0, 0, 0, 1, -1))
        if spec.type == "integer":
            value = round(value)
        else:
            value = round(value + self.rng.choice((0, 0, 0.125)), 3)
        least = spec.min if spec.min is not None else -1_000_000
        most = spec.max if spec.max is not None else 1_000_000
        value = min(max(value, least), most)
        return int(value) if value == int(value) else value

    def _moment(self, kind: str, call: NearCall) -> str | None:
        """A day or time that stands somewhere, or so many days or minutes away as a number says."""
        some = self.rng.sample(call.rows, min(len(call.rows), _POINTS))
        known = [self.domain.now, self.domain.now, *moments_in(call.arguments)]
        known += moments_in([list(row.values()) for _, row in some])
        gaps = [0, *numbers_in(self.constants), *numbers_in(call.arguments)]
        gap = int(self.rng.choice(gaps)) + self.rng.choice((0, 0, 1, -1))
        gap *= self.rng.choice((1, -1))
        base = self.rng.choice(known)
        if abs(gap) > _FAR or not _SOONEST < base < _LATEST:
            return None
        moment = datetime.fromisoformat(base)
        if kind == "datetime" and self.times and self.rng.random() < _AT_A_TIME:
            minute = self.rng.choice(self.times) + self.rng.choice((0, 0, 1, -1))
            day = moment.replace(hour=0, minute=0, second=0)
            return (day + timedelta(days=gap, minutes=minute)).isoformat()
        if kind == "date":
            return (moment + timedelta(days=gap)).date().isoformat()
        moved = timedelta(days=gap) if self.rng.random() < 0.6 else timedelta(minutes=gap)
        return (moment + moved).isoformat()


def _times_of_day(constants: Sequence[Any], functions: Set[str]) -> Set[int]:
    """Minutes since midnight that texts such as 18:00 and 07 name, and numbers of minutes."""
    found: set[int] = set()
    for value in constants:
        if isinstance(value, str) and "format" in functions:
            if named := _TIME_OF_DAY.fullmatch(value):
                found.add(int(named[1]) * 60 + int(named[2] or 0))
        elif type(value) is int and "minutes_between" in functions and 0 < value < _DAY:
            found.add(value)
    return found


def neighbours_of(value: Any) -> list[Any]:
    """The number next to it on either side; of a date-time the minute."""
    if type(value) in (int, float):
        return [value + 1, value - 1]
    moment = moment_of(value) if isinstance(value, str) else None
    if moment is None or len(value) == 10:
        return []
    minute = timedelta(minutes=1)
    return [(moment + minute).isoformat(), (moment - minute).isoformat()]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield value


def texts_in(value: Any) -> list[str]:
    """Every text of a JSON value."""
    return [leaf for leaf in _leaves(value) if isinstance(leaf, str)]


def numbers_in(value: Any) -> list[Any]:
    return [leaf for leaf in _leaves(value) if type(leaf) in (int, float)]


def moments_in(value: Any) -> list[str]:
    """Every date and date-time of a JSON value."""
    return [text for text in texts_in(value) if moment_of(text) is not None]


@lru_cache(maxsize=8192)
def moment_of(text: str) -> datetime | None:
    """Of a date or date-time as rows hold them; None for other text."""
    try:
        return datetime.fromisoformat(text) if len(text) in (10, 19) else None
    except ValueError:
        return None
