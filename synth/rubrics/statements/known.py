"""What a conversation holds: the records of its calls, results and changes, field by field."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from records.tables.schemas import Row
from synth.rubrics.reading.messages import text_of
from synth.rubrics.statements.told_elsewhere import ToldElsewhere
from synth.rubrics.statements.value_index import ValueIndex
from synth.rubrics.values import shape_of, squeezed

MOST_ROWS = 400
"""Objects of one conversation's results that are looked at."""

MOST_TEXT = 20_000
"""Characters of results that are plain text in which values are looked for."""

_ID = re.compile(r"(?=.*\d)[A-Za-z\d]+(?:[-_./][A-Za-z\d]+)*")
_LONGEST_ID = 40
_WORDS = re.compile(r"(?<=[a-z\d])(?=[A-Z])|[_\W]+")


class KnownRow(NamedTuple):
    """One object of a result, of a call's arguments or of a change."""

    source: str
    """Where it comes from, as people read it."""
    values: Mapping[str, Any]
    own_id: str | None
    """Of which record it tells the fields; None where it does not say."""
    ids: frozenset[str]
    """Everything in it that looks like an id, in lower case."""
    is_state: bool
    """Whether the values are a record's, and not what a call asked for, failed with or was fed."""
    is_change: bool = False
    """Whether it is what a call left of a record."""
    is_only: bool = True
    """Whether no other id stands in it, so that its values are its own record's."""


class KnownRecords:
    """The records that a conversation knows, from its calls and their results."""

    def __init__(self, messages: Sequence[Mapping[str, Any]], calls: Sequence[Row]) -> None:
        self._messages = messages
        self._calls = calls
        self._elsewhere: dict[str, ToldElsewhere] = {}

    @cached_property
    def rows(self) -> list[KnownRow]:
        rows: list[KnownRow] = []
        for call in self._calls:
            if len(rows) > MOST_ROWS:
                break
            rows += _rows_of(call)
        return rows[:MOST_ROWS]

    @cached_property
    def of_record(self) -> Mapping[str, list[KnownRow]]:
        """Id in lower case -> the rows that are this record's own, in order."""
        found: dict[str, list[KnownRow]] = {}
        for row in self.rows:
            if row.is_state and row.own_id is not None:
                found.setdefault(row.own_id, []).append(row)
        return found

    @cached_property
    def places_of_ids(self) -> Mapping[str, list[int]]:
        """Id in lower case -> where in `rows` it stands."""
        found: dict[str, list[int]] = {}
        for place, row in enumerate(self.rows):
            for name in row.ids:
                found.setdefault(name, []).append(place)
        return found

    @cached_property
    def shapes_of_ids(self) -> frozenset[str]:
        """How the ids of records are made."""
        return frozenset(map(shape_of, self.of_record))

    @cached_property
    def places_of_values(self) -> Mapping[Any, list[int]]:
        """Text or number -> where in `rows` it stands."""
        found: dict[Any, list[int]] = {}
        for place, row in enumerate(self.rows):
            for value in row.values.values():
                if isinstance(value, str | int | float) and not isinstance(value, bool):
                    found.setdefault(value, []).append(place)
        return found

    @cached_property
    def corpus(self) -> str:
        """Letters and digits of all that was said, called, found and changed, in lower case, the
        agent's own words left out."""
        parts = [text_of(m) for m in self._messages if m["role"] != "assistant"]
        for call in self._calls:
            parts += (str(call["arguments"]), str(call["observation"]))
            parts.append(str(call["state_diff"] or ""))
        return squeezed("\n".join(parts))

    @cached_property
    def user_words(self) -> str:
        return "\n".join(text_of(m) for m in self._messages if m["role"] == "user")

    @cached_property
    def instructions(self) -> str:
        return "\n".join(text_of(m) for m in self._messages if m["role"] == "system")

    @cached_property
    def plain_results(self) -> str:
        """The results that are text and no object."""
        results = (parsed(call["observation"]) for call in self._calls)
        return "\n".join(r for r in results if isinstance(r, str))[:MOST_TEXT]

    @cached_property
    def values(self) -> ValueIndex:
        """Every text and number of calls, results and changes; all but ids are names."""
        values = self.places_of_values.keys()
        return ValueIndex(values, [value for value in values if not is_id(value)])

    @cached_property
    def lower_texts(self) -> str:
        """All texts of calls, results and changes, and what the user, the instructions and results
        in plain text say, in lower case, a line each."""
        return "\n".join((*self._plain_texts, *self.values.texts)).lower()

    def elsewhere(self, language: str) -> ToldElsewhere:
        """What is told outside the records, read in a language that has a table."""
        if language not in self._elsewhere:
            self._elsewhere[language] = ToldElsewhere(self._plain_texts, language, self.values)
        return self._elsewhere[language]

    @property
    def _plain_texts(self) -> tuple[str, str, str]:
        return self.instructions, self.user_words, self.plain_results

    def now_of(self, record_id: str, field: str) -> list[Any]:
        """What the field may be at the end: what the last change left, or else all that results
        ever showed. Empty where a result of several records leaves open whose value it is."""
        rows = [r for r in self.of_record.get(record_id, ()) if field in r.values]
        changes = [row.values[field] for row in rows if row.is_change]
        if changes:
            return changes[-1:]
        if not all(row.is_only for row in rows):
            return []
        shown = (r for r in self._naming(record_id) if r.is_state and field in r.values)
        return [row.values[field] for row in shown]

    def is_settled(self, record_id: str, field: str) -> bool:
        """Whether the last value seen of a field is still the record's: what calls changed is
        known, or no call names the record after it."""
        if any(call["state_diff"] for call in self._calls):
            return True
        naming = self._naming(record_id)
        seen = [n for n, row in enumerate(naming) if row.is_state and field in row.values]
        later = naming[seen[-1] + 1 :] if seen else ()
        return all(row.is_state for row in later)

    def values_of(self, record_id: str, field: str) -> list[Any]:
        """Everything that this field ever was for the record, was asked to be, or may have been
        meant for: of each row that names the record at all."""
        return [row.values[field] for row in self._naming(record_id) if field in row.values]

    def _naming(self, record_id: str) -> list[KnownRow]:
        """The rows in which the id stands, in order."""
        return [self.rows[place] for place in self.places_of_ids.get(record_id, ())]


