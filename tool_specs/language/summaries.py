"""What the list, clock and text functions of the grammar do to values at run time.

As in `values.py`, null elements are skipped, a null list is an empty one, a null text stays null,
and nothing raises but EvaluationError.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tool_specs.language.values import (
    MAX_TEXT,
    EvaluationError,
    OutOfRangeError,
    as_text,
    built,
    elements,
    field_of,
    in_range,
    is_date,
    is_datetime,
    round_half_up,
    show_value,
    text_of,
)


def _items(function: str, value: Any) -> list[Any]:
    return [item for item in elements(function, value) if item is not None]


def average(value: Any) -> Any:
    """To two decimals; null of nothing."""
    items = _items("average", value)
    for item in items:
        if type(item) not in (int, float):
            raise EvaluationError(f"average needs numbers, got {show_value(item)}")
    return in_range(round(sum(items) / len(items) + 1e-9, 2)) if items else None


def first(value: Any) -> Any:
    """The first element, or null."""
    return next(iter(_items("first", value)), None)


def distinct(value: Any) -> list[Any]:
    """Each value once, in order of appearance."""
    return list(dict.fromkeys(_scalars("distinct", value)))


def tally(value: Any) -> list[dict[str, Any]]:
    """How often each value occurs: {value, count}, the most frequent first, then by value."""
    counts = Counter(_scalars("tally", value))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    return [{"value": value, "count": number} for value, number in ranked]


def _scalars(function: str, value: Any) -> list[Any]:
    items = _items(function, value)
    for item in items:
        if isinstance(item, list | dict):
            raise EvaluationError(f"{function} needs plain values, got {show_value(item)}")
    return items


def picked(value: Any, fields: Sequence[str]) -> Any:
    """A row, or each row of a list, with these fields alone; null of null."""
    if isinstance(value, list):
        return [picked(item, fields) for item in value]
    return None if value is None else {field: field_of(value, field) for field in fields}


def minutes_between(start: Any, end: Any) -> int | None:
    """Whole minutes from the first date-time to the second: negative when the second is earlier."""
    if start is None or end is None:
        return None
    gap = _moment("minutes_between", end) - _moment("minutes_between", start)
    return int(gap.total_seconds() // 60)


def add_minutes(start: Any, minutes: Any) -> str | None:
    if start is None or minutes is None:
        return None
    if type(minutes) is not int:
        raise EvaluationError(f"add_minutes needs whole minutes, got {show_value(minutes)}")
    try:
        return (_moment("add_minutes", start) + timedelta(minutes=minutes)).isoformat()
    except OverflowError:
        raise OutOfRangeError(f"add_minutes leaves the calendar with {minutes} minutes") from None


def _moment(function: str, value: Any) -> datetime:
    if not (is_datetime(value) or is_date(value)):
        raise EvaluationError(
            f"{function} needs a date-time such as 2026-03-02T09:00:00, got {show_value(value)}"
        )
    return datetime.fromisoformat(value)


def case_of(function: str, change: Callable[[str], str]) -> Callable[[Any], str | None]:
    """The function that changes a text, and leaves null."""

    def apply(value: Any) -> str | None:
        return None if value is None else built(function, change(text_of(function, value)))

    return apply


def titled(text: str) -> str:
    """Each word with a capital first, the rest of it small."""
    return re.sub(r"\S+", lambda word: word[0][0].upper() + word[0][1:].lower(), text)


def length(value: Any) -> int | None:
    """Characters."""
    return None if value is None else len(text_of("length", value))


def replaced(value: Any, old: Any, new: Any) -> str | None:
    if value is None:
        return None
    old, new = _separator("replace", old), text_of("replace", new)
    text = text_of("replace", value)
    if len(text) + text.count(old) * len(new) > 2 * MAX_TEXT:
        raise OutOfRangeError(f"replace built over {MAX_TEXT} characters")
    return built("replace", text.replace(old, new))


def split(value: Any, separator: Any) -> list[str]:
    """The parts of a text between the separators, without the spaces around them."""
    separator = _separator("split", separator)
    if value is None:
        return []
    return [part.strip() for part in text_of("split", value).split(separator)]


def part(value: Any, separator: Any, number: Any) -> str | None:
    """One of the parts, counted from 1, or with -1 from the end; null where there are fewer."""
    if type(number) is not int or number == 0:
        raise OutOfRangeError(
            f"part counts from 1, or from -1 at the end, not {show_value(number)}"
        )
    parts = split(value, separator)
    return parts[number - (number > 0)] if abs(number) <= len(parts) else None


def joined(value: Any, separator: Any) -> str:
    separator = text_of("join", separator)
    return built("join", separator.join(as_text(item) for item in _items("join", value)))


def _separator(function: str, value: Any) -> str:
    if text_of(function, value) == "":
        raise OutOfRangeError(f"{function} needs a text of at least one character, got ''")
    return value


def with_digits(value: Any, digits: int) -> str | None:
    """A number with just so many digits after the point, half away from zero."""
    rounded = round_half_up(value, digits)
    return None if rounded is None else f"{Decimal(repr(rounded)):.{digits}f}"


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_PARTS: dict[str, Callable[[datetime], str]] = {
    "%Y": lambda when: f"{when.year:04}",
    "%m": lambda when: f"{when.month:02}",
    "%d": lambda when: f"{when.day:02}",
    "%H": lambda when: f"{when.hour:02}",
    "%M": lambda when: f"{when.minute:02}",
    "%B": lambda when: _MONTHS[when.month - 1],
    "%b": lambda when: _MONTHS[when.month - 1][:3],
    "%A": lambda when: _DAYS[when.weekday()],
    "%a": lambda when: _DAYS[when.weekday()][:3],
    "%%": lambda when: "%",
}
"""In English, whatever the machine's language is."""


def unknown_parts(pattern: str) -> list[str]:
    """What begins with % in a pattern of dates and means nothing."""
    return [found for found in re.findall(r"%.?", pattern) if found not in _PARTS]


DATE_PARTS = ", ".join(_PARTS)


def dated(value: Any, pattern: str) -> str | None:
    """A date or date-time in the words of the pattern."""
    if value is None:
        return None
    when = _moment("format", value)
    return re.sub(r"%.", lambda found: _PARTS[found[0]](when), pattern)
