"""The state check: exactly the expected changes, and nothing else changed (frame condition).

Order of calls and numbers of generated ids do not matter: rows that the environment named itself
are matched by content, by a small search, and the ids found are put in for `{"$new": i}`. Rows of
the initial state that are equal stand for each other.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from synth.rubrics.criteria import ExpectedChange, StateCheck
from synth.rubrics.episode import StateChange, Verdict, fields_of
from synth.rubrics.equal import exchanged
from synth.rubrics.values import same_value

Ids = dict[int, str]
"""Index of an expected create -> id of the row that stands for it."""

SEARCH_STEPS = 10_000
"""Bound on the search. Expected creates are a handful, so only an agent that makes many like
rows gets near it, and then the counts differ and the search is not entered at all."""


def _visible(change: StateChange, check: StateCheck) -> dict[str, Any] | None:
    """The change without incidental fields; None when nothing is left of it."""
    own = [one for one in check.incidental if one.is_of(change)]
    if not own:
        return dict(change)
    if not all(one.fields for one in own):
        return None
    fields = {field for one in own for field in one.fields}
    kept = {
        side: {f: v for f, v in fields_of(change[side]).items() if f not in fields}
        for side in ("before", "after")
    }
    if change["op"] == "update" and not kept["after"]:
        return None
    return dict(change) | kept


def _filled(value: Any, ids: Ids) -> Any:
    """`value` with the placeholders of known rows put in."""
    if isinstance(value, dict):
        if set(value) == {"$new"}:
            return ids.get(value["$new"], value)
        return {k: _filled(v, ids) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(v, ids) for v in value]
    return value


def _has_open_placeholder(value: Any) -> bool:
    if isinstance(value, dict):
        return set(value) == {"$new"} or any(map(_has_open_placeholder, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_open_placeholder, value))


def _agrees(expected: ExpectedChange, actual: StateChange, ids: Ids) -> bool:
    """Whether `actual` can be `expected`, given the ids known so far (unknown ones match all)."""
    if (expected.op, expected.entity) != (actual["op"], actual["entity"]):
        return False
    if expected.id is not None and expected.id != actual["id"]:
        return False
    if expected.op == "delete":
        return True
    before, after = fields_of(actual["before"]), fields_of(actual["after"])
    own_key = {f for f, v in after.items() if v == actual["id"] and f not in expected.match}
    if set(after) - own_key - set(expected.free) != set(expected.match):
        return False
    for field, value in _filled(expected.match, ids).items():
        if _has_open_placeholder(value):
            continue
        if not _same_field(value, before.get(field), after[field]):
            return False
    return True


def _same_field(expected: Any, before: Any, after: Any) -> bool:
    """Lists are compared as bags, unless all that the change did was to reorder the list."""
    if isinstance(expected, dict) and set(expected) == {"$from", "$to"}:
        return _within(expected["$from"], expected["$to"], after)
    reordered = (
        isinstance(before, list)
        and isinstance(after, list)
        and before != after
        and same_value(before, after, ordered=False)
    )
    return same_value(expected, after, ordered=reordered)


def _within(low: Any, high: Any, value: Any) -> bool:
    """ISO dates and moments compare as text."""
    if isinstance(low, str):
        return isinstance(value, str) and len(value) == len(low) and low <= value <= high
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _assignments(
    expected: Sequence[ExpectedChange], actual: Sequence[StateChange]
) -> Iterator[list[int]]:
    """Every way (within the bound) to give each expected change an actual one of its own."""
    steps = 0

    def extend(chosen: list[int], ids: Ids) -> Iterator[list[int]]:
        nonlocal steps
        steps += 1
        if steps > SEARCH_STEPS:
            return
        i = len(chosen)
        if i == len(expected):
            if all(_agrees(e, actual[j], ids) for e, j in zip(expected, chosen, strict=True)):
                yield chosen
            return
        for j, change in enumerate(actual):
            if j not in chosen and _agrees(expected[i], change, ids):
                known = ids | ({i: change["id"]} if expected[i].op == "create" else {})
                yield from extend([*chosen, j], known)

    yield from extend([], {})


def _show(op: str, entity: str, row_id: str | None, fields: Mapping[str, Any]) -> str:
    text = json.dumps(dict(fields), ensure_ascii=False, sort_keys=True, default=str)
    name = f" {row_id}" if row_id else ""
    return f"{op} {entity}{name}" + (f" {text}" if fields else "")


def _show_expected(change: ExpectedChange) -> str:
    return _show(change.op, change.entity, change.id, change.match)


def _show_actual(change: StateChange) -> str:
    return _show(change["op"], change["entity"], change["id"], fields_of(change["after"]))


def _listed(items: Sequence[str], limit: int = 5) -> str:
    shown = "; ".join(items[:limit])
    return shown + (f"; and {len(items) - limit} more" if len(items) > limit else "")


def _difference(expected: Sequence[ExpectedChange], actual: Sequence[StateChange]) -> str:
    """Which expected changes are missing and which actual ones are too many, paired greedily."""
    rest, missing = list(actual), []
    for change in expected:
        fit = next((a for a in rest if _agrees(change, a, {})), None)
        if fit is None:
            missing.append(_show_expected(change))
        else:
            rest.remove(fit)
    parts = []
    if missing:
        parts.append(f"missing: {_listed(missing)}")
    if rest:
        parts.append(f"not expected: {_listed([_show_actual(a) for a in rest])}")
    return ". ".join(parts) or "rows refer to each other otherwise than expected"


def check_state(check: StateCheck, changes: Sequence[StateChange]) -> Verdict:
    """Whether the net `changes` of an episode are exactly the expected ones."""
    actual = [v for c in changes if (v := _visible(c, check)) is not None]
    expected = check.changes
    same_count = len(actual) == len(expected)
    if same_count and any(
        next(_assignments(changes, actual), None) is not None
        for changes in exchanged(check, actual)
    ):
        what = _listed([_show_expected(c) for c in expected]) or "no change"
        return Verdict(True, 1.0, f"Expected and seen: {what}.")
    summary = f"Expected {len(expected)} changes, seen {len(actual)}"
    return Verdict(False, 0.0, f"{summary}; {_difference(expected, actual)}.")


def is_part(check: StateCheck, changes: Sequence[StateChange]) -> bool:
    """Whether the net `changes` of an episode are some of the expected ones, or none, and no other
    was made."""
    actual = [v for c in changes if (v := _visible(c, check)) is not None]
    return any(_is_part(expected, actual) for expected in exchanged(check, actual))


def _is_part(expected: Sequence[ExpectedChange], actual: Sequence[StateChange]) -> bool:
    steps = 0

    def fits(chosen: list[int], ids: Ids) -> bool:
        """Whether the rest of `actual` can be given expected changes beside those `chosen`."""
        nonlocal steps
        steps += 1
        number = len(chosen)
        if number == len(actual):
            return all(_agrees(expected[i], a, ids) for i, a in zip(chosen, actual, strict=True))
        change = actual[number]
        return any(
            fits([*chosen, i], ids | ({i: change["id"]} if wanted.op == "create" else {}))
            for i, wanted in enumerate(expected)
            if i not in chosen and steps <= SEARCH_STEPS and _agrees(wanted, change, ids)
        )

    return fits([], {})
