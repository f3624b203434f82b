"""A proposed goal is executed on two fresh servers: it is kept where it works, has an effect or
tells something, and comes out the same both times."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from records.digest import canonical_json
from records.seeds import seed_of
from records.tables.schemas import Row
from sandboxes.mcp.servers import GoalCall, ServerConfig, ServerGoal
from synth.episode.tools.cassette import ServerForProof
from synth.rubrics.built_in import EpisodeCall, StateChange
from synth.rubrics.episode import is_read_only
from synth.tasks.goals.goals import Step
from synth.tasks.proof.proving import UnprovedError
from synth.tasks.servers.notes import NO_NOTES, Notes, left_by_reading
from synth.tasks.servers.proving import (
    PlayedGoals,
    incidental_of,
    made_ids,
    play,
    read_from_of,
    visible,
)


class OpenFresh(Protocol):
    def __call__(
        self, config: ServerConfig, fixture: Mapping[str, Any] | None = None, /
    ) -> AbstractAsyncContextManager[ServerForProof]: ...


def drawing(config: ServerConfig, item: str, purpose: str, index: int = 0) -> dict[str, Any]:
    """The server as tasks find it, with random draws that belong to one purpose of the item."""
    return {"start": config.start, "seed": seed_of(item, purpose, index)}


class TriedGoal(NamedTuple):
    goal: ServerGoal
    """With what its execution showed: whether it writes, what is volatile, what shows it."""

    calls: tuple[EpisodeCall, ...]
    changes: list[dict[str, Any]]
    before: dict[str, Any]
    """The state at the start."""

    state_read_from: str


async def try_goal(
    config: ServerConfig,
    goal: ServerGoal,
    tools: Mapping[str, Row],
    open_fresh: OpenFresh,
    notes: Notes = NO_NOTES,
) -> TriedGoal:
    """Execute the goal twice, and what is to show its effect once without it. `notes` are no effect
    of it. UnprovedError saying why it cannot be kept, TransientError for the server's own failure.
    """
    for call in (*goal.calls, *goal.seen_by):
        if call.tool not in tools:
            raise UnprovedError("unknown_tool", call.tool)
    first, second = [await _played(config, goal, goal.calls, open_fresh, n) for n in range(2)]
    goal = notes.on(goal)
    noted = incidental_of([goal])
    plainly = [one._replace(changes=visible(one.changes, noted)) for one in (first, second)]
    goal = notes.on(goal.model_copy(update={"volatile": _volatile(*plainly)}))
    shown = visible(first.changes, incidental_of([goal]))
    if all(is_read_only(tools[call.tool]) for call in goal.calls):
        goal = left_by_reading(first.changes).on(goal).model_copy(update={"seen_by": ()})
        return TriedGoal(goal, first.calls[0], [], first.before, "none")
    if shown:
        goal = goal.model_copy(update={"seen_by": (), "writes": True})
        read_from = read_from_of(config, shown)
        return TriedGoal(goal, first.calls[0], shown, first.before, read_from)
    _need_more_than_notes(goal, first.changes, notes)
    if not goal.seen_by:
        return TriedGoal(goal, first.calls[0], [], first.before, "none")
    idle = await _played(config, goal, (), open_fresh, 2)
    if idle.seen[0] or visible(idle.changes, noted):
        raise UnprovedError("no_effect", "what is to show it changes by itself")
    if not (first.seen[0] and second.seen[0]):
        raise UnprovedError("no_effect", "neither the state nor what is to show it is another one")
    goal = goal.model_copy(update={"writes": True})
    return TriedGoal(goal, first.calls[0], [], first.before, "calls")


class TriedTwin(NamedTuple):
    """What the other state of a goal that is not plain came to."""

    before: tuple[EpisodeCall, ...]
    calls: tuple[EpisodeCall, ...]
    changes: list[dict[str, Any]]
    """Of `before` and `calls` together."""


async def try_twin(
    config: ServerConfig, tried: TriedGoal, open_fresh: OpenFresh
) -> TriedTwin | None:
    """The goal's twin, executed; None where it has none, where it does not work, or where the
    goal's own calls come to the same in the other state."""
    goal = tried.goal
    if goal.twin is None or goal.twin.calls == goal.calls:
        return None
    before = _plan(goal.twin.before)
    hidden = incidental_of([goal])

    async def in_other_state(calls: Sequence[GoalCall]) -> PlayedGoals:
        async with open_fresh(config, drawing(config, goal.id, "twin")) as server:
            return await play(server, [None, None], [before, _plan(calls)])

    try:
        right = await in_other_state(goal.twin.calls)
    except UnprovedError:
        return None
    twin = TriedTwin(right.calls[0], right.calls[1], visible(right.changes, hidden))
    try:
        wrong = await in_other_state(goal.calls)
    except UnprovedError:
        return twin
    if goal.writes:
        ids = made_ids(right.changes, twin.calls) | made_ids(wrong.changes, wrong.calls[1])
        rows = [_rows(visible(played.changes, hidden), ids) for played in (right, wrong)]
        return twin if rows[0] != rows[1] else None
    answers = [[call.observation for call in played.calls[1]] for played in (right, wrong)]
    return twin if answers[0] != answers[1] else None


