"""Dates as they are written: in digits, with the month's name, and relative to the day of the
conversation."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple

from synth.rubrics.reading.locales import Locale, parts_of
from synth.rubrics.reading.written import value_of

CalendarDay = tuple[int | None, int | None, int | None]
"""(year, month, day); a part is None where it is not said. All None: some day that is not known."""

_ISO = re.compile(
    r"(?<![\d-])(\d{4})[-/.](\d{2})[-/.](\d{2})"
    r"(?:[t ](\d{2}):(\d{2})(?::\d{2}(?:\.\d+)?)?(?:z\b|[+-]\d{2}:\d{2})?)?(?![\d-])"
)
_SLASHED = re.compile(r"(?<![\d/.-])(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?![\d/-]|\.\d)")
_MARKED = re.compile(r"\d[/.-]\d")
_SHORT = re.compile(r"(?<![\d/.-])(\d{1,2})/(\d{1,2})(?![\d/])")
_DAYS = {"days": 1, "weeks": 7}


class WrittenDay(NamedTuple):
    start: int
    end: int
    days: tuple[CalendarDay, ...]
    """What it is; several where it can be read in several ways, none where it is not known."""
    is_sure: bool
    """Whether it names a day by month and day, or by a word that leaves no choice (tomorrow)."""
    clock: int | None = None
    """Minutes since midnight, where a date in ISO's form goes on with a time."""


def days_in(text: str, table: Locale, today: date | None) -> list[WrittenDay]:
    """The dates of a text that is cleaned and in lower case. The same words are read once."""
    found: list[WrittenDay] = []
    for reading in (*_iso(text), *_named(text, table), *_slashed(text)):
        if not any(r.start < reading.end and reading.start < r.end for r in found):
            found.append(reading)
    relative = sorted(_relative(text, table, today), key=lambda r: r.start - r.end)
    for reading in (*relative, *_weekdays(text, table, today)):
        if not any(r.start < reading.end and reading.start < r.end for r in found):
            found.append(reading)
    named = [r for r in found if r.is_sure]
    return sorted(
        r for r in found if r.is_sure or not any(_beside(r, other, text) for other in named)
    )


def _beside(weekday: WrittenDay, other: WrittenDay, text: str) -> bool:
    """Friday, 5 March: the weekday adds nothing to the date that it stands beside."""
    first, then = sorted((weekday, other))
    return re.fullmatch(r"[^\d.;:!?\n]{0,6}", text[first.end : then.start]) is not None


def _iso(text: str) -> Iterator[WrittenDay]:
    for m in _ISO.finditer(text):
        clock = int(m[4]) * 60 + int(m[5]) if m[4] else None
        yield WrittenDay(m.start(), m.end(), ((int(m[1]), int(m[2]), int(m[3])),), True, clock)


def _named(text: str, table: Locale) -> Iterator[WrittenDay]:
    for pattern in table.dates:
        for m in pattern.finditer(text):
            parts = parts_of(m)
            month = parts.get("month")
            number = table.months[month] if month else int(parts["month_number"])
            day = value_of(parts["day"], table)
            if day and 1 <= day <= 31 and 1 <= number <= 12:
                year = int(parts["year"]) if parts.get("year") else None
                yield WrittenDay(m.start(), m.end(), ((year, number, int(day)),), True)


def _slashed(text: str) -> Iterator[WrittenDay]:
    if not _MARKED.search(text):
        return
    for m in _SLASHED.finditer(text):
        year = int(m[4]) if len(m[4]) == 4 else 2000 + int(m[4])
        first, second = int(m[1]), int(m[3])
        days = tuple((year, a, b) for a, b in ((first, second), (second, first)) if a <= 12)
        if days and 1 <= first <= 31 and 1 <= second <= 31:
            yield WrittenDay(m.start(), m.end(), tuple(dict.fromkeys(days)), True)
    for m in _SHORT.finditer(text):
        first, second = int(m[1]), int(m[2])
        days = tuple((None, a, b) for a, b in ((first, second), (second, first)) if 1 <= a <= 12)
        if days and 4 < max(first, second) <= 31:  # 3/4 is a fraction at least as often
            yield WrittenDay(m.start(), m.end(), days, False)


def _relative(text: str, table: Locale, today: date | None) -> Iterator[WrittenDay]:
    for pattern, days in table.relative_days:
        for m in pattern.finditer(text):
            yield _from(m, days, today, is_sure=True)
    for patterns, sign in ((table.later, 1), (table.earlier, -1)):
        for pattern in patterns:
            for m in pattern.finditer(text):
                parts = parts_of(m)
                step = _DAYS.get(table.units[parts["unit"]])
                count = value_of(parts["count"], table)
                if step is None or count is None or count > 1000:
                    yield WrittenDay(m.start(), m.end(), (), False)
                else:
                    yield _from(m, sign * step * int(count), today, is_sure=True)
    for pattern in table.days_alone:
        for m in pattern.finditer(text):
            day = value_of(parts_of(m)["day"], table)
            if day and 1 <= day <= 31:
                yield WrittenDay(m.start(), m.end(), ((None, None, int(day)),), False)


def _from(match: re.Match[str], days: int, today: date | None, *, is_sure: bool) -> WrittenDay:
    if today is None:
        return WrittenDay(match.start(), match.end(), (), False)
    day = today + timedelta(days)
    return WrittenDay(match.start(), match.end(), ((day.year, day.month, day.day),), is_sure)


def _weekdays(text: str, table: Locale, today: date | None) -> Iterator[WrittenDay]:
    """A weekday alone may be any such day; without the day of the conversation, any at all."""
    for m in table.patterns["weekdays"].finditer(text):
        if len(m[0]) <= 2 and table.code == "de":  # "so", "do", "mi" are words
            continue
        days: tuple[CalendarDay, ...] = ()
        if today is not None:
            ahead = (table.weekdays[m[0]] - today.weekday()) % 7
            near = (today + timedelta(ahead + week) for week in (-7, 0, 7))
            days = tuple((day.year, day.month, day.day) for day in near)
        yield WrittenDay(m.start(), m.end(), days, False)
