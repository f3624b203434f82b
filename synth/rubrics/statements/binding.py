"""Of which record and field a statement tells its values, and whether they are the record's.

Everything here errs on the side of leaving a statement open. A statement is contradicted only where
it names one record by its id and one field by its label, tells one value of the field's type right
after the label, and that value was never the field's; or where it names an id of a known make that
stands nowhere in the conversation.
"""

import re
from typing import Any, Literal, NamedTuple

from synth.rubrics.possible import FACTORS, parts_of_text, says_part
from synth.rubrics.reading.readings import TextReadings, ValueReading, read
from synth.rubrics.statements.known import KnownRecords, KnownRow, label_of
from synth.rubrics.values import (
    close,
    fits_day,
    is_number,
    minutes_of,
    moment_of,
    shape_of,
    squeezed,
)

Outcome = Literal["matched", "contradicted", "open"]

CENTURY = 100

LEAST_DIGITS = 3
"""Of an id whose absence from the conversation means anything."""

_BLOCKERS = ("negations", "conditions", "comparisons", "history", "reckoning", "estimates")
"""Words beside which a value may rightly differ from the record's."""

_DOUBTS = ("negations", "conditions", "reports", "alternatives", "openers")
"""Words beside which an unknown id may rightly stand."""

_WORD = re.compile(r"[^\W\d_]+")
_HAN = re.compile(r"[\u4e00-\u9fff]")


class StatementFinding(NamedTuple):
    outcome: Outcome
    evidence: str


OPEN = StatementFinding("open", "")


class _Label(NamedTuple):
    start: int
    end: int
    field: str


def bind(said: TextReadings, known: KnownRecords, *, is_last: bool) -> StatementFinding:
    """What code can tell of a statement. `is_last`: no call comes after it."""
    ids = list(said.of("id"))
    if (unknown := _unknown_id(said, ids, known)) is not None:
        return unknown
    named = {r.words.lower() for r in ids if r.words.lower() in known.of_record}
    if not ids and not said.readings:
        return _greeting(said, known)
    if len(ids) != 1 or len(named) != 1:
        return OPEN
    (record_id,) = named
    rows = known.of_record[record_id]
    labels = _labels(said, rows, ids[0])
    if not all(known.is_settled(record_id, label.field) for label in labels):
        return OPEN
    if is_last and (matched := _matched(said, record_id, rows, labels, ids[0])):
        return matched
    return _contradicted(said, record_id, known, labels, ids[0])


def _unknown_id(
    said: TextReadings, ids: list[ValueReading], known: KnownRecords
) -> StatementFinding | None:
    """An id like those of the conversation's records that stands nowhere in it."""
    for reading in ids:
        own = reading.words.lower()
        if sum(map(str.isdigit, own)) < LEAST_DIGITS or squeezed(own) in known.corpus:
            continue
        if not own[0].isalpha() or _is_doubtful(said, _DOUBTS):
            continue
        alike = [name for name in known.of_record if shape_of(name) == shape_of(own)]
        if alike:
            shown = ", ".join(name.upper() for name in alike[:3])
            why = f"{reading.words} stands nowhere in the conversation, whose ids are {shown}."
            return StatementFinding("contradicted", why)
    return None


def _is_doubtful(said: TextReadings, kinds: tuple[str, ...], text: str | None = None) -> bool:
    text = said.lower if text is None else text
    if "?" in text or "\uff1f" in text or '"' in text:
        return True
    return any(said.table.find(kind, text) for kind in kinds)


def _greeting(said: TextReadings, known: KnownRecords) -> StatementFinding:
    """A greeting, a thank-you or a signature: nothing but such words and names."""
    words = _WORD.findall(said.text)
    names = [word for word in words if word.lower() not in said.table.greetings]
    if said.table.code == "zh" or len(names) == len(words) or len(names) > 3:
        return OPEN
    if any(not name[0].isupper() or squeezed(name) not in known.corpus for name in names):
        return OPEN
    return StatementFinding("matched", "It states nothing.") if "?" not in said.text else OPEN


