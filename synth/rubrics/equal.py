"""Rows that are equal stand for each other: the expected changes, told of other ones of them."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from synth.rubrics.criteria import ExpectedChange, StateCheck
from synth.rubrics.episode import StateChange

MOST = 5_000
"""Ways to exchange rows that are tried. A group is a handful of rows, of which a task changes one
or two."""


def exchanged(
    check: StateCheck, actual: Sequence[StateChange]
) -> Iterator[tuple[ExpectedChange, ...]]:
    """The expected changes as they are, and then with rows that equal others exchanged for these,
    in every way that the actual changes may be."""
    yield check.changes
    ways = [
        _ways(check.changes, actual, group.ids)
        for group in check.equal
        if _mentions([c.match for c in check.changes], group.ids)
        or any(c.id in group.ids for c in check.changes)
    ]
    for chosen in itertools.islice(itertools.product(*ways), MOST if ways else 0):
        other = {old: new for way in chosen for old, new in way.items()}
        yield tuple(
            change.model_copy(
                update={
                    "id": other.get(change.id or "", change.id),
                    "match": _renamed(change.match, other),
                }
            )
            for change in check.changes
        )


def _ways(
    expected: Sequence[ExpectedChange], actual: Sequence[StateChange], ids: Sequence[str]
) -> list[dict[str, str]]:
    """One of the rows for each that is expected to take part, among those that have taken part."""
    used = [i for i in ids if any(i == c.id or _mentions(c.match, [i]) for c in expected)]
    seen = [i for i in ids if any(i == c["id"] or _mentions(c["after"], [i]) for c in actual)]
    ways = itertools.islice(itertools.permutations(seen, len(used)), MOST)
    return [dict(zip(used, way, strict=True)) for way in ways]


def _mentions(value: Any, ids: Sequence[str]) -> bool:
    if isinstance(value, Mapping):
        return any(_mentions(v, ids) for v in value.values())
    if isinstance(value, list | tuple):
        return any(_mentions(v, ids) for v in value)
    return isinstance(value, str) and value in ids


def _renamed(value: Any, other: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {k: _renamed(v, other) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(v, other) for v in value]
    return other.get(value, value) if isinstance(value, str) else value