def _rows(changes: Sequence[StateChange], made: Collection[str]) -> list[Any]:
    """The changes without the ids that the server made up."""
    return sorted(
        ([c["op"], c["entity"], None if c["id"] in made else c["id"], c["after"]] for c in changes),
        key=canonical_json,
    )


def _plan(calls: Sequence[GoalCall]) -> list[Step]:
    return [Step(tool=call.tool, arguments=call.arguments) for call in calls]


async def _played(
    config: ServerConfig,
    goal: ServerGoal,
    calls: Sequence[GoalCall],
    open_fresh: OpenFresh,
    number: int,
) -> PlayedGoals:
    """Of the execution with this number: each draws other random values."""
    async with open_fresh(config, drawing(config, goal.id, "try", number)) as server:
        return await play(server, [goal], [_plan(calls)])


def _need_more_than_notes(goal: ServerGoal, changes: Sequence[StateChange], notes: Notes) -> None:
    """For a goal that leaves nothing but notes: what some tools leave by reading may be the whole
    effect of one that writes, and would then be compared by nobody."""
    if all(call.tool in notes.reading for call in goal.calls):
        return
    for entity in sorted({change["entity"] for change in changes} - notes.always):
        if entity in notes.volatile:
            raise UnprovedError("no_effect", f"reading changes {entity}, too")


def _volatile(first: PlayedGoals, second: PlayedGoals) -> dict[str, tuple[str, ...]]:
    """Entity -> fields that differ between two executions. UnprovedError where more than fields
    differs."""
    if len(first.changes) != len(second.changes):
        raise UnprovedError("not_repeatable", "other rows are changed the second time")
    new = made_ids(first.changes, first.calls[0])
    found: dict[str, set[str]] = {}
    for one, other in zip(_ordered(first.changes), _ordered(second.changes), strict=True):
        same_row = one["id"] == other["id"] or one["id"] in new
        if (one["op"], one["entity"]) != (other["op"], other["entity"]) or not same_row:
            raise UnprovedError("not_repeatable", f"{one['op']} {one['entity']} {one['id']}")
        mine, others = one["after"] or {}, other["after"] or {}
        if mine.keys() != others.keys():
            raise UnprovedError("not_repeatable", f"other fields of {one['entity']} are set")
        if differing := {field for field, value in mine.items() if others[field] != value}:
            found.setdefault(one["entity"], set()).update(differing)
    return {entity: tuple(sorted(fields)) for entity, fields in sorted(found.items())}


def _ordered(changes: Sequence[StateChange]) -> list[StateChange]:
    """Ids of new rows may differ, so that their order must not hang on them."""
    return sorted(changes, key=lambda c: (c["entity"], c["op"], c["op"] != "create" and c["id"]))
