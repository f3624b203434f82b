"""Whether a value that a text tells is a stored value, exactly or perhaps."""

import re
from typing import Any

from synth.rubrics.possible import FACTORS, parts_of_text, says_part
from synth.rubrics.reading.readings import ValueReading
from synth.rubrics.values import close, fits_day, is_number, minutes_of, moment_of

CENTURY = 100


def is_value(reading: ValueReading, value: Any) -> bool:
    """Whether the reading says exactly the stored value."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return is_number(reading, value)
    if not isinstance(value, str):
        return False
    return [says_part(reading, part) for part in parts_of_text(value)] == [True]


def speaks_of(reading: ValueReading, value: Any) -> bool:
    """Whether the reading says the stored value, or the day of a stored moment."""
    if reading.kind == "id":
        return False
    if reading.days and isinstance(value, str) and (moment := moment_of(value)):
        return any(fits_day(day, moment) for day in reading.days)
    return is_value(reading, value)


def could_be(reading: ValueReading, value: Any) -> bool:
    """Whether the reading may mean the value: in any of its readings, rounded, as a percentage."""
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return False
    if isinstance(value, int | float):
        return any(
            abs(abs(n) - abs(value)) <= 1
            or close(n, value % CENTURY)  # '24 is 2024
            or any(close(n, value * factor) or close(n * factor, value) for factor in FACTORS)
            for n in reading.numbers
        )
    if moment := moment_of(value):
        same_day = any(fits_day(day, moment) for day in reading.days)
        return same_day or minutes_of(moment) in reading.minutes
    numbers = numbers_in_text(value)
    clocks = clocks_in_text(value)
    return any(n in numbers for n in reading.numbers) or any(m in clocks for m in reading.minutes)


def numbers_in_text(value: str) -> list[float]:
    """The numbers in digits that a stored text holds."""
    return [float(n) for n in re.findall(r"\d+(?:\.\d+)?", value)]


def clocks_in_text(value: str) -> list[int]:
    """The times of day that a stored text holds, in minutes since midnight."""
    return [int(h) * 60 + int(m) for h, m in re.findall(r"(\d{1,2}):(\d{2})", value)]
