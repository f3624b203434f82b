"""Values that stand outside the records of a conversation, or follow from its numbers."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import isnan

from synth.rubrics.possible import NUMERIC
from synth.rubrics.reading.days import CalendarDay
from synth.rubrics.reading.readings import ValueReading, read
from synth.rubrics.statements.value_index import ValueIndex

MOST_RECKONED = 60
"""Numbers of a conversation from whose pairs almost any other follows."""

_ROUNDING = 1e-9


class ToldElsewhere:
    """What the user, the instructions and results in plain text say, read in one language."""

    def __init__(self, texts: Iterable[str], language: str, values: ValueIndex) -> None:
        """`values`: those of the records."""
        self._readings = [reading for text in texts for reading in read(text, language).readings]
        self._values = values

    def says(self, reading: ValueReading) -> bool:
        """Whether the value of a reading is told, a part of a day that is not said being any."""
        told = {*reading.numbers, *reading.minutes, *reading.days}
        return not told.isdisjoint(self._told) or any(
            _is_same_day(day, other) for day in reading.days for other in self._days
        )

    def reckons(self, reading: ValueReading) -> bool:
        """Whether the number is the sum, the difference, the product or the quotient of two of the
        conversation, or one of them with a percentage more or less. True where there are too many
        numbers to tell."""
        if len(self._numbers) > MOST_RECKONED:
            return bool(reading.numbers)
        step = (0.5 * 10.0**-reading.decimals if reading.decimals else 0.0) + _ROUNDING
        return any(
            abs(abs(number) - result) <= step
            for number in reading.numbers
            for result in _around(self._results, abs(number), 2 * step)
        )

    @cached_property
    def _told(self) -> frozenset[float | CalendarDay]:
        return frozenset(
            value
            for other in self._readings
            for value in (*other.numbers, *other.minutes, *other.days)
        )

    @cached_property
    def _days(self) -> frozenset[CalendarDay]:
        return frozenset(day for other in self._readings for day in other.days)

    @cached_property
    def _numbers(self) -> frozenset[float]:
        spelled = (float(text) for text in self._values.texts if NUMERIC.fullmatch(text))
        said = (n for other in self._readings if other.kind == "number" for n in other.numbers)
        return frozenset(abs(float(n)) for n in (*self._values.numbers, *spelled, *said))

    @cached_property
    def _results(self) -> list[float]:
        """Of each two numbers, without signs, in order."""
        pairs = ((a, b) for a in self._numbers for b in self._numbers)
        found = {abs(result) for a, b in pairs for result in _results(a, b)}
        return sorted(result for result in found if not isnan(result))


def _results(a: float, b: float) -> tuple[float, ...]:
    part = a * b / 100
    return (a + b, a - b, a * b, a / (b or 1.0), part, a - part, a + part)


def _around(ordered: Sequence[float], number: float, within: float) -> Sequence[float]:
    start = bisect_left(ordered, number - within)
    return ordered[start : bisect_right(ordered, number + within)]


def _is_same_day(a: CalendarDay, b: CalendarDay) -> bool:
    """Whether two days can be one, a part that is not said being any."""
    return all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))
