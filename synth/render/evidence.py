"""What code's checks found, told in plain words.

A check writes its evidence as one line (synth.rubrics.state, synth.rubrics.telling), which stays as
it is stored. A reader gets it field by field and value by value. A line of another form, as of an
extension or an earlier version, is told as it was written.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from synth.render.foreign_text import shortened
from synth.rubrics.values import same_value

VALUE_CHARS = 160
"""Of one value of a row."""

BRIEF_CHARS = 110
"""Of what failed, where it is told in a list."""

ValueBefore = Callable[["EvidentChange", str], Any]
"""What a field of a row was before, as far as the conversation shows it; None where it does not."""


class EvidentChange(NamedTuple):
    """A change of a row, as the evidence of the state check names it."""

    op: str
    entity: str
    id: str
    """Empty for a row that is to be created, whose id nobody knows."""
    fields: Mapping[str, Any]

    @property
    def row(self) -> str:
        return " ".join(filter(None, (self.entity, self.id)))

    @property
    def words(self) -> str:
        values = ", ".join(f"{name} {_value(value)}" for name, value in self.fields.items())
        return f"{self.op} {self.row}" + (f" ({values})" if values else "")


class ChangedOtherwise(NamedTuple):
    """A row of which the expected change was not made, but another one."""

    expected: EvidentChange
    seen: EvidentChange

    @property
    def left(self) -> list[str]:
        """Fields that were to change and did not."""
        return [name for name in self.expected.fields if name not in self.seen.fields]

    @property
    def wrong(self) -> list[str]:
        """Fields that became something else than was expected."""
        return [
            name
            for name, value in self.expected.fields.items()
            if name in self.seen.fields and not _agrees(value, self.seen.fields[name])
        ]

    @property
    def beside(self) -> list[str]:
        """Fields that changed and that the expected change does not name; the row's id is none."""
        return [
            name
            for name, value in self.seen.fields.items()
            if name not in self.expected.fields and value != self.seen.id
        ]

    def words(self, before: ValueBefore) -> str:
        parts = [*self._left_words(before), *self._wrong_words()]
        also = ", ".join(f"{name} became {_value(self.seen.fields[name])}" for name in self.beside)
        if also and parts:
            parts.append(f"beside it {also}")
        elif also:
            parts.append(f"{also}, which was not expected")
        told = "; ".join(parts) or "it refers to other rows than expected"
        return f"in {self.seen.row}: {told}"

    def _left_words(self, before: ValueBefore) -> Iterator[str]:
        for name in self.left:
            stayed = self._stayed(name, before)
            yield f"{name} {stayed}, expected {_value(self.expected.fields[name])}"

    def _stayed(self, name: str, before: ValueBefore) -> str:
        if self.seen.op == "create":
            return "was not set"
        was = before(self.seen, name)
        return "was not changed" if was is None else f"stayed {_value(was)}"

    def _wrong_words(self) -> Iterator[str]:
        for name in self.wrong:
            seen, expected = self.seen.fields[name], self.expected.fields[name]
            yield f"{name} became {_value(seen)}, expected {_value(expected)}"


class StateDifference(NamedTuple):
    """What the state check found otherwise than expected."""

    num_expected: int
    num_missing: int
    """Expected changes that were not made as they were to be made."""
    otherwise: tuple[ChangedOtherwise, ...]
    missing: tuple[EvidentChange, ...]
    """Those named for which nothing was changed at all."""
    unexpected: tuple[EvidentChange, ...]
    """Those named of rows that nothing was expected of."""
    more: str
    """How many the evidence does not name; empty for none."""

    def words(self, before: ValueBefore = lambda _change, _field: None) -> str:
        made, all_ = self.num_expected - self.num_missing, self.num_expected
        head = (
            f"Of the {all_} expected changes {made or 'none'} {'was' if made < 2 else 'were'} made"
        )
        if all_ == 0:
            head = "No change was expected"
        elif all_ == 1:
            head = f"The one expected change was {'made' if made else 'not made as expected'}"
        return f"{head}. {self.parts(before)}"

    def parts(self, before: ValueBefore = lambda _change, _field: None) -> str:
        """What differs, row by row."""
        parts = [one.words(before) for one in self.otherwise]
        parts += [f"missing: {one.words}" for one in self.missing]
        parts += [f"not expected: {one.words}" for one in self.unexpected]
        text = ". ".join(part[0].upper() + part[1:] for part in parts if part)
        return (
            f"{text}{self.more}." if text else "Rows refer to each other otherwise than expected."
        )


