"""Times of day as they are written: 20:15, 8:15 pm, half past eight, 20 Uhr, las ocho y media."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from synth.rubrics.reading.locales import Locale, parts_of
from synth.rubrics.reading.written import value_of

DAY = 24 * 60
"""Minutes."""

NOON = 12 * 60

_PLAIN = re.compile(r"(?<![\d:.,])([01]?\d|2[0-4]):([0-5]\d)(?::[0-5]\d)?(?![\d:])")
_HOUR_BEFORE = re.compile(r"(?<![\d:.,])(\d{1,2})(?::([0-5]\d))?(?P<end>)(?: ?uhr| ?h)? ?$")


class WrittenTime(NamedTuple):
    start: int
    end: int
    minutes: int
    """Since midnight, as it is said."""
    other: int | None = None
    """The same hour of the other half of the day, where none is said."""


def times_in(text: str, table: Locale) -> list[WrittenTime]:
    """The times of a text that is cleaned and in lower case, longer spellings first."""
    found: list[WrittenTime] = []

    def take(time: WrittenTime | None) -> None:
        if time and not any(t.start < time.end and time.start < t.end for t in found):
            found.append(time)

    said = [(m, added) for pattern, added in table.times for m in pattern.finditer(text)]
    for match, added in sorted(said, key=lambda pair: pair[0].start() - pair[0].end()):
        take(_time(match, added, table))
    for name, minutes in (("noon", NOON), ("midnight", 0)):
        for match in table.patterns[name].finditer(text):
            take(WrittenTime(match.start(), match.end(), minutes))
    for match in _PLAIN.finditer(text):
        minutes = int(match[1]) * 60 + int(match[2])
        take(_of_day(match, minutes % DAY, explicit=int(match[1]) > 12 or match[1][0] == "0"))
    for time in list(found):
        take(_start_of_span(text, time, table))
    return sorted(found)


def _time(match: re.Match[str], added: int, table: Locale) -> WrittenTime | None:
    parts = parts_of(match)
    hour, minute = (value_of(parts.get(name, "0"), table) for name in ("hour", "minute"))
    if hour is None or minute is None or hour > 24 or minute > 59:
        return None
    minutes = int(hour) * 60 + int(minute) + added
    if "pm" in parts and hour < 12:
        minutes += NOON
    if "am" in parts and hour == 12:
        minutes -= NOON
    said = "half" in parts or not 1 <= hour <= 12
    spelled_24 = parts["hour"].startswith("0") and parts["hour"] != "0"
    return _of_day(match, minutes % DAY, explicit=said or spelled_24)


def _of_day(match: re.Match[str], minutes: int, *, explicit: bool) -> WrittenTime:
    other = None if explicit else (minutes + NOON) % DAY
    return WrittenTime(match.start(), match.end(), minutes, other)


def _start_of_span(text: str, end: WrittenTime, table: Locale) -> WrittenTime | None:
    """The 1 of "1 to 5 pm", the 13 of "13-17 Uhr": an hour that takes its half from the end."""
    before = text[: end.start]
    joint = next(_joints(before, table), None)
    if joint is None or (match := _HOUR_BEFORE.search(before[:joint])) is None:
        return None
    hour, minute = int(match[1]), int(match[2] or 0)
    if hour > 24:
        return None
    minutes = hour * 60 + minute
    if end.minutes >= NOON and hour < 12 and minutes + NOON < end.minutes and end.other is None:
        minutes += NOON
    explicit = hour > 12 or end.other is None
    return WrittenTime(
        match.start(), match.end("end"), minutes % DAY, None if explicit else (minutes + NOON) % DAY
    )


def _joints(before: str, table: Locale) -> Iterator[int]:
    """Where the word that joins the two ends of a span begins, if one stands last."""
    stripped = before.rstrip()
    for match in table.patterns["to"].finditer(stripped[-12:]):
        if match.end() == len(stripped[-12:]):
            yield len(stripped) - len(stripped[-12:]) + match.start()
