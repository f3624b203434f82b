"""Typed patches on a domain's state, as a simulator model proposes them: all counts, or nothing.

An accepted patch leaves a state that the domain declares possible: fields of their types, ids that
exist, refs that lead somewhere, no row that another still refers to gone, every invariant true, and
statuses moved only as their lifecycle allows.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.domains.seed_rows import check_refs
from tool_specs.execution.fields import RowCheck
from tool_specs.execution.invariants import broken_in
from tool_specs.execution.jobs import JobChange
from tool_specs.execution.programs import Problems
from tool_specs.execution.state import EntityRow, RowChange, State
from tool_specs.language.domain_file import EntitySpec
from tool_specs.language.values import EvaluationError, show_value

MAX_OPS = 100
"""Rows that one call may change."""

PATCH: dict[str, Any] = {
    "type": "array",
    "maxItems": MAX_OPS,
    "items": {
        "type": "object",
        "properties": {
            "op": {"enum": ["create", "update", "delete"]},
            "entity": {"type": "string"},
            "id": {"type": "string", "minLength": 1, "maxLength": 200},
            "set": {"type": "object"},
        },
        "required": ["op", "entity", "id", "set"],
        "additionalProperties": False,
    },
}
"""Schema of a patch. `set`: every field of a created row (those left out are null), the changed
fields of an updated one, nothing for a deleted one."""

Op = Mapping[str, Any]


class PatchError(Exception):
    """Everything that is wrong with a patch, in words for who wrote it."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = list(problems)


def apply_patch(domain: Domain, state: State, patch: Sequence[Op]) -> list[RowChange]:
    """Change `state` in place and commit it; the net changes. PatchError leaves it as it was."""
    problems: list[str] = []
    before: dict[tuple[str, str], EntityRow | None] = {}
    for number, op in enumerate(patch, 1):
        try:
            _put(domain, state, op, before)
        except EvaluationError as error:
            problems.append(f"patch {number} ({op['op']} {op['entity']} {op['id']}): {error}")
    problems = problems or list(_faults(domain, state, before))
    if problems:
        state.rollback()
        raise PatchError(problems)
    return state.commit()


class PatchedInTime(NamedTuple):
    """What came of a patch in the time that its call takes."""

    before: list[JobChange]
    own: list[RowChange]
    after: list[JobChange]

    @property
    def all_changes(self) -> list[RowChange]:
        return [*self.before, *self.own, *self.after]


def patched_in_time(
    environment: DomainEnvironment, tool: str, arguments: Any, patch: Sequence[Op]
) -> PatchedInTime:
    """Change the environment by a call's patch, and by what falls due meanwhile. PatchError leaves
    it as it was."""
    undo = environment.state.snapshot()
    before_s, after_s = environment.durations(tool, arguments)
    try:
        before = environment.pass_time(before_s)
        own = apply_patch(environment.domain, environment.state, patch) if patch else []
        return PatchedInTime(before, own, environment.pass_time(after_s))
    except PatchError:
        environment.state = undo
        raise
    except EvaluationError as error:
        environment.state = undo
        raise PatchError([str(error)]) from None


def _put(
    domain: Domain, state: State, op: Op, before: dict[tuple[str, str], EntityRow | None]
) -> None:
    """Put one row; EvaluationError for what does not fit its entity."""
    name, key, given = op["entity"], op["id"], op["set"]
    entity = domain.entities.get(name)
    if entity is None:
        raise EvaluationError(f"unknown entity; entities: {', '.join(domain.entities)}")
    old = state.get(name, key)
    row: EntityRow | None = None
    match op["op"]:
        case "create":
            row = _created(entity, key, given, old)
        case "update":
            row = _updated(entity, name, key, given, old)
        case _:
            if old is None:
                raise EvaluationError(f"there is no {name} with this id")
            if given:
                raise EvaluationError("set must be empty when a row is deleted")
    before.setdefault((name, key), old)
    state.put(name, key, row)


def _created(
    entity: EntitySpec, key: str, given: Mapping[str, Any], old: EntityRow | None
) -> EntityRow:
    if old is not None:
        raise EvaluationError("there is one with this id already; update it, or use a new id")
    if entity.prefix is not None and not _numbered(key, entity.prefix):
        raise EvaluationError(f"the id of a new row must be {entity.prefix} and a number")
    if given.get(entity.key, key) != key:
        raise EvaluationError(f"{entity.key} must be the id")
    return RowCheck(entity).row({**given, entity.key: key})


def _numbered(key: str, prefix: str) -> bool:
    number = key.removeprefix(prefix)
    return key.startswith(prefix) and number.isascii() and number.isdecimal() and len(number) < 16


def _updated(
    entity: EntitySpec, name: str, key: str, given: Mapping[str, Any], old: EntityRow | None
) -> EntityRow:
    if old is None:
        raise EvaluationError(f"there is no {name} with this id")
    if not given:
        raise EvaluationError("set names no field to change")
    if given.get(entity.key, key) != key:
        raise EvaluationError(f"{entity.key} is the id and cannot change")
    return RowCheck(entity).row({**old, **given})


def _faults(
    domain: Domain, state: State, before: Mapping[tuple[str, str], EntityRow | None]
) -> Iterator[str]:
    """What no state of the domain may show, now that every row is put."""
    refs = Problems()
    for name, key in before:
        if (row := state.get(name, key)) is not None:
            check_refs(state, name, domain.entities[name], "patch", [row], refs)
    yield from (f"{problem}" for problem in refs.found)
    if words := domain.dangling(state):
        yield words
    for path, words in broken_in(state, domain.file, domain.invariants):
        yield f"{path.removeprefix('seed.')} {words}"
    for (name, key), old in before.items():
        yield from _moves(domain.entities[name], name, key, old, state.get(name, key))


def _moves(
    entity: EntitySpec, name: str, key: str, old: EntityRow | None, new: EntityRow | None
) -> Iterator[str]:
    """A status that moved as no move of its lifecycle does, or that a new row cannot start with."""
    if entity.lifecycle is None or new is None:
        return
    field = entity.lifecycle.field
    if old is None:
        first = entity.fields[field].values[0]
        if new[field] != first:
            yield f"a new {name} starts with {field} {first}, {key} has {show_value(new[field])}"
        return
    moves = {(start, move.to) for move in entity.lifecycle.moves for start in move.from_}
    if new[field] != old[field] and (old[field], new[field]) not in moves:
        allowed = ", ".join(sorted(to for start, to in moves if start == old[field])) or "nothing"
        yield (
            f"{name} {key}: {field} cannot go from {show_value(old[field])} to "
            f"{show_value(new[field])}; allowed: {allowed}"
        )


def next_id(state: State, name: str, entity: EntitySpec) -> str | None:
    """The id that a new row gets; None where whoever makes it names it."""
    if entity.prefix is None:
        return None
    return f"{entity.prefix}{max(1000, state.tables[name].last_number(entity.prefix)) + 1}"
