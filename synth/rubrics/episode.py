"""What an episode left behind, as the checks see it, and the net effect of its calls."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from records.tables.schemas import Row
from synth.rubrics.criteria import Strict

StateChange = Mapping[str, Any]
"""{"op", "entity", "id", "before", "after"}: for an update before and after hold only the fields
that changed, otherwise they hold the whole row or null. One that a job made by itself, and no
call, has `job`, the job's name, and `at`, the moment."""


class EpisodeCall(Strict):
    tool: str
    arguments: Any
    """As the agent gave them: an object, unless the call was malformed."""

    observation: Any = None
    is_error: bool = False
    error_code: str | None = None
    """Why it failed, where a code says so. With a call that came in from elsewhere and did not
    fail: what is wrong with its form all the same."""

    diff: tuple[dict[str, Any], ...] = ()
    actor: Literal["agent", "user"] = "agent"
    turn: int = 1
    """Number of the assistant message that made it, from 1."""


class PolicyViolation(Strict):
    rule: str
    """Id of the policy rule."""

    call_index: int


class Episode(Strict):
    messages: tuple[dict[str, Any], ...]
    """Chat messages in wire form, the system prompt included or not."""

    calls: tuple[EpisodeCall, ...]
    """In the order in which they were executed."""

    changes: tuple[dict[str, Any], ...]
    """Net difference between the final state and the initial one (see `net_changes`)."""

    breaches: tuple[PolicyViolation, ...] = ()

    tests: dict[str, str | None] | None = None
    """Graded test -> None where it passed on what the agent left, else why not. None: there are
    none to run."""


class Verdict(NamedTuple):
    passed: bool | None
    """None where code leaves it open: the judge decides."""

    score: float
    """In [0, 1]; 1 exactly when passed, 0 where open. Partial for criteria made of several
    values."""

    evidence: str
    """What was expected and what was seen."""


def fields_of(row: Mapping[str, Any] | None) -> dict[str, Any]:
    return dict(row or {})


def _merge(first: StateChange | None, then: StateChange) -> dict[str, Any] | None:
    """One change with the effect of two that follow each other on the same row."""
    if first is None:
        return dict(then)
    merged = dict(then) | {"before": first["before"], "op": first["op"]}
    old, new = fields_of(first["before"]), fields_of(then["after"])
    match first["op"], then["op"]:
        case "create", "update":
            return merged | {"after": fields_of(first["after"]) | new}
        case "create", "delete":
            return None
        case "update", "update":
            before = fields_of(then["before"]) | old
            after = fields_of(first["after"]) | new
            return _update(merged, before, after)
        case "update", "delete":
            return dict(then) | {"before": fields_of(then["before"]) | old}
        case "delete", "create":
            return _update(merged, old, new)
        case pair:
            raise ValueError(f"{pair[1]} cannot follow {pair[0]} on row {then['id']!r}")


def _update(change: dict[str, Any], old: dict[str, Any], new: dict[str, Any]) -> Any:
    """An update with only the fields that differ, or None when none does."""
    changed = [f for f in dict.fromkeys([*old, *new]) if old.get(f) != new.get(f)]
    if not changed:
        return None
    return change | {
        "op": "update",
        "before": {f: old.get(f) for f in changed},
        "after": {f: new.get(f) for f in changed},
    }


def own_changes(changes: Iterable[StateChange] | None) -> list[StateChange]:
    """Those that calls made, without those that jobs made; none where nobody knows them."""
    return [change for change in changes or () if "job" not in change]


def net_changes(changes: Iterable[StateChange]) -> list[dict[str, Any]]:
    """The net effect of what calls changed, in order, one per row that differs in the end.

    A create followed by a delete is no change, two updates are one. Ordered by first touch. What
    a job changes is nobody's: it is left out, and a row that a job makes or takes away is another
    row from there on.
    """
    net: dict[tuple[str, str, int], dict[str, Any] | None] = {}
    lives: Counter[tuple[str, str]] = Counter()
    for change in changes:
        row = (change["entity"], change["id"])
        if "job" in change:
            lives[row] += change["op"] != "update"
            continue
        key = (*row, lives[row])
        net[key] = _merge(net.get(key), change)
    return [change for change in net.values() if change is not None]


def state_changes(
    before: Mapping[str, Mapping[str, Mapping[str, Any]]],
    after: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> list[dict[str, Any]]:
    """How the state of a live server differs, entity -> id -> row each, entity by entity: what is
    gone, what is new, and of what is there both times the fields that differ."""
    changes: list[dict[str, Any]] = []
    for entity in dict.fromkeys([*before, *after]):
        old, new = before.get(entity, {}), after.get(entity, {})
        for key in (key for key in old if key not in new):
            changes.append(_change("delete", entity, key, dict(old[key]), None))
        for key in (key for key in new if key not in old):
            changes.append(_change("create", entity, key, None, dict(new[key])))
        for key in (key for key in new if key in old):
            change = _change("update", entity, key, None, None)
            if old[key] != new[key] and (update := _update(change, {**old[key]}, {**new[key]})):
                changes.append(update)
    return changes


def _change(op: str, entity: str, key: str, before: Any, after: Any) -> dict[str, Any]:
    return {"op": op, "entity": entity, "id": key, "before": before, "after": after}


def episode_of(
    messages: Sequence[dict[str, Any]],
    calls: Sequence[EpisodeCall],
    *,
    changes: Sequence[dict[str, Any]] | None = None,
    policy_violations: Sequence[PolicyViolation] = (),
    tests: Mapping[str, str | None] | None = None,
) -> Episode:
    """An episode whose net effect is that of its calls, unless `changes` gives it (live servers,
    whose state is read and compared as a whole)."""
    if changes is None:
        changes = net_changes(change for call in calls for change in call.diff)
    return Episode(
        messages=tuple(messages),
        calls=tuple(calls),
        changes=tuple(changes),
        breaches=tuple(policy_violations),
        tests=None if tests is None else dict(tests),
    )


def is_read_only(tool: Row) -> bool:
    """What the tool declares; one that declares nothing may write."""
    return bool((tool["annotations"] or {}).get("readOnlyHint"))
