"""What a text could mean by way of a value: rounded, in other units, summed up, or vaguely.

Code says that a value was not told only where nothing here finds it, so everything errs on the side
of finding too much.
"""

import itertools
import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache

from synth.rubrics.criteria import CheckedScalar
from synth.rubrics.reading.clock import DAY
from synth.rubrics.reading.locales import locale
from synth.rubrics.reading.readings import TextReadings, ValueReading, read
from synth.rubrics.values import close, fits_day, is_day, is_time, minutes_of, moment_of, squeezed

SMALL = 12
"""Up to here a whole number may be told by a list or a word (both, a pair), so that it is never
plainly missing."""

ROUGHLY = 0.1
"""Share by which a number may be off that is called a rough one."""

FACTORS = (7, 12, 24, 30, 52, 60, 100, 365, 1000, 3600, 10_000)
"""Between units that people exchange."""

MOST_SUMMED = 24
"""Numbers of a conversation whose sums, differences and products are looked at."""

MOST_SHARES = 50
"""Parts of a value that people count up one by one."""

LEAST_DIGITS = 3
"""Of an id that nobody tells in other words."""

NUMERIC = re.compile(r"-?\d+(?:\.\d+)?")
"""A number that is stored as text."""

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?")
_SPAN = re.compile(rf"{_CLOCK.pattern} ?(?:-|\u2013|to) ?{_CLOCK.pattern}")
_FRACTION = re.compile(r"[\u00bc-\u00be\u2150-\u215e]")
_MEASURED = re.compile(r"\d[ -]?(?=[^\W\d_]|\u00b0)")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_TIMES = ("seconds", "minutes", "hours", "days", "weeks", "months", "years")
_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_ZONED = re.compile(r".*\d(?:[Zz]|[+-]\d{2}:\d{2})")


def parts_of_text(value: str) -> list[date | int]:
    """The day and the minutes since midnight that a stored value holds; empty for other text."""
    if moment := moment_of(value):
        return [moment.date()] if len(value) <= 10 else [moment.date(), minutes_of(moment)]
    if match := _SPAN.fullmatch(value):
        hours = [int(part) for part in match.groups()]
        return [hours[0] * 60 + hours[1], hours[2] * 60 + hours[3]]
    if match := _CLOCK.fullmatch(value):
        return [int(match[1]) * 60 + int(match[2])]
    return []


def says_part(reading: ValueReading, part: date | int) -> bool:
    return is_time(reading, part) if isinstance(part, int) else is_day(reading, part)


def could_be_told(value: CheckedScalar, replies: Sequence[TextReadings]) -> bool:
    """Whether anything that was said could be the value: rounded, in other units, summed up, or in
    words that are not read here. True of all text that is no id, which has too many wordings."""
    if isinstance(value, int | float):
        return _could_be_number(value, replies)
    if parts := parts_of_text(value):
        zoned = _ZONED.fullmatch(value) is not None or any(
            isinstance(part, int) and _finds("zones", said) for part in parts for said in replies
        )
        return zoned or all(_could_be_part(part, replies) for part in parts)
    if NUMERIC.fullmatch(value) and _could_be_number(float(value), replies):
        return True
    return not _is_identifier(value) or _could_be_id(value, replies)


def _is_identifier(value: str) -> bool:
    """One word with several digits that is read as an id and as nothing else."""
    if sum(map(str.isdigit, value)) < LEAST_DIGITS:
        return False
    readings = read(value).readings
    return value.isdigit() or [r.words for r in readings if r.kind == "id"] == [value]


def _could_be_id(value: str, replies: Sequence[TextReadings]) -> bool:
    """Told without its marks, by its last digits or its number alone, or digit by digit."""
    if squeezed(value)[-4:] in squeezed("".join(said.lower for said in replies)):
        return True
    numbers = [number for said in replies for r in said.of("number") for number in r.numbers[:1]]
    spelled = "".join(str(int(number)) for number in numbers)
    return "".join(filter(str.isdigit, value)) in spelled


def _could_be_number(value: float, replies: Sequence[TextReadings]) -> bool:
    if value == int(value) and abs(value) <= SMALL:
        return True
    numbers: list[ValueReading] = []
    for said in replies:
        if _finds("parts", said) or _FRACTION.search(said.text):
            return True
        if value in _ordinals(said.table.code, said.lower):
            return True
        if _is_share(value, said) or _is_measured(said.table.code, said.lower):
            return True
        rough = _finds("estimates", said)
        for reading in said.readings:
            if _holds_number(reading, value) or any(
                _rounds(value, number, reading.decimals, rough) for number in reading.numbers
            ):
                return True
        numbers += said.of("number")
    if any(_converts(value, reading) for reading in numbers):
        return True
    told = [number for reading in numbers for number in reading.numbers]
    return _reckoned(value, told[:MOST_SUMMED])


def _is_share(value: float, said: TextReadings) -> bool:
    """Whether a number is told for each of several, and comes to the value for some of them."""
    if not _finds("shares", said):
        return False
    numbers = (number for reading in said.of("number") for number in reading.numbers if number)
    return any(
        close(value / number, round(value / number)) and abs(value / number) <= MOST_SHARES
        for number in numbers
    )


