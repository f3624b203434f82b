"""Whether an answer tells what a task says that a right one tells."""

from collections.abc import Mapping
from typing import Any

from synth.rubrics.reading.readings import ValueReading, read
from synth.rubrics.values import close, mentions


def is_told(body: Mapping[str, Any], text: str) -> bool | None:
    """Whether every one of the task's answers stands in the text, in any usual spelling of a
    number, an amount, a date, a time or a word. None where the task names none."""
    answers = body["answers"]
    if not answers:
        return None
    return all(mentions(text, one) or _is_amount_in(one, text) for one in answers)


def _is_amount_in(answer: str, text: str) -> bool:
    """Of an answer that is a number, with its unit or without: the same number, with that unit or
    without."""
    own = read(answer, "en").readings
    if len(own) != 1 or own[0].kind != "number":
        return False
    return any(_is_same(own[0], other) for other in read(text, "en").of("number"))


def _is_same(one: ValueReading, other: ValueReading) -> bool:
    units = {unit for unit in (one.unit, other.unit) if unit}
    return len(units) < 2 and other.is_sure and close(one.numbers[0], other.numbers[0])
