"""What a text says by way of values: its numbers, amounts, dates, times and ids, each with its
place."""

import re
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from typing import Literal, NamedTuple

from synth.rubrics.reading.clock import times_in
from synth.rubrics.reading.days import CalendarDay, days_in
from synth.rubrics.reading.locales import LETTER, Locale, cleaned, locale, lowered
from synth.rubrics.reading.written import WrittenNumber, numbers_in

ReadingKind = Literal["number", "date", "time", "id"]

READ_IN = "en"
"""Table by which a text is read whose language is not known."""

_ID = re.compile(
    rf"(?<![{LETTER}A-Z\d_-])(?=[A-Za-z\d_-]*\d)(?=[A-Za-z\d_-]*[A-Za-z])"
    rf"[A-Za-z\d]+(?:[-_][A-Za-z\d]+)*(?![{LETTER}A-Z\d])"
)
_NO_ID = re.compile(r"\d+-?[a-z]{1,12}|\d+(?:-[a-z]+)+|[a-z]{3,}-\d{1,2}|\d+[A-Z]?[a-z]{1,3}")
"""5pm, 28th, 23kg, 16-digit, mid-20: numbers with a word."""
_PHONE = re.compile(r"(?<![\d-])\+?\d+(?:-\d+){2,}(?!\d)|(?<![\d-])\d{5,}-\d+|(?<!\d)\d+-0\d{2,}")
_SYMBOL = re.compile(
    r"(?:us\$|a\$|c\$|[$\u20ac\u00a3\u00a5\u20b9]|\b(?:eur|usd|gbp|chf|cny|rmb|jpy|cad|aud|mxn|sek)(?![a-z]))"
)
_SYMBOL_BEFORE = re.compile(rf"{_SYMBOL.pattern} ?-?$")
_SYMBOL_AFTER = re.compile(rf" ?{_SYMBOL.pattern}")
_NEGATIVE = re.compile(r"(?:^|(?<=[\s(:|\x00]))- ?(?:[$\u20ac\u00a3] ?)?$")
_HUNDRED = 100
_UNITS = (("percent", "percent"), ("currencies", "money"), ("hundredths", "money"), ("units", ""))
"""Words that may follow a number -> the unit that they make it; a unit of time is its own."""


class ValueReading(NamedTuple):
    start: int
    end: int
    """Place in the cleaned text."""
    kind: ReadingKind
    words: str
    """As it is said."""
    numbers: tuple[float, ...] = ()
    """What the number is, the likely value first."""
    days: tuple[CalendarDay, ...] = ()
    minutes: tuple[int, ...] = ()
    """Of a time, since midnight, what is said first."""
    unit: str = ""
    """Of a number: percent, money, or a unit of time; empty for a plain one."""
    is_sure: bool = True
    """Whether it says its first value and no other."""
    decimals: int = 0


class TextReadings(NamedTuple):
    text: str
    """Cleaned; what the places refer to."""
    lower: str
    table: Locale
    readings: tuple[ValueReading, ...]
    """In their order, none within another."""

    def of(self, kind: ReadingKind) -> Iterator[ValueReading]:
        return (reading for reading in self.readings if reading.kind == kind)


@lru_cache(maxsize=1024)
def read(text: str, language: str | None = None, today: date | None = None) -> TextReadings:
    """All values of a text. `today`: the day of the conversation, which relative dates need; those
    that need it and lack it are read as days that are not known."""
    table = locale(language or READ_IN)
    text = cleaned(text)
    lower = lowered(text)
    left = lower
    found: list[ValueReading] = []
    for day in days_in(lower, table, today):
        words = text[day.start : day.end]
        found.append(
            ValueReading(day.start, day.end, "date", words, days=day.days, is_sure=day.is_sure)
        )
        if day.clock is not None:
            found.append(ValueReading(day.end, day.end, "time", words, minutes=(day.clock,)))
        left = _without(left, day.start, day.end)
    for weekday in re.finditer(table.patterns["weekdays"], left):
        left = _without(left, *weekday.span())
    for time in times_in(left, table):
        minutes = (time.minutes,) if time.other is None else (time.minutes, time.other)
        words = text[time.start : time.end]
        found.append(ValueReading(time.start, time.end, "time", words, minutes=minutes))
        left = _without(left, time.start, time.end)
    for start, end in _ids(text, left):
        found.append(ValueReading(start, end, "id", text[start:end]))
        left = _without(left, start, end)
    found += _numbers(text, left, table)
    return TextReadings(text, lower, table, tuple(sorted(found, key=lambda r: (r.start, r.end))))


