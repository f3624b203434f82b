"""Values told to the user that nothing shows: what a score without a judge can call false.

Stricter than `truth_by_code`, which leaves a statement open where it might have been reckoned: here
a number, date or id must stand in what the agent was shown, and behind the name of a field it must
be a value of that field in one of the records, as must words that are told there (`unshown_words`).
Behind no such name, how many a list holds, how many of them are left ("and 19 more"), and the day
so many days from today are shown as well. A false name told in any other way passes, and so does
another number of the conversation behind words that are no field's name. Sums, rounding, offers and
dates of other languages count as unshown, as a language model writes them (docs/trainer.md has the
rates), so this serves where plain retelling in English is asked for, and never decides about data.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import date, timedelta
from typing import Any

from records.tables.schemas import Row
from synth.rubrics.criteria import CommunicateCheck, Rubric
from synth.rubrics.reading.readings import TextReadings, ValueReading, read
from synth.rubrics.reading.today import today_of
from synth.rubrics.statements.beside import SMALL_NUMBER
from synth.rubrics.statements.comparing import speaks_of
from synth.rubrics.statements.known import KnownRecords, label_of, parsed
from synth.rubrics.statements.unshown_words import unshown_words
from synth.rubrics.telling import replies_in
from synth.rubrics.values import mentions, squeezed

_BETWEEN = re.compile(r"[ _](?:is |was |of |now |=|:)*$|(?:: |=)$")
"""What may stand between the name of a field and its value."""

_DIGIT = re.compile(r"\d")

MOST_DAYS = 3660
"""From today, of a day that is reckoned: ten years."""


def unshown_values(messages: Sequence[Mapping[str, Any]], calls: Sequence[Row]) -> list[str]:
    """The words of values in replies that are shown nowhere, or not of the field that they are told
    of. `messages`: in wire form; `calls`: rows of `tool_calls`, in call order."""
    known = KnownRecords(messages, calls)
    today = today_of(messages, (call["observation"] for call in calls))
    by_label = _values_by_label(known)
    shown = read(_words_of_others(messages), "en", today)
    lengths = {length for call in calls for length in _lengths(parsed(call["observation"]))}
    found: list[str] = []
    for _, reply in replies_in(messages):
        said = read(reply, "en", today)
        found += [
            reading.words
            for reading in said.readings
            if not _is_shown(reading, said, known, by_label, shown)
            and (
                _label_before(said.lower[: reading.start], by_label) is not None
                or not (_is_counted(reading, said, lengths) or _is_reckoned(reading, said, today))
            )
        ]
        found += unshown_words(said, by_label)
    return found


def plainly_told(
    rubric: Rubric, undecided: Sequence[str], messages: Sequence[Mapping[str, Any]]
) -> bool:
    """Whether the values of those criteria stand in the agent's words to the user, whatever is said
    around them; no other kind of criterion is met so."""
    heard = "\n".join(text for _, text in replies_in(messages))
    of_id = {criterion.id: criterion for criterion in rubric.criteria}
    return all(
        of_id[i].kind == "communicate"
        and all(
            mentions(heard, value)
            for value in CommunicateCheck.model_validate(of_id[i].check).values
        )
        for i in undecided
    )


def _is_shown(
    reading: ValueReading,
    said: TextReadings,
    known: KnownRecords,
    by_label: Mapping[str, list[Any]],
    shown: TextReadings,
) -> bool:
    if not _DIGIT.search(reading.words):
        return True  # "a", "today", "Sunday": words that seldom tell a value of a record
    if reading.kind == "id":
        return squeezed(reading.words) in known.corpus
    if reading.kind == "time":
        return known.values.may_hold(reading) or any(_alike(reading, o) for o in shown.readings)
    label = _label_before(said.lower[: reading.start], by_label)
    if label is not None:
        return any(_says(reading, value) for value in by_label[label])
    if reading.kind == "number":
        number = reading.numbers[0]
        if number == int(number) and abs(number) <= SMALL_NUMBER:
            return True
    if next(known.values.told_by(reading), None) is not None:
        return True
    return any(_alike(reading, other) for other in shown.readings)


def _is_counted(reading: ValueReading, said: TextReadings, lengths: Set[int]) -> bool:
    """Whether it is how many a list of a result holds, or how many of a list are left."""
    if reading.kind != "number":
        return False
    number = reading.numbers[0]
    is_rest = said.lower.startswith(" more", reading.end)
    return number in lengths or (is_rest and any(0 < number < length for length in lengths))


def _is_reckoned(reading: ValueReading, said: TextReadings, today: date | None) -> bool:
    """Whether it is the day that lies as many days from today as the same reply says."""
    if reading.kind != "date" or today is None:
        return False
    spans = [r.numbers[0] for r in said.readings if r.kind == "number" and r.unit == "days"]
    reckoned = [
        today + timedelta(days=sign * int(span))
        for span in spans
        if span <= MOST_DAYS
        for sign in (1, -1)
    ]
    return any((day.year, day.month, day.day) in reading.days for day in reckoned)


def _lengths(value: Any) -> Iterator[int]:
    """Of every list in a result."""
    if isinstance(value, list):
        yield len(value)
    parts = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, Mapping | list):
        for part in parts:
            yield from _lengths(part)


def _says(reading: ValueReading, value: Any) -> bool:
    parts = value if isinstance(value, list) else [value]
    return any(
        speaks_of(reading, part) or squeezed(reading.words) in squeezed(str(part)) for part in parts
    )


def _alike(reading: ValueReading, other: ValueReading) -> bool:
    if reading.kind == "number":
        return other.kind == "number" and reading.numbers[0] in other.numbers
    return bool({*reading.minutes} & {*other.minutes} or {*reading.days} & {*other.days})


def _label_before(text: str, by_label: Mapping[str, list[Any]]) -> str | None:
    """The field whose name stands right before, the longest of them."""
    before = _BETWEEN.sub("", text)
    if before == text:
        return None
    words = before.split(" ")[-6:]
    for length in range(len(words), 0, -1):
        label = " ".join(words[-length:])
        if label in by_label:
            return label
    return None


def _values_by_label(known: KnownRecords) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in known.rows:
        for name, value in row.values.items():
            if value is not None and not isinstance(value, bool):
                found.setdefault(label_of(name), []).append(value)
    return found


def _words_of_others(messages: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(str(m.get("content") or "") for m in messages if m["role"] != "assistant")