def state_difference(evidence: str) -> StateDifference | None:
    """What the evidence of a `state` criterion that is not met says; None for another line."""
    found = _STATE.fullmatch(evidence)
    if found is None:
        return None
    try:
        missing, more_missing = _changes(found["missing"] or "")
        unexpected, more_unexpected = _changes(found["unexpected"] or "")
    except ValueError:
        return None
    otherwise: list[ChangedOtherwise] = []
    for change in list(missing):
        if (other := _counterpart(change, unexpected)) is not None:
            otherwise.append(ChangedOtherwise(change, other))
            missing.remove(change)
            unexpected.remove(other)
    more = [f"{n} more missing" for n in (more_missing,) if n]
    more += [f"{n} more not expected" for n in (more_unexpected,) if n]
    return StateDifference(
        int(found["expected"]),
        len(missing) + len(otherwise) + more_missing,
        tuple(otherwise),
        tuple(missing),
        tuple(unexpected),
        f"; and {', '.join(more)}" if more else "",
    )


def _counterpart(
    expected: EvidentChange, unexpected: Sequence[EvidentChange]
) -> EvidentChange | None:
    """The change that was made in its place: of the same row, or of a new row that is as expected
    in half of its fields and more."""
    like = [c for c in unexpected if (c.op, c.entity) == (expected.op, expected.entity)]
    if expected.id:
        return next((c for c in like if c.id == expected.id), None)
    best = max(like, key=lambda c: _num_equal(expected, c), default=None)
    if best is None or 2 * _num_equal(expected, best) < max(1, len(expected.fields)):
        return None
    return best


def _num_equal(expected: EvidentChange, seen: EvidentChange) -> int:
    return sum(
        name in seen.fields and _agrees(value, seen.fields[name])
        for name, value in expected.fields.items()
    )


def _agrees(expected: Any, seen: Any) -> bool:
    """Whether a value can be the expected one, where ids of new rows are not known."""
    match expected:
        case {"$new": _}:
            return True
        case {"$from": low, "$to": high}:
            is_text = isinstance(low, str)
            return isinstance(seen, str if is_text else int | float) and low <= seen <= high
        case dict() if isinstance(seen, dict) and expected.keys() == seen.keys():
            return all(_agrees(value, seen[key]) for key, value in expected.items())
        case _:
            return same_value(expected, seen, ordered=False)


def _value(value: Any) -> str:
    match value:
        case {"$new": _}:
            return "the new row"
        case {"$from": low, "$to": high}:
            return f"something from {_value(low)} to {_value(high)}"
        case str():
            return f"\u201c{shortened(value, VALUE_CHARS)}\u201d"
        case _:
            return shortened(json.dumps(value, ensure_ascii=False), VALUE_CHARS)


_STATE = re.compile(
    r"Expected (?P<expected>\d{1,9}) changes, seen \d+; "
    r"(?:rows refer to each other otherwise than expected"
    r"|(?:missing: (?P<missing>.+?))?(?:\. )?(?:not expected: (?P<unexpected>.+))?)\.",
    re.DOTALL,
)
_CHANGE = re.compile(
    r"(create|update|delete) (\S+?)(?: (?!\{)(.+?))?(?= \{|; |\Z)( (?=\{))?", re.DOTALL
)
_MORE = re.compile(r"and (\d{1,9}) more")
_JSON = json.JSONDecoder()


def _changes(text: str) -> tuple[list[EvidentChange], int]:
    """Those that are listed, and how many more are only counted. ValueError for another form."""
    found: list[EvidentChange] = []
    place = 0
    while place < len(text):
        if more := _MORE.fullmatch(text, place):
            return found, int(more[1])
        change = _CHANGE.match(text, place)
        if change is None:
            raise ValueError(f"no change at {place}")
        fields, place = {}, change.end()
        if change[4]:
            fields, place = _JSON.raw_decode(text, place)
        found.append(EvidentChange(change[1], change[2], change[3] or "", fields))
        if place < len(text) and not text.startswith("; ", place):
            raise ValueError(f"no end of a change at {place}")
        place += 2
    return found, 0


