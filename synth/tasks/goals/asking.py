"""What a user wants to be told of a call: values in its answer that the user does not know yet."""

from collections.abc import Collection, Iterator, Sequence
from random import Random
from typing import Any

from synth.rubrics.built_in import same_value
from synth.rubrics.criteria import CheckedScalar
from synth.tasks.goals.goals import Asked
from synth.tasks.goals.knowledge import words_of
from tool_specs.domains.interpreter import CallResult

MAX_TOLD = 60
"""Characters of a text that a user may ask for."""

MAX_LISTED = 4
"""Rows of a list that a user may ask about."""

ASK_FOR_ID = 0.8
"""How often the id of what was made is asked for rather than a figure."""


def asked_of_write(result: CallResult, known: Sequence[Any], rng: Random) -> tuple[Asked, ...]:
    """The id of the row that was made, or a new figure; empty where there is neither."""
    made = {change["id"] for change in result.diff if change["op"] == "create"}
    values = _new_values(result.observation, known)
    ids = [(name, value) for name, value in values if value in made]
    figures = [(name, value) for name, value in values if _is_figure(value)]
    chosen = ids[:1] if ids and rng.random() < ASK_FOR_ID else figures[:1]
    return tuple(Asked(label=told_label(name, value), values=(value,)) for name, value in chosen)


def asked_of_read(
    observation: Any, known: Sequence[Any], ids: Collection[str], rng: Random
) -> tuple[Asked, ...]:
    """One or two values, or one field of every row of a short list; empty where the answer tells
    nothing new. `ids` are never asked for."""
    telling = [
        (name, value)
        for name, value in _new_values(observation, known)
        if value not in ids and (isinstance(value, str) or abs(value) > 1)
    ]
    if not telling:
        return _asked_of_list(observation, known, ids, rng)
    chosen = rng.sample(telling, min(len(telling), rng.randint(1, 2)))
    return tuple(Asked(label=told_label(name, value), values=(value,)) for name, value in chosen)


def _asked_of_list(
    observation: Any, known: Sequence[Any], ids: Collection[str], rng: Random
) -> tuple[Asked, ...]:
    for name, rows in observation.items() if isinstance(observation, dict) else ():
        if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_LISTED:
            continue
        if not all(isinstance(row, dict) for row in rows):
            continue
        fields = [
            field
            for field in rows[0]
            if all(_can_be_told(row.get(field)) and row[field] not in ids for row in rows)
            and not any(same_value(row[field], k) for row in rows for k in known)
        ]
        if not fields:
            continue
        field = rng.choice(fields)
        values = tuple(dict.fromkeys(row[field] for row in rows))
        label = told_label(field, values[0])
        if len(rows) > 1:
            label += f" of each of the {words_of(name)}"
        return (Asked(label=label, values=values),)
    return ()


def _new_values(observation: Any, known: Sequence[Any]) -> list[tuple[str, CheckedScalar]]:
    values = _scalars(observation)
    return [(n, v) for n, v in values if not any(same_value(v, k) for k in known)]


def _scalars(observation: Any) -> Iterator[tuple[str, CheckedScalar]]:
    """(field, value) of the plain values at the top of an answer, or in its single row."""
    if not isinstance(observation, dict):
        return
    for name, value in observation.items():
        if _can_be_told(value):
            yield name, value
        elif isinstance(value, dict):
            yield from _scalars(value)
        elif isinstance(value, list) and len(value) == 1:
            yield from _scalars(value[0])


def told_label(name: str, value: CheckedScalar) -> str:
    """A field of an answer as one would ask for it: "amount refunded", "day when it begins"."""
    words = name.replace("_", " ")
    stem, _, preposition = words.rpartition(" ")
    if preposition in ("at", "on") and isinstance(value, str) and stem:
        unit = "time" if "T" in value else "day"
        return f"{unit} when it {'was ' if stem.endswith('ed') else ''}{stem}"
    if isinstance(value, int | float) and (words.endswith("ed") or words in ("paid", "spent")):
        return f"amount {words}"
    return words


def _can_be_told(value: Any) -> bool:
    """A value that a listener recognises: a figure, a date, a short text; no flag, no null."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, str):
        return 2 < len(value) <= MAX_TOLD
    return isinstance(value, int | float)


def _is_figure(value: CheckedScalar) -> bool:
    """Unlikely to stand in a reply by chance."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) > 9)