def label_of(field: str) -> str:
    """A field's name in words, in lower case: `lunch_fee` and `lunchFee` are "lunch fee"."""
    return " ".join(part for part in _WORDS.split(field) if part).lower()


def is_id(value: Any) -> bool:
    """A word with a digit in it: `LP-58213`, `NX416`; no number, date or time."""
    return (
        isinstance(value, str)
        and len(value) <= _LONGEST_ID
        and any(map(str.isalpha, value))
        and _ID.fullmatch(value) is not None
        and re.match(r"\d{4}-\d{2}-\d{2}", value) is None
    )


def _rows_of(call: Row) -> Iterator[KnownRow]:
    name = call["name"]
    called = f"{name} was called with"
    rows = list(_objects(called, call["arguments"], frozenset(), is_state=False))
    yield from rows
    failed = bool(call["is_error"])
    result = f"{name} {'failed with' if failed else 'returned'}"
    is_state = not failed and not call.get("injected_outcome")
    asked = frozenset(name for row in rows for name in row.ids)
    for row in _objects(result, parsed(call["observation"]), frozenset(), is_state=is_state):
        yield row if row.ids else row._replace(ids=asked)
    for change in call["state_diff"] or ():
        own = str(change["id"]).lower()
        for part in ("before", "after"):
            if values := change.get(part):
                who = change.get("job", name)
                source = f"{who} changed {change['entity']} {change['id']}, {part}:"
                ids = frozenset({own, *(v.lower() for v in values.values() if is_id(v))})
                yield KnownRow(source, dict(values), own, ids, True, is_change=part == "after")


def parsed(observation: Any) -> Any:
    """What a call brought back as a JSON value, or the text as it is."""
    if isinstance(observation, str) and observation.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(observation)
        except (ValueError, RecursionError):
            return observation
    return observation


def _objects(
    source: str, value: Any, above: frozenset[str], *, is_state: bool, depth: int = 0
) -> Iterator[KnownRow]:
    """Every object in a JSON value, at any depth; `above`: ids of the objects that it stands in."""
    if depth > 8:
        return
    if isinstance(value, list):
        for part in value:
            yield from _objects(source, part, above, is_state=is_state, depth=depth + 1)
        return
    if isinstance(value, str) and depth:
        value = parsed(value)
    if not isinstance(value, dict):
        return
    plain = {k: v for k, v in value.items() if not isinstance(v, dict | list)}
    own = [v.lower() for v in plain.values() if is_id(v)]
    ids = above | frozenset(own)
    if plain:
        is_only = len(set(own)) == 1
        yield KnownRow(source, plain, own[0] if own else None, ids, is_state, is_only=is_only)
    for part in value.values():
        if isinstance(part, dict | list | str):
            yield from _objects(source, part, ids, is_state=is_state, depth=depth + 1)
