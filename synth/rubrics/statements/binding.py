"""Of which record and field a statement tells its values, and whether they are the record's.

Everything here errs on the side of leaving a statement open. A statement is contradicted only where
it names one record by its id and one field by its label, tells one value of the field's type right
after the label, and that value was never the field's; or where it names an id of a known make that
stands nowhere in the conversation.
"""

import re
from typing import Any, Literal, NamedTuple

from synth.rubrics.possible import FACTORS
from synth.rubrics.reading.readings import Reading, ReadText, read
from synth.rubrics.statements.known import Known, KnownRow, label_of, squeezed
from synth.rubrics.values import (
    close,
    fits_day,
    is_day,
    is_number,
    is_time,
    minutes_of,
    moment_of,
)

Outcome = Literal["matched", "contradicted", "open"]

LEAST_DIGITS = 3
"""Of an id whose absence from the conversation means anything."""

_BLOCKERS = ("negations", "conditions", "comparisons", "history", "reckoning", "estimates")
"""Words beside which a value may rightly differ from the record's."""

_DOUBTS = ("negations", "conditions", "reports", "alternatives", "openers")
"""Words beside which an unknown id may rightly stand."""

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?")
_WORD = re.compile(r"[^\W\d_]+")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_GLUE = r"[ :=|\"'()-]*"


class Finding(NamedTuple):
    outcome: Outcome
    evidence: str


OPEN = Finding("open", "")


class _Label(NamedTuple):
    start: int
    end: int
    field: str


def bind(said: ReadText, known: Known, *, is_last: bool) -> Finding:
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
    if is_last and (matched := _matched(said, record_id, rows, labels, ids[0])):
        return matched
    return _contradicted(said, record_id, known, labels, ids[0])


def _unknown_id(said: ReadText, ids: list[Reading], known: Known) -> Finding | None:
    """An id like those of the conversation's records that stands nowhere in it."""
    for reading in ids:
        own = reading.words.lower()
        if sum(map(str.isdigit, own)) < LEAST_DIGITS or squeezed(own) in known.corpus:
            continue
        if not own[0].isalpha() or _is_doubtful(said, _DOUBTS):
            continue
        alike = [name for name in known.of_record if _make(name) == _make(own)]
        if alike:
            shown = ", ".join(name.upper() for name in alike[:3])
            why = f"{reading.words} stands nowhere in the conversation, whose ids are {shown}."
            return Finding("contradicted", why)
    return None


def _make(name: str) -> str:
    return re.sub(r"\d", "0", name)


def _is_doubtful(said: ReadText, kinds: tuple[str, ...], text: str | None = None) -> bool:
    text = said.lower if text is None else text
    if "?" in text or "\uff1f" in text or '"' in text:
        return True
    return any(said.table.find(kind, text) for kind in kinds)


def _greeting(said: ReadText, known: Known) -> Finding:
    """A greeting, a thank-you or a signature: nothing but such words and names."""
    words = _WORD.findall(said.text)
    names = [word for word in words if word.lower() not in said.table.greetings]
    if said.table.code == "zh" or len(names) == len(words) or len(names) > 3:
        return OPEN
    if any(not name[0].isupper() or squeezed(name) not in known.corpus for name in names):
        return OPEN
    return Finding("matched", "It states nothing.") if "?" not in said.text else OPEN


def _labels(said: ReadText, rows: list[KnownRow], own: Reading) -> list[_Label]:
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


def _after(said: ReadText, label: _Label) -> int:
    """Where a value would begin that is told of the label: links and punctuation are skipped."""
    link = "|".join(map(re.escape, sorted(said.table.link_words, key=len, reverse=True)))
    pattern = re.compile(rf"(?:{_GLUE}(?:{link})(?![\w']))*{_GLUE}")
    match = pattern.match(said.lower, label.end)
    return match.end() if match else label.end


def _value_at(said: ReadText, place: int) -> Reading | None:
    values = (r for r in said.readings if r.kind != "id")
    return next((r for r in values if r.start <= place < max(r.end, r.start + 1)), None)


def _matched(
    said: ReadText, record_id: str, rows: list[KnownRow], labels: list[_Label], own: Reading
) -> Finding | None:
    """Every value is told of a field and is what the field is now, and nothing else is said."""
    left = said.lower
    spans = [(own.start, own.end)]
    bound: list[str] = []
    now: dict[str, Any] = {}
    for row in rows:
        now.update(row.values)
    for label in labels:
        end = _told_to(said, label, now[label.field])
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
    return Finding("matched", f"{own.words}: {'; '.join(bound)}.")


