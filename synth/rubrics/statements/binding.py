"""Of which record and field a statement tells its values, and whether they are the record's.

Everything here errs on the side of leaving a statement open. A statement is contradicted only where
it names one record by its id and one field by its label, tells one value of the field's type right
after the label in words that say nothing else, and that value stands nowhere in the conversation
and follows from no two numbers there.
"""

import re
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from synth.rubrics.possible import parts_of_text
from synth.rubrics.reading.readings import TextReadings, ValueReading
from synth.rubrics.statements.comparing import could_be, is_value
from synth.rubrics.statements.known import KnownRecords, KnownRow, label_of
from synth.rubrics.values import same_value, shape_of, squeezed

StatementOutcome = Literal["matched", "contradicted", "open"]

LEAST_DIGITS = 3
"""Of an id whose absence from the conversation means anything."""

_BLOCKERS = ("negations", "conditions", "comparisons", "history", "reckoning", "estimates")
"""Words beside which a value may rightly differ from the record's."""

_DOUBTS = ("negations", "conditions", "reports", "alternatives", "openers")
"""Words beside which an unknown id may rightly stand."""

_WORD = re.compile(r"[^\W\d_]+")
_PATTERN = re.compile(r"(?:eur|usd|gbp|chf|cny|rmb|jpy|cad|aud|mxn|sek)\d|12345|000$")
"""What looks like an id and is an amount, a form of ids, or the start of a range."""
_HAN = re.compile(r"[\u4e00-\u9fff]")


class StatementFinding(NamedTuple):
    outcome: StatementOutcome
    evidence: str


OPEN = StatementFinding("open", "")


class _Label(NamedTuple):
    start: int
    end: int
    field: str


def bind(said: TextReadings, known: KnownRecords, *, is_last: bool) -> StatementFinding:
    """What code can tell of a statement. `is_last`: no call comes after it."""
    ids = list(said.of("id"))
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
    if is_last and (matched := _matched(said, record_id, known, labels, ids[0])):
        return matched
    return _contradicted(said, record_id, known, labels, ids[0])


def unknown_ids(said: TextReadings, known: KnownRecords) -> list[str]:
    """Ids of the make of the conversation's records that stand nowhere in it."""
    unknown = [
        reading.words
        for reading in said.of("id")
        if (own := reading.words.lower())[0].isalpha()
        and shape_of(own) in known.shapes_of_ids
        and sum(map(str.isdigit, own)) >= LEAST_DIGITS
        and not _PATTERN.search(own)
        and squeezed(own) not in known.corpus
    ]
    return [] if unknown and _is_doubtful(said, _DOUBTS) else unknown


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
        if len(label) < 2 or not all(word in said.lower for word in label.split()):
            continue
        for match in _label_pattern(label).finditer(said.lower):
            span = match.span()
            if own.start < span[1] and span[0] < own.end:
                continue
            if not any(f.start < span[1] and span[0] < f.end for f in found):
                found.append(_Label(*span, field))
    return sorted(found)


@lru_cache(maxsize=4096)
def _label_pattern(label: str) -> re.Pattern[str]:
    words = re.escape(label).replace("\\ ", r"[ _-]")
    return re.compile(words if _HAN.search(label) else rf"(?<!\w){words}(?!\w)")


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
    known: KnownRecords,
    labels: list[_Label],
    own: ValueReading,
) -> StatementFinding | None:
    """Every value is told of a field and is what the field is now, and nothing else is said."""
    left = said.lower
    spans = [(own.start, own.end)]
    bound: list[str] = []
    for label in labels:
        now = known.now_of(record_id, label.field)
        if not now or not all(same_value(value, now[-1]) for value in now):
            return None
        end = _told_to(said, label, own, now[-1])
        if end is None:
            continue
        spans.append((label.start, end))
        bound.append(f"{label.field} is {now[-1]!r}")
    if not bound or any(
        not any(a <= r.start < b for a, b in spans) for r in said.readings if r.start != own.start
    ):
        return None
    for start, end in spans:
        left = f"{left[:start]}{' ' * (end - start)}{left[end:]}"
    if "?" in left or not _is_filled(left, record_id, known, said.table.fillers):
        return None
    return StatementFinding("matched", f"{own.words}: {'; '.join(bound)}.")


def _is_filled(left: str, record_id: str, known: KnownRecords, fillers: frozenset[str]) -> bool:
    """Whether only such words are left as add nothing, or as name what the id is of."""
    rows = known.of_record[record_id]
    keys = {label_of(k) for row in rows for k, v in row.values.items() if _is_same_id(v, record_id)}
    allowed = fillers | {word for key in keys for word in key.split()}
    return not _HAN.search(left) and all(word in allowed for word in _WORD.findall(left))


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
    small = said.table.fillers | said.table.link_words
    if not _is_filled(rest, record_id, known, small) or not _is_own_currency(reading, known):
        return OPEN
    held = known.values_of(record_id, label.field)
    if not held or not all(_is_other(reading, value) for value in held):
        return OPEN
    if not all(row.is_only or row.is_change for row in known.of_record[record_id]):
        return OPEN
    if known.values.may_hold(reading):
        return OPEN
    elsewhere = known.elsewhere(said.table.code)
    if elsewhere.says(reading) or elsewhere.reckons(reading):
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
        return plain and not could_be(reading, value)
    parts = parts_of_text(value)
    if len(parts) != 1 or could_be(reading, value):
        return False
    if isinstance(parts[0], int):
        return reading.kind == "time"
    named = all(month and day for _, month, day in reading.days) and bool(reading.days)
    return reading.kind == "date" and named


def _is_own_currency(reading: ValueReading, known: KnownRecords) -> bool:
    """Whether the currency stands elsewhere in the conversation, so that nothing is converted."""
    sign = re.sub(r"[\d.,\s-]+", "", reading.words.lower())
    return reading.unit != "money" or sign in known.lower_texts
