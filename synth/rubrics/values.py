"""When two values are the same, and when a value stands in a text meant for people.

Numbers compare as numbers (1200.5 is "1,200.50"), dates in either spelling (2026-03-04 is
"March 4, 2026"), ids and words without regard to case, Markdown marks and runs of spaces.
"""

import math
import re
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

_MONTH_NAMES = (
    "january february march april may june july august september october november december"
)
_SMALL_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
_MONTHS: tuple[str, ...] = tuple(_MONTH_NAMES.split())
_SMALL: tuple[str, ...] = tuple(_SMALL_NUMBERS.split())
_MONTH = "|".join(f"{m}|{m[:3]}|sept" if m == "september" else f"{m}|{m[:3]}" for m in _MONTHS)
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?:[t ](\d{2}):(\d{2})(?::\d{2})?z?)?(?!\d)")
_MONTH_FIRST = re.compile(
    rf"\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:(?:,| of)? ?(\d{{4}})(?!\d))?"
)
_DAY_FIRST = re.compile(
    rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b\.?(?:,? (\d{{4}})(?!\d))?"
)
_SLASHED = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4})(?![\d/])")
_CLOCK = re.compile(
    r"(?<![\d:])(\d{1,2})(?::(\d{2})(?::\d{2})?)? ?(a\.?m\b\.?|p\.?m\b\.?)"
    r"|(?<![\d:])(\d{1,2}):(\d{2})(?::\d{2})?(?![\d:])"
)
_NUMBER = re.compile(
    r"(?<![\w.-])(-?)[$\u20ac\u00a3]?(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?![a-z_]*-?\d|\.\d)( ?%)?"
)
_TYPOGRAPHY = str.maketrans({"\u2019": "'", "\u2011": "-", "\u2212": "-", "\u202f": " "})
_WORD_NUMBER = re.compile(rf"\b({'|'.join(_SMALL)})\b")


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


def spoken(text: str) -> str:
    """A text as it is searched: lower case, no Markdown marks, single spaces, plain quotes."""
    text = re.sub(r"[*`]+", "", text.casefold())
    text = text.translate(_TYPOGRAPHY)
    return " ".join(text.split())


def mentions(text: str, value: str | int | float) -> bool:
    """Whether `value` stands in `text`, in any usual spelling of a number, date, time or word."""
    words = spoken(text)
    if isinstance(value, int | float):
        return _mentions_number(words, value)
    if moment := _moment(value):
        return _mentions_date(words, moment) and (
            len(value) <= 10 or (moment.hour, moment.minute) in set(_times(words))
        )
    return _mentions_words(words, value)


def dates_in(text: str) -> list[tuple[int | None, int, int]]:
    """(year or None, month, day) of every date in a text; slashed ones in both readings."""
    return list(_dates(spoken(text)))


def number_words(text: str) -> list[int]:
    """The numbers up to twenty that a text spells out."""
    return [_SMALL.index(m[1]) for m in _WORD_NUMBER.finditer(spoken(text))]


def _mentions_words(words: str, value: str) -> bool:
    """As whole words, with '_' and '-' taken for spaces: 'in_progress' is 'in progress'."""
    needle = " ".join(re.sub(r"[_-]+", " ", spoken(value)).split()).strip(" .")
    if not needle:
        return False
    haystack = " ".join(re.sub(r"[_-]+", " ", words).split())
    start = r"(?<!\w)" if needle[0].isalnum() else ""  # +05:45 ends a moment
    return re.search(rf"{start}{re.escape(needle)}(?!\w)", haystack) is not None


def _moment(value: str) -> datetime | None:
    """ISO date or date and time, else None."""
    if not _ISO.fullmatch(value.casefold()):
        return None
    try:
        return datetime.fromisoformat(value).replace(tzinfo=None)
    except ValueError:
        return None


def _dates(words: str) -> Iterator[tuple[int | None, int, int]]:
    """(year or None, month, day) of every date in the text; slashed ones in both readings."""
    for m in _ISO.finditer(words):
        yield int(m[1]), int(m[2]), int(m[3])
    for m in _MONTH_FIRST.finditer(words):
        yield (int(m[3]) if m[3] else None), _month(m[1]), int(m[2])
    for m in _DAY_FIRST.finditer(words):
        yield (int(m[3]) if m[3] else None), _month(m[2]), int(m[1])
    for m in _SLASHED.finditer(words):
        yield int(m[3]), int(m[1]), int(m[2])
        yield int(m[3]), int(m[2]), int(m[1])


def _month(name: str) -> int:
    return next(i for i, month in enumerate(_MONTHS, 1) if month.startswith(name[:3]))


def _mentions_date(words: str, day: date) -> bool:
    """A date without a year is taken for the one meant."""
    return any(
        (m, d) == (day.month, day.day) and y in (None, day.year) for y, m, d in _dates(words)
    )


def _times(words: str) -> Iterator[tuple[int, int]]:
    for m in _ISO.finditer(words):
        if m[4]:
            yield int(m[4]), int(m[5])
    for m in _CLOCK.finditer(words):
        if m[3]:
            yield int(m[1]) % 12 + (12 if m[3].startswith("p") else 0), int(m[2] or 0)
        else:
            yield int(m[4]), int(m[5])


def _without_dates(words: str) -> str:
    for pattern in (_ISO, _MONTH_FIRST, _DAY_FIRST, _SLASHED, _CLOCK):
        words = pattern.sub(" ", words)
    return words


def _mentions_number(words: str, value: float) -> bool:
    """Exactly, or rounded to two decimals or more; 0.15 also as 15%.

    Digits inside ids, versions and dates do not count.
    """
    words = _without_dates(words)
    for m in _NUMBER.finditer(words):
        decimals = len(m[3]) - 1 if m[3] else 0
        number = float(m[2].replace(",", "") + (m[3] or ""))
        number = -number if m[1] else number
        rounded = round(value, decimals) if decimals >= 2 else value
        if _close(number, rounded) or (m[4] and _close(number / 100, value)):
            return True
    return any(_SMALL.index(m[1]) == value for m in _WORD_NUMBER.finditer(words))


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
