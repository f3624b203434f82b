"""What the list and clock functions of the grammar do to values at run time.

As in `values.py`, null elements are skipped, a null list is an empty one, and nothing raises but
EvaluationError.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from tool_specs.language.values import (
    EvaluationError,
    field_of,
    in_range,
    is_date,
    is_datetime,
    show_value,
)


def _items(function: str, value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise EvaluationError(f"{function} needs a list, got {show_value(value)}")
    return [item for item in value if item is not None]


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
        raise EvaluationError(f"add_minutes leaves the calendar with {minutes} minutes") from None


def _moment(function: str, value: Any) -> datetime:
    if not (is_datetime(value) or is_date(value)):
        raise EvaluationError(
            f"{function} needs a date-time such as 2026-03-02T09:00:00, got {show_value(value)}"
        )
    return datetime.fromisoformat(value)