def _labels(said: TextReadings, rows: list[KnownRow], own: ValueReading) -> list[_Label]:
    """Where the record's fields are named, longer names first, none within another."""
    fields = {name: label_of(name) for row in rows for name in row.values}
    found: list[_Label] = []
    for field, label in sorted(fields.items(), key=lambda pair: -len(pair[1])):
        if len(label) < 2:
            continue
        edge = "" if _HAN.search(label) else r"(?!\w)"
        start = "" if _HAN.search(label) else r"(?<!\w)"
        words = re.escape(label).replace("\\ ", r"[ _-]")
        for match in re.finditer(f"{start}{words}{edge}", said.lower):
            span = match.span()
            if own.start < span[1] and span[0] < own.end:
                continue
            if not any(f.start < span[1] and span[0] < f.end for f in found):
                found.append(_Label(*span, field))
    return sorted(found)


def _after(said: TextReadings, label: _Label, own: ValueReading) -> int:
    """Where a value would begin that is told of the label: links, punctuation and the record's own
    id are skipped."""
    glue = said.table.patterns["glue"]
    stop = own.start if own.start >= label.end else len(said.lower)
    place = _end_of(glue, said.lower, label.end, stop)
    return _end_of(glue, said.lower, own.end, len(said.lower)) if place == own.start else place


def _end_of(pattern: re.Pattern[str], text: str, place: int, stop: int) -> int:
    match = pattern.match(text, place, stop)
    return match.end() if match else place


def _value_at(said: TextReadings, place: int) -> ValueReading | None:
    values = (r for r in said.readings if r.kind != "id")
    return next((r for r in values if r.start <= place < max(r.end, r.start + 1)), None)


def _matched(
    said: TextReadings,
    record_id: str,
    rows: list[KnownRow],
    labels: list[_Label],
    own: ValueReading,
) -> StatementFinding | None:
    """Every value is told of a field and is what the field is now, and nothing else is said."""
    left = said.lower
    spans = [(own.start, own.end)]
    bound: list[str] = []
    now: dict[str, Any] = {}
    for row in rows:
        now.update(row.values)
    for label in labels:
        end = _told_to(said, label, own, now[label.field])
        if end is None:
            continue
        spans.append((label.start, end))
        bound.append(f"{label.field} is {now[label.field]!r}")
    if not bound or any(
        not any(a <= r.start < b for a, b in spans) for r in said.readings if r.start != own.start
    ):
        return None
    for start, end in spans:
        left = f"{left[:start]}{' ' * (end - start)}{left[end:]}"
    keys = {label_of(k) for row in rows for k, v in row.values.items() if _is_same_id(v, record_id)}
    allowed = said.table.fillers | {word for key in keys for word in key.split()}
    if _HAN.search(left) or any(word not in allowed for word in _WORD.findall(left)):
        return None
    if "?" in left:
        return None
    return StatementFinding("matched", f"{own.words}: {'; '.join(bound)}.")


def _is_same_id(value: Any, record_id: str) -> bool:
    return isinstance(value, str) and value.lower() == record_id


def _told_to(said: TextReadings, label: _Label, own: ValueReading, value: Any) -> int | None:
    """Where the value ends that is told of a label, if it is the given one."""
    place = _after(said, label, own)
    if (reading := _value_at(said, place)) is not None:
        return reading.end if is_value(reading, value) else None
    if isinstance(value, str) and value and not value.isdigit():
        words = value.lower().replace("_", " ")
        if said.lower.replace("_", " ").startswith(words, place):
            return place + len(words)
    return None


