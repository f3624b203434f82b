"""What of a conversation an open statement is about: the objects that share an id, a name or a
value with it."""

import json
from collections.abc import Iterator
from typing import Any

from synth.rubrics.reading.readings import Reading, ReadText
from synth.rubrics.statements.binding import is_value
from synth.rubrics.statements.known import Known, KnownRow
from synth.rubrics.values import fits_day, moment_of

MOST_EXCERPTS = 4
EXCERPT_CHARS = 200

SMALL_NUMBER = 12
"""Up to here a plain whole number stands in too many places to say anything."""

SHORT_NAME = 3
"""Characters of a text that may be looked for in a statement."""

LONG_NAME = 60

_POINTS = {"id": 4, "name": 2, "value": 3}
"""What shows best what a statement is about."""


def beside(said: ReadText, known: Known) -> tuple[str, ...]:
    """Excerpts of the objects that share most with the statement, the latest of equal ones."""
    telling = [reading for reading in said.readings if _is_telling(reading)]
    scored: list[tuple[int, int]] = []
    for place, row in enumerate(known.rows):
        if points := sum(_POINTS[what] for what in _shared(said, telling, row)):
            scored.append((points, place))
    found: dict[str, None] = {}
    for _, place in sorted(scored, reverse=True):
        found.setdefault(_excerpt(known.rows[place], said))
        if len(found) == MOST_EXCERPTS:
            break
    return tuple(found)


def _is_telling(reading: Reading) -> bool:
    if reading.kind != "number":
        return True
    number = reading.numbers[0]
    return reading.unit == "money" or number != int(number) or abs(number) > SMALL_NUMBER


def _shared(said: ReadText, telling: list[Reading], row: KnownRow) -> Iterator[str]:
    """What the statement and the object have in common, once for each kind."""
    if any(r.kind == "id" and r.words.lower() in row.ids for r in telling):
        yield "id"
    if any(_is_named(said, value) for value in row.values.values()):
        yield "name"
    if any(_says(reading, value) for reading in telling for value in row.values.values()):
        yield "value"


def _is_named(said: ReadText, value: Any) -> bool:
    if not isinstance(value, str) or not SHORT_NAME <= len(value) <= LONG_NAME:
        return (
            isinstance(value, str)
            and len(value) == 2
            and not value.isascii()
            and value in said.text
        )
    return not value[0].isdigit() and value.lower() in said.lower


def _says(reading: Reading, value: Any) -> bool:
    if reading.days and isinstance(value, str) and (moment := moment_of(value)):
        return any(fits_day(day, moment) for day in reading.days)
    return is_value(reading, value)


def _excerpt(row: KnownRow, said: ReadText) -> str:
    """The object's values, shortened to those that the statement tells where it is long."""
    shown = json.dumps(dict(row.values), ensure_ascii=False, default=str)
    text = f"{row.source} {shown}"
    if len(text) <= EXCERPT_CHARS:
        return text
    kept = {
        key: value
        for key, value in row.values.items()
        if _is_named(said, value)
        or any(_says(reading, value) for reading in said.readings)
        or (isinstance(value, str) and value.lower() == row.own_id)
    }
    shown = json.dumps(kept or dict(row.values), ensure_ascii=False, default=str)
    text = f"{row.source} {shown}"
    return text if len(text) <= EXCERPT_CHARS else f"{text[: EXCERPT_CHARS - 1]}\u2026"
