"""What of a conversation an open statement is about: the objects that share an id, a name or a
value with it."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from synth.rubrics.reading.readings import TextReadings, ValueReading
from synth.rubrics.statements.comparing import speaks_of
from synth.rubrics.statements.known import KnownRecords, KnownRow
from synth.rubrics.statements.value_index import is_name

MOST_EXCERPTS = 4
EXCERPT_CHARS = 200

SMALL_NUMBER = 12
"""Up to here a plain whole number stands in too many places to say anything."""

_POINTS = {"id": 4, "name": 2, "value": 3}
"""What shows best what a statement is about."""


def beside(said: TextReadings, known: KnownRecords) -> tuple[str, ...]:
    """Excerpts of the objects that share most with the statement, the latest of equal ones."""
    points: Counter[int] = Counter()
    for what, places in _shared(said, known).items():
        for place in places:
            points[place] += _POINTS[what]
    found: dict[str, None] = {}
    for place, _ in sorted(points.items(), key=lambda pair: (-pair[1], -pair[0])):
        found.setdefault(_excerpt(known.rows[place], said))
        if len(found) == MOST_EXCERPTS:
            break
    return tuple(found)


def _shared(said: TextReadings, known: KnownRecords) -> dict[str, set[int]]:
    """What the statement has in common with objects -> the places of these."""
    telling = [reading for reading in said.readings if _is_telling(reading)]
    ids = {reading.words.lower() for reading in telling if reading.kind == "id"}
    told = (value for reading in telling for value in known.values.told_by(reading))
    return {
        "id": {place for name in ids for place in known.places_of_ids.get(name, ())},
        "name": _places_of(known.values.named_in(said), known),
        "value": _places_of(told, known),
    }


def _places_of(values: Iterable[Any], known: KnownRecords) -> set[int]:
    return {place for value in set(values) for place in known.places_of_values[value]}


def _is_telling(reading: ValueReading) -> bool:
    if reading.kind != "number":
        return True
    number = reading.numbers[0]
    return reading.unit == "money" or number != int(number) or abs(number) > SMALL_NUMBER


def _is_named(said: TextReadings, value: Any) -> bool:
    return is_name(value) and value.lower() in said.lower


def _excerpt(row: KnownRow, said: TextReadings) -> str:
    """The object's values, shortened to those that the statement tells where it is long."""
    shown = json.dumps(dict(row.values), ensure_ascii=False, default=str)
    text = f"{row.source} {shown}"
    if len(text) <= EXCERPT_CHARS:
        return text
    kept = {
        key: value
        for key, value in row.values.items()
        if _is_named(said, value)
        or any(speaks_of(reading, value) for reading in said.readings)
        or (isinstance(value, str) and value.lower() == row.own_id)
    }
    shown = json.dumps(kept or dict(row.values), ensure_ascii=False, default=str)
    text = f"{row.source} {shown}"
    return text if len(text) <= EXCERPT_CHARS else f"{text[: EXCERPT_CHARS - 1]}\u2026"