def is_value(reading: ValueReading, value: Any) -> bool:
    """Whether the reading says exactly the stored value."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return is_number(reading, value)
    if not isinstance(value, str):
        return False
    return [says_part(reading, part) for part in parts_of_text(value)] == [True]


def _contradicted(
    said: TextReadings, record_id: str, known: KnownRecords, labels: list[_Label], own: ValueReading
) -> StatementFinding:
    values = [r for r in said.readings if r.kind != "id"]
    if len(labels) != 1 or len(values) != 1 or not values[0].is_sure:
        return OPEN
    (label,), (reading,) = labels, values
    if _value_at(said, _after(said, label, own)) is not reading or not _stands_alone(
        said, label, reading
    ):
        return OPEN
    rest = _without(said.lower, (label.start, label.end), (reading.start, reading.end))
    rest = _without(rest, (own.start, own.end))
    if _is_doubtful(said, (*_BLOCKERS, *_DOUBTS), rest):
        return OPEN
    held = known.values_of(record_id, label.field)
    others = known.others_of(record_id, label.field)
    if not held or not all(_is_other(reading, value) for value in held):
        return OPEN
    if any(_could_be(reading, value) for value in others):
        return OPEN
    rules = (n for r in read(known.instructions, said.table.code).of("number") for n in r.numbers)
    if _is_reckoned(reading, [*held, *others, *rules]):
        return OPEN
    if _said_by_user(reading, known, said):
        return OPEN
    own_values = [
        row.values[label.field] for row in known.of_record[record_id] if label.field in row.values
    ]
    if not own_values:
        return OPEN
    why = f"{label.field} of {own.words} is {own_values[-1]!r}, not {reading.words!r}."
    return StatementFinding("contradicted", why)


def _stands_alone(said: TextReadings, label: _Label, reading: ValueReading) -> bool:
    """Whether no other word belongs to the label or to the value: the late fee, 2.5 kg."""
    small = said.table.fillers | said.table.link_words
    before = re.search(r"([^\W\d_]+)\W*$", said.lower[: label.start])
    after = re.match(r"[ -]?([^\W\d_]+)", said.lower[reading.end :])
    return all(match is None or match[1] in small for match in (before, after))


def _without(text: str, *spans: tuple[int, int]) -> str:
    for start, end in spans:
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    return text


def _is_other(reading: ValueReading, value: Any) -> bool:
    """Whether a stored value is of the reading's type, and none of its readings, not even
    roughly."""
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return False
    if isinstance(value, int | float):
        plain = reading.kind == "number" and reading.unit in ("", "money")
        return plain and not _could_be(reading, value)
    parts = parts_of_text(value)
    if len(parts) != 1 or _could_be(reading, value):
        return False
    if isinstance(parts[0], int):
        return reading.kind == "time"
    named = all(month and day for _, month, day in reading.days) and bool(reading.days)
    return reading.kind == "date" and named


def _could_be(reading: ValueReading, value: Any) -> bool:
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
    numbers = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", value)]
    clocks = [int(h) * 60 + int(m) for h, m in re.findall(r"(\d{1,2}):(\d{2})", value)]
    return any(n in numbers for n in reading.numbers) or any(m in clocks for m in reading.minutes)


def _is_reckoned(reading: ValueReading, values: list[Any]) -> bool:
    """Whether the number is the sum, the difference, the product or the quotient of two others, or
    one of them with a percentage more or less."""
    numbers = {float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)}
    return any(
        close(abs(number), abs(result))
        for a in numbers
        for b in numbers
        for result in _results(a, b)
        for number in reading.numbers
    )


def _results(a: float, b: float) -> tuple[float, ...]:
    part = a * b / 100
    return (a + b, a - b, a * b, a / (b or 1.0), part, a - part, a + part)


def _said_by_user(reading: ValueReading, known: KnownRecords, said: TextReadings) -> bool:
    told = read(known.user_words, said.table.code)
    return any(
        {*reading.numbers, *reading.minutes, *reading.days}
        & {*other.numbers, *other.minutes, *other.days}
        for other in told.readings
    )
