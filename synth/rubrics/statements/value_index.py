"""An index over many stored values: which of them a text names or tells, without comparing it with
each. It finds what `comparing` would find one by one."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from datetime import date
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from synth.rubrics.possible import FACTORS, parts_of_text
from synth.rubrics.reading.days import CalendarDay
from synth.rubrics.reading.readings import TextReadings, ValueReading
from synth.rubrics.statements.comparing import (
    CENTURY,
    clocks_in_text,
    could_be,
    numbers_in_text,
    speaks_of,
)
from synth.rubrics.values import minutes_of, moment_of

SHORT_NAME = 3
"""Characters of a text that may be looked for in a statement."""

LONG_NAME = 60

_GRAM = 3
"""Characters by whose first occurrence names are looked up; shorter names by all of theirs."""

_SLACK = 1e-8
"""Share by which `close` numbers lie apart at most, with room to spare."""


def is_name(value: Any) -> bool:
    """Whether a stored value is a text that a statement may name as it stands."""
    if not isinstance(value, str) or len(value) > LONG_NAME:
        return False
    shortest = SHORT_NAME if value.isascii() else SHORT_NAME - 1  # a Chinese name has two letters
    return len(value) >= shortest and not value[0].isdigit()


class _SortedNumbers(NamedTuple):
    """Stored numbers in the order of a key."""

    keys: list[float]
    values: list[float]

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float]]) -> "_SortedNumbers":
        ordered = sorted(pairs)
        return cls([key for key, _ in ordered], [value for _, value in ordered])

    def near(self, key: float, within: float) -> list[float]:
        if math.isinf(key):
            within = 0.0
        start = bisect_left(self.keys, key - within)
        return self.values[start : bisect_right(self.keys, key + within)]


class ValueIndex:
    """Texts and numbers of a conversation, each once."""

    def __init__(self, values: Collection[Any], names: Collection[Any]) -> None:
        """`names`: those of the values that may stand in a statement as words."""
        self.texts = [value for value in values if isinstance(value, str)]
        self._values = values
        self._names = names

    def named_in(self, said: TextReadings) -> Iterator[str]:
        """The names that stand in the statement, whatever their case."""
        lower = said.lower
        for size in (SHORT_NAME - 1, _GRAM):
            grams = {lower[i : i + size] for i in range(len(lower) - size + 1)}
            for gram in grams & self._names_by_gram.keys():
                for own, name in self._names_by_gram[gram]:
                    if own in lower:
                        yield name

    def told_by(self, reading: ValueReading) -> Iterator[Any]:
        """The values that the reading says (`speaks_of`)."""
        for day in reading.days:
            yield from self._moments_by_day.get(day, ())
        if reading.kind == "time":
            yield from self._texts_by_clock.get(reading.minutes[0], ())
        elif reading.kind == "number":
            said = reading.numbers[0]
            rounded = 0.5 * 10.0**-reading.decimals if reading.decimals else 0.0
            near = self._numbers.near(said, rounded + _slack(said))
            if reading.unit == "percent":
                near = [*near, *self._numbers.near(said / 100, rounded + _slack(said / 100))]
            yield from (value for value in near if speaks_of(reading, value))

    def may_hold(self, reading: ValueReading) -> bool:
        """Whether the reading could be any of the values (`could_be`)."""
        if any(day in self._moments_by_day for day in reading.days):
            return True
        if not self._minutes.isdisjoint(reading.minutes):
            return True
        if not self._numbers_in_texts.isdisjoint(reading.numbers):
            return True
        near = (value for number in reading.numbers for value in self._near(number))
        return any(could_be(reading, value) for value in near)

    def _near(self, number: float) -> Iterator[float]:
        """The stored numbers that a number could be, and others."""
        yield from self._magnitudes.near(abs(number), 1 + _slack(number))
        yield from self._in_century.near(number, _slack(number))
        for factor in FACTORS:
            yield from self._numbers.near(number / factor, _slack(number))
            yield from self._numbers.near(number * factor, _slack(number * factor))

    @cached_property
    def numbers(self) -> list[float]:
        """The stored numbers that a float can hold."""
        return [value for value in self._values if not isinstance(value, str) and _is_sized(value)]

    @cached_property
    def _numbers(self) -> _SortedNumbers:
        return _SortedNumbers.of((float(value), value) for value in self.numbers)

    @cached_property
    def _magnitudes(self) -> _SortedNumbers:
        return _SortedNumbers.of((abs(float(value)), value) for value in self.numbers)

    @cached_property
    def _in_century(self) -> _SortedNumbers:
        sized = (value for value in self.numbers if not math.isinf(value))
        return _SortedNumbers.of((float(value % CENTURY), value) for value in sized)

    @cached_property
    def _names_by_gram(self) -> dict[str, list[tuple[str, str]]]:
        """First characters in lower case -> (name in lower case, name)."""
        found: dict[str, list[tuple[str, str]]] = {}
        for name in filter(is_name, self._names):
            own = name.lower()
            found.setdefault(own[:_GRAM], []).append((own, name))
        return found

    @cached_property
    def _moments_by_day(self) -> dict[CalendarDay, list[str]]:
        """Every way of saying a part of a day -> the stored dates and moments that it fits."""
        found: dict[CalendarDay, list[str]] = {}
        for text in self.texts:
            if moment := moment_of(text):
                for day in _ways_of_saying(moment):
                    found.setdefault(day, []).append(text)
        return found

    @cached_property
    def _texts_by_clock(self) -> dict[int, list[str]]:
        """Minutes since midnight -> the texts that are this time of day and nothing else."""
        found: dict[int, list[str]] = {}
        for text in self.texts:
            parts = parts_of_text(text)
            if len(parts) == 1 and isinstance(parts[0], int):
                found.setdefault(parts[0], []).append(text)
        return found

    @cached_property
    def _minutes(self) -> frozenset[int]:
        moments = (minutes_of(moment) for text in self.texts if (moment := moment_of(text)))
        return frozenset(moments).union(*map(clocks_in_text, self._others))

    @cached_property
    def _numbers_in_texts(self) -> frozenset[float]:
        return frozenset[float]().union(*map(numbers_in_text, self._others))

    @cached_property
    def _others(self) -> list[str]:
        """The texts that are no date or moment."""
        return [text for text in self.texts if moment_of(text) is None]


def _ways_of_saying(day: date) -> Iterator[CalendarDay]:
    """With and without year, month and day of the month, but for all three left out."""
    ways = product((day.year, None), (day.month, None), (day.day, None))
    return (way for way in ways if any(way))


def _slack(number: float) -> float:
    return _SLACK * max(1.0, abs(number))


def _is_sized(value: float) -> bool:
    """Whether a float can hold the number, and it is one."""
    try:
        return not math.isnan(value)
    except OverflowError:  # a whole number of several hundred digits
        return False