def _is_same_id(value: Any, record_id: str) -> bool:
    return isinstance(value, str) and value.lower() == record_id


def _told_to(said: ReadText, label: _Label, value: Any) -> int | None:
    """Where the value ends that is told of a label, if it is the given one."""
    place = _after(said, label)
    if (reading := _value_at(said, place)) is not None:
        return reading.end if is_value(reading, value) else None
    if isinstance(value, str) and value and not value.isdigit():
        words = value.lower().replace("_", " ")
        if said.lower.replace("_", " ").startswith(words, place):
            return place + len(words)
    return None


def is_value(reading: Reading, value: Any) -> bool:
    """Whether the reading says exactly the stored value."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return is_number(reading, value)
    if not isinstance(value, str):
        return False
    if moment := moment_of(value):
        return len(value) <= 10 and is_day(reading, moment)
    if clock := _CLOCK.fullmatch(value):
        return is_time(reading, int(clock[1]) * 60 + int(clock[2]))
    return False


def _contradicted(
    said: ReadText, record_id: str, known: Known, labels: list[_Label], own: Reading
) -> Finding:
    values = [r for r in said.readings if r.kind != "id"]
    if len(labels) != 1 or len(values) != 1 or not values[0].is_sure:
        return OPEN
    (label,), (reading,) = labels, values
    if _value_at(said, _after(said, label)) is not reading or not _stands_alone(
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
    if any(_could_be(reading, value) for value in others) or _is_reckoned(reading, held + others):
        return OPEN
    if _said_by_user(reading, known, said):
        return OPEN
    own_values = [
        row.values[label.field] for row in known.of_record[record_id] if label.field in row.values
    ]
    if not own_values:
        return OPEN
    why = f"{label.field} of {own.words} is {own_values[-1]!r}, not {reading.words!r}."
    return Finding("contradicted", why)


def _stands_alone(said: ReadText, label: _Label, reading: Reading) -> bool:
    """Whether no other word belongs to the label or to the value: the late fee, 2.5 kg."""
    small = said.table.fillers | said.table.link_words
    before = re.search(r"([^\W\d_]+)\W*$", said.lower[: label.start])
    after = re.match(r"[ -]?([^\W\d_]+)", said.lower[reading.end :])
    return all(match is None or match[1] in small for match in (before, after))


def _without(text: str, *spans: tuple[int, int]) -> str:
    for start, end in spans:
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    return text


def _is_other(reading: Reading, value: Any) -> bool:
    """Whether a stored value is of the reading's type, and none of its readings, not even
    roughly."""
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return False
    if isinstance(value, int | float):
        plain = reading.kind == "number" and reading.unit in ("", "money")
        return plain and not _could_be(reading, value)
    moment, clock = moment_of(value), _CLOCK.fullmatch(value)
    if moment is not None and len(value) <= 10:
        named = all(month and day for _, month, day in reading.days) and bool(reading.days)
        return reading.kind == "date" and named and not _could_be(reading, value)
    if clock is not None:
        return reading.kind == "time" and not _could_be(reading, value)
    return False


def _could_be(reading: Reading, value: Any) -> bool:
    """Whether the reading may mean the value: in any of its readings, rounded, as a percentage."""
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return False
    if isinstance(value, int | float):
        return any(
            abs(abs(n) - abs(value)) <= 1
            or any(close(n, value * factor) or close(n * factor, value) for factor in FACTORS)
            for n in reading.numbers
        )
    if moment := moment_of(value):
        same_day = any(fits_day(day, moment) for day in reading.days)
        return same_day or minutes_of(moment) in reading.minutes
    numbers = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", value)]
    clocks = [int(h) * 60 + int(m) for h, m in re.findall(r"(\d{1,2}):(\d{2})", value)]
    return any(n in numbers for n in reading.numbers) or any(m in clocks for m in reading.minutes)


def _is_reckoned(reading: Reading, values: list[Any]) -> bool:
    """Whether the number is the sum, the difference, the product or the quotient of two of the
    record's."""
    numbers = {float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)}
    return any(
        close(abs(n), abs(result))
        for n in reading.numbers
        for a in numbers
        for b in numbers
        for result in (a + b, a - b, a * b, a / b if b else 0.0, a * b / 100, a - a * b / 100)
    )


def _said_by_user(reading: Reading, known: Known, said: ReadText) -> bool:
    told = read(known.user_words, said.table.code)
    return any(
        {*reading.numbers, *reading.minutes, *reading.days}
        & {*other.numbers, *other.minutes, *other.days}
        for other in told.readings
    )
