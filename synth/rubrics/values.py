"""When two values are the same, and when a value stands in a text meant for people.

Numbers compare as numbers (1200.5 is "1,200.50"), dates in either spelling (2026-03-04 is
"March 4, 2026"), ids and words without regard to case, Markdown marks and runs of spaces. What a
text says by way of values is read by `synth.rubrics.reading`.
"""

import math
import re
from datetime import date, datetime
from typing import Any

from synth.rubrics.reading.days import CalendarDay
from synth.rubrics.reading.locales import cleaned, language_of
from synth.rubrics.reading.readings import TextReadings, ValueReading, read

_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:[Zz]|[+-]\d{2}:\d{2})?)?"
)
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::00)?")
_HAN = re.compile(r"[\u4e00-\u9fff]")


def same_value(expected: Any, actual: Any, *, ordered: bool = True) -> bool:
    """Equal as people would say: numbers by value, text by words, rows by field.

    `ordered=False` compares lists as bags, at every depth.
    """
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return math.isclose(expected, actual, rel_tol=1e-9, abs_tol=1e-6)
    if isinstance(expected, str) and isinstance(actual, str):
        return expected == actual or _plain(expected) == _plain(actual)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            same_value(value, actual[key], ordered=ordered) for key, value in expected.items()
        )
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        if len(expected) != len(actual):
            return False
        if ordered:
            pairs = zip(expected, actual, strict=True)
            return all(same_value(e, a, ordered=True) for e, a in pairs)
        return _same_bag(list(expected), list(actual))
    return expected is None and actual is None


def _same_bag(expected: list[Any], actual: list[Any]) -> bool:
    """Greedy pairing: sameness is as good as transitive here, so greedy finds a pairing."""
    rest = list(actual)
    for value in expected:
        for i, candidate in enumerate(rest):
            if same_value(value, candidate, ordered=False):
                del rest[i]
                break
        else:
            return False
    return True


def _plain(text: str) -> str:
    """Lower case, single spaces, no quotes or full stop around it."""
    return " ".join(text.casefold().split()).strip(" .!'\"\u2018\u2019\u201c\u201d")


def mentions(text: str, value: str | int | float) -> bool:
    """Whether `value` stands in `text`, in any usual spelling of a number, date, time or word of
    the text's language."""
    said = read(text, language_of(text))
    if isinstance(value, int | float):
        return any(is_number(reading, value) for reading in said.readings)
    if moment := moment_of(value):
        return any(is_day(reading, moment) for reading in said.of("date")) and (
            len(value) <= 10
            or any(is_time(reading, minutes_of(moment)) for reading in said.of("time"))
        )
    if clock := _CLOCK.fullmatch(value):
        minutes = int(clock[1]) * 60 + int(clock[2])
        if any(is_time(reading, minutes) for reading in said.of("time")):
            return True
    return find_words(said, value) is not None


def is_number(reading: ValueReading, value: float) -> bool:
    """Exactly, or rounded to two decimals or more; 0.15 also as 15%."""
    if reading.kind != "number" or not reading.is_sure:
        return False
    said = reading.numbers[0]
    rounded = round(value, reading.decimals) if reading.decimals >= 2 else value
    return close(said, rounded) or (reading.unit == "percent" and close(said / 100, value))


def is_day(reading: ValueReading, day: date) -> bool:
    """A date without a year is taken for the one meant."""
    return reading.is_sure and any(fits_day(said, day) for said in reading.days)


def fits_day(said: CalendarDay, day: date) -> bool:
    """Whether every part that is said is the day's."""
    own = (day.year, day.month, day.day)
    return any(said) and all(part in (None, mine) for part, mine in zip(said, own, strict=True))


def is_time(reading: ValueReading, minutes: int) -> bool:
    return reading.kind == "time" and reading.minutes[0] == minutes


def close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def moment_of(value: str) -> datetime | None:
    """ISO date or date and time, else None."""
    if not _ISO.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value.upper()).replace(tzinfo=None)
    except ValueError:
        return None


def minutes_of(moment: datetime) -> int:
    """Since midnight."""
    return moment.hour * 60 + moment.minute


def find_words(said: TextReadings, value: str) -> re.Match[str] | None:
    """The words of the value in a text, as whole words, with '_', '-' and spaces taken for each
    other: 'in_progress' is 'in progress', 'checkup' is 'check-up'. One letter counts in its own
    case only."""
    needle = cleaned(value).strip(" .\n")
    parts = [part for part in re.split(r"[\s_-]+", needle) if part]
    if not parts:
        return None
    if len(needle) == 1:
        return re.search(rf"(?<!\w){re.escape(needle)}(?![\w'])", said.text)
    words = r"[\s_-]*".join("-?".join(map(re.escape, part.lower())) for part in parts)
    if _HAN.search(needle):
        return re.search(words, said.lower)
    start = r"(?<!\w)" if needle[0].isalnum() else ""  # +05:45 ends a moment
    return re.search(rf"{start}{words}(?!\w)", said.lower)


def squeezed(text: str) -> str:
    """Letters and digits only, in lower case: however an id is grouped."""
    return re.sub(r"[\W_]+", "", text.lower())


def shape_of(name: str) -> str:
    """`LP-58213` and `LP-58231` have one shape: LP-00000."""
    return re.sub(r"\d", "0", name)


def dates_in(text: str) -> list[tuple[int | None, int, int]]:
    """(year or None, month, day) of every date in a text; slashed ones in both readings."""
    return [
        (year, month, day)
        for reading in read(text, language_of(text)).of("date")
        if reading.is_sure
        for year, month, day in reading.days
        if month and day
    ]


def number_words(text: str) -> list[float]:
    """The numbers that a text spells out."""
    return [
        reading.numbers[0]
        for reading in read(text, language_of(text)).of("number")
        if reading.is_sure and not any(map(str.isdigit, reading.words))
    ]