class EvidentTelling(NamedTuple):
    """Whether the user was told one value, as the evidence says."""

    value: str
    told: bool | None
    """None: code could not tell for sure."""
    flaw: str
    """In which way alone it stands in a reply; empty where it stands in none, or well."""
    quote: str
    """Of the reply."""

    @property
    def words(self) -> str:
        if self.told:
            return f"{self.value} was told"
        if self.flaw:
            flaw = _FLAWS.get(self.flaw, self.flaw)
            return f"{self.value} was told only {flaw}: \u201c{self.quote}\u201d"
        if self.told is None:
            return f"{self.value} was not found, and code cannot tell for sure whether it was told"
        return f"{self.value} was not told"


_FLAWS = {
    "perhaps": "perhaps",
    "among others": "among other values",
    "before another value": "before another value took its place",
}
_REPR = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ESCAPED = re.compile(r"""\\(['"\\])""")
_TOLD = re.compile(r"Expected the user to be told .+?; told \d+; (?P<reasons>.+)\.", re.DOTALL)
_TELLING = re.compile(
    r"(?:not told: (?P<untold>(?:(?!; ).)+)|(?P<unfound>(?:(?!; ).)+?) not found"
    rf"|(?P<value>(?:(?!; ).)+?)(?: only (?P<flaw>[a-z ]+?))? in (?P<quote>{_REPR}))(?:; |\Z)",
    re.DOTALL,
)


def tellings(evidence: str) -> list[EvidentTelling]:
    """What the evidence of a `communicate` criterion says of each value; empty for another line."""
    found = _TOLD.fullmatch(evidence)
    reasons = found["reasons"] if found else ""
    told: list[EvidentTelling] = []
    place = 0
    while place < len(reasons):
        one = _TELLING.match(reasons, place)
        if one is None:
            return []
        place = one.end()
        told.append(_telling(one))
    return told


def _telling(one: re.Match[str]) -> EvidentTelling:
    if one["untold"] is not None:
        return EvidentTelling(one["untold"], False, "", "")
    if one["unfound"] is not None:
        return EvidentTelling(one["unfound"], None, "", "")
    quote = _ESCAPED.sub(r"\1", one["quote"][1:-1])
    return EvidentTelling(one["value"], None if one["flaw"] else True, one["flaw"] or "", quote)


_BY_CALL = re.compile(r" by call \d+")
_NOT_TO_CALL = re.compile(r"Expected no call of (.+); seen \d+ such calls\.", re.DOTALL)
_TO_CALL = re.compile(r"Expected a successful call of (.+); seen (\d+), of .+", re.DOTALL)


def in_words(kind: str, evidence: str, before: ValueBefore = lambda _change, _field: None) -> str:
    """What code found for a criterion of this kind, as sentences."""
    if kind == "state" and (difference := state_difference(evidence)):
        return difference.words(before)
    if kind == "communicate" and (told := tellings(evidence)):
        told.sort(key=lambda one: one.told is True)
        return "; ".join(one.words for one in told) + "."
    return evidence


def in_brief(kind: str, evidence: str) -> str:
    """What failed, in a few words for a list."""
    text = " ".join(_brief(kind, evidence).split()).removesuffix(".")
    return text if len(text) <= BRIEF_CHARS else f"{text[: BRIEF_CHARS - 1].rstrip()}\u2026"


def _brief(kind: str, evidence: str) -> str:
    if kind == "state" and (difference := state_difference(evidence)):
        return difference.parts()
    if kind == "communicate" and (told := tellings(evidence)):
        return "; ".join(one.words for one in told if not one.told)
    if kind == "policy":
        return _BY_CALL.sub("", evidence.rpartition("; seen ")[2])
    if found := _NOT_TO_CALL.fullmatch(evidence):
        return f"called, and not to be called: {found[1]}"
    if found := _TO_CALL.fullmatch(evidence):
        return f"not called with success: {found[1]}"
    expected, _, seen = evidence.partition("; ")
    return seen if seen and expected.startswith("Expected ") else evidence