def _without(text: str, start: int, end: int) -> str:
    return f"{text[:start]}{chr(0) * (end - start)}{text[end:]}"


def _ids(text: str, left: str) -> Iterator[tuple[int, int]]:
    if not any(map(str.isdigit, text)):
        return
    for match in _ID.finditer(text):
        start, end = match.span()
        if "\x00" not in left[start:end] and not _NO_ID.fullmatch(match[0]):
            yield start, end
            left = _without(left, start, end)
    for match in _PHONE.finditer(left):
        yield match.span()


def _numbers(text: str, left: str, table: Locale) -> list[ValueReading]:
    numbers = numbers_in(left, table)
    found: list[ValueReading] = []
    skipped = False
    for place, number in enumerate(numbers):
        if skipped or (found and number.start < found[-1].end):
            skipped = False
            continue
        following = numbers[place + 1] if place + 1 < len(numbers) else None
        reading, skipped = _number(text, left, number, following, table)
        found.append(reading)
    for match in table.patterns["nothing"].finditer(left):
        words = text[match.start() : match.end()]
        found.append(
            ValueReading(match.start(), match.end(), "number", words, numbers=(0.0,), unit="money")
        )
    return found


def _number(
    text: str,
    left: str,
    number: WrittenNumber,
    following: WrittenNumber | None,
    table: Locale,
) -> tuple[ValueReading, bool]:
    """A number with its sign and unit, and whether the number that follows is part of it."""
    start, end, value = number.start, number.end, number.value
    others = [] if number.other is None else [number.other]
    before, unit, small = left[max(0, start - 6) : start], "", None
    if symbol := _SYMBOL_BEFORE.search(before):
        unit, start = "money", start - (len(before) - symbol.start())
    after, unit_after = _unit_after(left, end, table)
    if unit_after and not unit:
        unit, end = unit_after, after
    if unit == "money" and following is not None:
        small = _hundredths(left, end, following, table)
    if _NEGATIVE.search(left[max(0, start - 3) : number.start]):
        others, value = [value, *others], -value
    skipped = small is not None
    if small is not None:
        others, value = [value, *others], value + small.value / _HUNDRED
        end = small.end
    elif unit == "money" and _is_hundredth(left[number.end : end], table):
        others, value = [value, *others], value / _HUNDRED
    reading = ValueReading(
        start,
        end,
        "number",
        text[start:end],
        numbers=(value, *others),
        unit=unit,
        is_sure=not number.is_article,
        decimals=number.decimals,
    )
    return reading, skipped


def _unit_after(left: str, end: int, table: Locale) -> tuple[int, str]:
    """(end of the unit, its kind) after a number; (end, "") where there is none."""
    if match := _SYMBOL_AFTER.match(left, end):
        return match.end(), "money"
    place = end + (left[end : end + 1] in (" ", "-"))
    for name, kind in _UNITS:
        if match := table.patterns[name].match(left, place):
            return match.end(), kind or table.units[match[0]]
    return end, ""


def _is_hundredth(words: str, table: Locale) -> bool:
    return table.patterns["hundredths"].fullmatch(words.strip()) is not None


def _hundredths(
    left: str, end: int, following: WrittenNumber, table: Locale
) -> WrittenNumber | None:
    """The fifty of "thirty-six pounds fifty", the 50 of "12 Euro und 50 Cent"."""
    between = left[end : following.start]
    if not re.fullmatch(r" (?:(?:and|und|con|y|et) )?", between) or following.decimals:
        return None
    if not 0 < following.value < _HUNDRED or following.is_article:
        return None
    after, unit = _unit_after(left, following.end, table)
    if _is_hundredth(left[following.end : after], table):
        return following._replace(end=after)
    rest = left[following.end : following.end + 2]
    return following if not unit and re.match(r"[.,;:!?)]?(?:\s|$)", rest) else None