def _finds(what: str, said: TextReadings) -> bool:
    return _finds_in(said.table.code, what, said.lower)


# replies are asked about once for each value that may be missing, so the answers are kept


@lru_cache(maxsize=128)
def _finds_in(code: str, what: str, text: str) -> bool:
    return locale(code).find(what, text)


@lru_cache(maxsize=32)
def _ordinals(code: str, text: str) -> frozenset[int]:
    """The numbers that a text gives as ordinals."""
    table = locale(code)
    return frozenset(table.ordinals[word] for word in table.patterns["ordinals"].findall(text))


@lru_cache(maxsize=32)
def _is_measured(code: str, text: str) -> bool:
    """Whether a number is told in a unit of measurement, which may be another than the value's."""
    measures = locale(code).patterns["measures"]
    return any(measures.match(text, match.end()) for match in _MEASURED.finditer(text))


def _holds_number(reading: ValueReading, value: float) -> bool:
    """Whether the number is part of a date, a time or an id, or in characters that are read only
    roughly."""
    if reading.kind == "date":
        return any(value in (year, day) for year, _, day in reading.days)
    if reading.kind == "time":
        return any(minutes in (value * 60 % DAY, value) for minutes in reading.minutes)
    if reading.kind == "id":
        return value == int(value) and str(abs(int(value))) in reading.words
    is_chinese = len(reading.words) > 1 and _HAN.search(reading.words) is not None
    return is_chinese and not any(map(str.isdigit, reading.words))


def _converts(value: float, reading: ValueReading) -> bool:
    """Whether the number is the value in another unit, or a year without its century."""
    if _FIRST_YEAR <= value < _LAST_YEAR and value % 100 in reading.numbers:
        return True
    if reading.unit == "months" and any(28 * n <= value <= 31 * n for n in reading.numbers):
        return True
    step = 10.0**-reading.decimals if reading.decimals else 0.0  # 1.2k is 1240, too
    return any(
        close(value, number * factor)
        or close(value * factor, number)
        or abs(value - number * factor) < step * factor
        for number in reading.numbers
        for factor in FACTORS
        if number and (reading.unit in _TIMES or abs(number) > SMALL or number != int(number))
    )


def _rounds(value: float, number: float, decimals: int, rough: bool) -> bool:
    """Whether the number is the value rounded, in the precision in which it is written."""
    if close(abs(value), abs(number)):
        return True
    step = 10.0**-decimals
    if not decimals and number:
        digits = str(int(abs(number)))
        step = 10.0 ** (len(digits) - len(digits.rstrip("0")))
    near = abs(abs(value) - abs(number))
    rounded = step > 1 or value != round(value, decimals)
    return (rounded and near < step) or (rough and near <= ROUGHLY * abs(value))


def _reckoned(value: float, numbers: Sequence[float]) -> bool:
    """Whether two of the numbers, or all of them, come to the value."""
    return close(sum(numbers), value) or any(
        any(close(abs(value), abs(result)) for result in (a + b, a - b, a * b, a * b / 100))
        or any(close(value, result) for result in (a * 100 + b, a + b / 100))  # two seventy-five
        or (a and close(value, b / a))
        or (b and close(value, a / b))
        for a, b in itertools.combinations(numbers, 2)
    )


def _could_be_part(part: date | int, replies: Sequence[TextReadings]) -> bool:
    """Of a day: weekdays, days by their number, spans of days. Of a time: hours by their number."""
    for said in replies:
        if isinstance(part, int):
            vague = _finds("parts", said) or _finds("halves", said)
            could = any(_could_be_time(reading, part) for reading in said.readings)
        else:
            vague = _finds("vague_days", said) or _names_month(said, part)
            could = any(_could_be_day(reading, part) for reading in said.readings)
        if vague or could:
            return True
    return False


def _could_be_time(reading: ValueReading, minutes: int) -> bool:
    if reading.kind == "time":
        return minutes in reading.minutes
    if reading.unit in ("hours", "minutes"):
        return True
    hour, minute = divmod(minutes, 60)
    hours = {h for near in (hour, hour + 1) for h in (near, near % 12, near % 12 or 12)}
    spelled = {hour + minute / 100, hour * 100 + minute, *hours}  # 20.15, 2015
    return not reading.unit and any(number in spelled for number in reading.numbers)


def _could_be_day(reading: ValueReading, day: date) -> bool:
    if reading.kind == "date":
        return not reading.days or any(fits_day(said, day) for said in reading.days)
    spans = reading.unit in ("days", "weeks", "months")
    return spans or any(number == day.day for number in reading.numbers)


def _names_month(said: TextReadings, day: date) -> bool:
    """Whether the day's month is named without a day."""
    return any(
        said.table.months[match[0]] == day.month
        and not any(r.start <= match.start() < r.end for r in said.of("date"))
        for match in said.table.patterns["months"].finditer(said.lower)
    )
