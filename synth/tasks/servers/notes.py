"""Where a server notes its calls: what is changed by reading is no effect that anybody asked for.

Calls are made on a fresh server, twice each, and the state is read after each. What a call leaves
that only reads is a note. A tool reads where it declares so. Where no tool does, only that is a
note which every call leaves that went well, whatever its tool, and which is all that calls of two
tools leave that answer the same again and tell what lay in the workspace before. Of a tool that a
goal names as showing an effect, numbers that go up and moments of the clock are notes, too.

What only writing changes is never a note. Rows that are told by all that they hold, as those of a
list in JSON without an id, are none either once reading changes a field of them: that cannot be
told from rows taken away. Nor is anything that the definition's own probes print.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from records.tables.schemas import Row
from sandboxes.mcp.servers import GoalCall, ServerConfig, ServerGoal, holds
from sandboxes.mcp.state import ServerState
from synth.episode.tools.cassette import ServerForProof
from synth.rubrics.built_in import StateChange, state_changes
from synth.rubrics.episode import is_read_only
from synth.tasks.goals.knowledge import plain_values

MOST_CALLS = 16
"""That are made to find notes, each of them twice."""

READING_TOOLS = 2
"""Of a server that declares nothing: tools that behave as reading ones, so that one writing tool
with a dull answer makes no note."""

SHARED = ("file", "folder", "git_ref")
"""Entities whose rows have nothing to do with each other: of these single rows are notes."""

SHORTEST = 3
"""Characters of a value by which an answer is known to tell of it."""


class Mark(NamedTuple):
    """Something that a call changed: new rows of an entity, a field, or a row of `SHARED`."""

    entity: str
    field: str | None = None
    row: str | None = None


class Notes(NamedTuple):
    """What is no effect of a goal."""

    volatile: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    rows: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """As in `ServerGoal`."""

    always: frozenset[str] = frozenset()
    """Entities that every call changes, whatever its tool."""

    reading: frozenset[str] = frozenset()
    """Tools that only read."""

    def on(self, goal: ServerGoal) -> ServerGoal:
        """The goal with these notes, beside what it is known for already."""
        volatile = dict(self.volatile)
        for entity, fields in goal.volatile.items():
            known = volatile.get(entity, fields)
            volatile[entity] = tuple(sorted({*known, *fields})) if known and fields else ()
        rows = {
            entity: tuple(sorted({*self.rows.get(entity, ()), *goal.volatile_rows.get(entity, ())}))
            for entity in sorted({*self.rows, *goal.volatile_rows})
        }
        return goal.model_copy(
            update={"volatile": dict(sorted(volatile.items())), "volatile_rows": rows}
        )


NO_NOTES = Notes()


class NotedCall(NamedTuple):
    """A call that went well, and what it changed."""

    call: GoalCall
    answer: str
    changes: list[dict[str, Any]]
    before: ServerState


async def find_notes(
    server: ServerForProof,
    tools: Mapping[str, Row],
    calls: Sequence[GoalCall],
    showing: Iterable[str] = (),
) -> Notes:
    """What the server notes of the calls, which are made on it; it must be a fresh one. On one that
    reaches out only those are made that declare to read.

    `showing`: tools that goals name as showing an effect. TransientError for the server's own
    failure.
    """
    config = server.config
    if config.probes:
        return NO_NOTES
    if config.reaches_out:
        calls = [call for call in calls if call.tool in tools and is_read_only(tools[call.tool])]
    made: list[list[NotedCall]] = []
    before = await server.state()
    for call in distinct(calls, tools):
        times: list[NotedCall] = []
        for _ in range(2):
            result = await server.call(call.tool, call.arguments)
            after = await server.state()
            if not result.is_error:
                times.append(NotedCall(call, result.text, state_changes(before, after), before))
            before = after
        made.append(times)
    return notes_of(config, tools, made, showing)


def distinct(calls: Iterable[GoalCall], tools: Mapping[str, Row]) -> list[GoalCall]:
    """At most `MOST_CALLS`, one of each tool before the second of any."""
    by_tool: dict[str, list[GoalCall]] = {}
    for call in calls:
        known = by_tool.setdefault(call.tool, [])
        if call.tool in tools and call not in known:
            known.append(call)
    turns = max((len(own) for own in by_tool.values()), default=0)
    ordered = [own[turn] for turn in range(turns) for own in by_tool.values() if turn < len(own)]
    return ordered[:MOST_CALLS]


def notes_of(
    config: ServerConfig,
    tools: Mapping[str, Row],
    made: Sequence[Sequence[NotedCall]],
    showing: Iterable[str] = (),
) -> Notes:
    """What of the changes is a note. `made`: of each call the times that it went well."""
    every = [one for times in made for one in times]
    if not every:
        return NO_NOTES
    always = set.intersection(*({*marks_of(one.changes)} for one in every))
    declared = {name for name, tool in tools.items() if is_read_only(tool)}
    found = {mark for one in every if one.call.tool in declared for mark in marks_of(one.changes)}
    behaving = {times[0].call.tool for times in made if _reads(times, always)}
    if len(behaving) >= READING_TOOLS:
        found |= always
    named = {*showing} - declared
    for times in made:
        if times and times[0].call.tool in named:
            counted = {m for one in times for m in _counted(one.changes, config.clock)}
            if _reads(times, found | counted):
                found |= counted
                behaving.add(times[0].call.tool)
    return _as_notes(found, always & found, declared | behaving, every)


def left_by_reading(changes: Sequence[StateChange]) -> Notes:
    """What calls that are known to read have left."""
    return _as_notes({*marks_of(changes)}, set(), set(), ())


def marks_of(changes: Iterable[StateChange]) -> Iterator[Mark]:
    """What calls may leave as a note. Of an entity of which rows are gone, nothing."""
    changes = list(changes)
    less = {change["entity"] for change in changes if change["op"] == "delete"}
    for change in changes:
        entity = change["entity"]
        if entity in SHARED:
            yield Mark(entity, row=change["id"])
        elif entity not in less:
            if change["op"] == "create":
                yield Mark(entity)
            else:
                yield from (Mark(entity, field=field) for field in change["after"] or ())


def _leaves_only(times: Sequence[NotedCall], marks: set[Mark]) -> bool:
    """Whether that is all that the call changes, files that are made for it apart."""
    free = {mark.entity.split(":")[0] for mark in marks}
    return all(
        mark in marks or (mark.entity == "file" and mark.row in free)
        for one in times
        for mark in marks_of(one.changes)
    ) and not any(change["op"] == "delete" for one in times for change in one.changes)


def _reads(times: Sequence[NotedCall], notes: set[Mark]) -> bool:
    """Whether it behaves as a call that reads: it leaves nothing but notes, and answers the same
    again, with something that lay in the workspace before and was not given to it."""
    if len(times) < 2 or times[0].answer != times[1].answer or not _leaves_only(times, notes):
        return False
    one = times[0]
    given = json.dumps(one.call.arguments, ensure_ascii=False)
    told = (
        value
        for rows in one.before.values()
        for ident, row in rows.items()
        for value in (ident, *plain_values(row))
        if isinstance(value, str) and len(value) >= SHORTEST
    )
    return any(value not in given and holds(one.answer, value) for value in told)


def _counted(changes: Iterable[StateChange], clock: str) -> Iterator[Mark]:
    """Fields that went up or were set to the moment at which the clock stands."""
    for change in changes:
        if change["op"] == "update" and change["entity"] not in SHARED:
            before, after = change["before"] or {}, change["after"] or {}
            for field, value in after.items():
                old = before.get(field)
                is_moment = isinstance(value, str) and value.replace(" ", "T").startswith(clock)
                if is_moment or (_is_number(value) and (old is None or _less(old, value))):
                    yield Mark(change["entity"], field=field)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _less(old: Any, value: Any) -> bool:
    return _is_number(old) and old < value


def _as_notes(
    marks: set[Mark], always: set[Mark], reading: set[str], every: Sequence[NotedCall]
) -> Notes:
    """A file that holds nothing but notes is one itself: the first note may make it."""
    fields: dict[str, set[str] | None] = {}
    rows: dict[str, set[str]] = {}
    for mark in marks:
        if mark.row is not None:
            rows.setdefault(mark.entity, set()).add(mark.row)
        elif mark.field is None:
            fields[mark.entity] = None
        elif (known := fields.setdefault(mark.entity, set())) is not None:
            known.add(mark.field)
    whole = {entity for entity, names in fields.items() if names is None}
    others = {
        entity.split(":")[0]
        for one in every
        for entity in {*one.before, *(change["entity"] for change in one.changes)} - whole
    }
    made = {change["id"] for one in every for change in one.changes if change["entity"] == "file"}
    if own := {entity.split(":")[0] for entity in whole} & made - others:
        rows.setdefault("file", set()).update(own)
    return Notes(
        {entity: tuple(sorted(names or ())) for entity, names in sorted(fields.items())},
        {entity: tuple(sorted(ids)) for entity, ids in sorted(rows.items())},
        frozenset(mark.entity for mark in always),
        frozenset(reading),
    )
