"""The other truth of a condition or of a first choice: a state in which the same words ask for the
other branch.

Whoever does not look cannot tell the task from its twin, so the branch is found out and not
guessed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from synth.tasks.forms.trying import TriedCall
from synth.tasks.goals.building import Builder
from synth.tasks.goals.goals import Step
from synth.tasks.goals.knowledge import singles_out
from tool_specs.domains.interpreter import DomainEnvironment, policy_violations
from tool_specs.execution.fields import RowCheck
from tool_specs.execution.invariants import broken_in
from tool_specs.language.values import EvaluationError

MAX_PATCHES = 12
"""Rows that are tried with another figure."""

OTHER_DRAWS = 12
"""Draws of other rows of the same kind."""


def twin_by_patch(
    builder: Builder, read: Step, field: str, limit: int, call: Step, *, holds: bool
) -> dict[str, Any] | None:
    """`{"patch": {entity: {key: row}}, "figure": number}`: with these rows in the initial state
    the read shows a figure on the other side of the limit, no invariant is broken, the plan so far
    works and, where the figure is now above, so does the call. None where none was found."""
    shown = builder.environment.look(read.tool, read.arguments).observation[field]
    for number, (entity, key, row) in enumerate(_patches(builder, shown, limit, holds=holds)):
        if number == MAX_PATCHES:
            return None
        state = _with_row(builder, entity, key, row)
        if state is not None and all(_works(state, step) for step in builder.plan):
            figure = figure_of(state, read, field)
            if _is_twin(state, figure, limit, call, holds=holds):
                return {"patch": {entity: {key: row}}, "figure": figure}
    return None


def twin_by_row(
    builder: Builder,
    read: Step,
    field: str,
    limit: int,
    call: Step,
    shared: Mapping[str, tuple[str, ...]],
    *,
    holds: bool,
) -> dict[str, Any] | None:
    """`{"arguments": of the read, "figure": number}`: the same wish about another row of the same
    kind hangs on a figure on the other side. `shared`: parameter of the read -> parameters of the
    call that name the same row."""
    tool = builder.tools[read.tool]
    for _ in range(OTHER_DRAWS if shared else 0):
        drawn = builder.drawn(tool)
        others = read.arguments | {name: drawn[name] for name in shared if name in drawn}
        if others == read.arguments or policy_violations(builder.environment, read.tool, others):
            continue
        changed = {name: others[own] for own, names in shared.items() for name in names}
        other_call = Step(tool=call.tool, arguments=call.arguments | changed)
        figure = figure_of(builder.environment, Step(tool=read.tool, arguments=others), field)
        if _is_twin(builder.environment, figure, limit, other_call, holds=holds):
            return {"arguments": others, "figure": figure}
    return None


def twin_that_grants(
    builder: Builder, refused: Step, taken: TriedCall, param: str, entity: str
) -> dict[str, Any] | None:
    """For a call that is refused, in place of which `taken` is made, about another row of
    `entity`: `{"patch": {entity: {key: row}}}`, a row in place of the refused one in the initial
    state, told by the same words, with which the plan so far works and the refused call, too; or
    `{"arguments": of the call}`, with another first choice that is not refused. What the call then
    does is something else than what `taken` does. None where neither was found."""
    kind, row_key = builder.domain.entities[entity], refused.arguments[param]
    own = builder.start.get(entity, row_key)
    other = builder.start.get(entity, taken.step.arguments[param])
    if own is not None and other is not None:
        told = {kind.key, *kind.natural}
        differing = [f for f in kind.fields if f not in told and own[f] != other[f]]
        for fields in [*([f] for f in differing), differing][: MAX_PATCHES + 1]:
            row = {**own, **{field: other[field] for field in fields}}
            state = _with_row(builder, entity, row_key, row)
            if state is None or not all(_works(state, step) for step in builder.plan):
                continue
            if _grants_otherwise(state, refused, taken.step):
                return {"patch": {entity: {row_key: row}}}
    for _ in range(OTHER_DRAWS):
        drawn = builder.drawn(builder.tools[refused.tool]).get(param)
        first = Step(tool=refused.tool, arguments=refused.arguments | {param: drawn})
        named = drawn is not None and singles_out(
            builder.environment, builder.domain, entity, drawn
        )
        if named and _grants_otherwise(builder.environment, first, taken.step):
            return {"arguments": first.arguments}
    return None


def _grants_otherwise(state: DomainEnvironment, first: Step, second: Step) -> bool:
    """Whether both calls work in the state and come to different ends."""
    one, other = state.snapshot(), state.snapshot()
    works = _works(one, first) and _works(other, second)
    return works and one.state_hash != other.state_hash != state.state_hash


def figure_of(state: DomainEnvironment, read: Step, field: str) -> Any:
    """What the read shows under the field; None where it shows nothing."""
    shown = state.look(read.tool, read.arguments).observation
    return shown.get(field) if isinstance(shown, dict) else None


def _is_twin(state: DomainEnvironment, figure: Any, limit: int, call: Step, *, holds: bool) -> bool:
    is_number = isinstance(figure, int | float) and not isinstance(figure, bool)
    return is_number and (figure > limit) != holds and (holds or _works(state.snapshot(), call))


def _works(state: DomainEnvironment, step: Step) -> bool:
    if policy_violations(state, step.tool, step.arguments):
        return False
    return not state.call(step.tool, step.arguments).is_error


def _patches(
    builder: Builder, shown: Any, limit: int, *, holds: bool
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Rows that hold the figure as it is shown, with one on the other side in its place."""
    touched = {(change["entity"], change["id"]) for change in builder.diffs}
    distance = max(1, abs(int(shown) - limit))
    for entity, spec in builder.domain.entities.items():
        for row in builder.start.rows(entity):
            for name in spec.fields:
                value = row.get(name)
                if value != shown or isinstance(value, bool) or (entity, row[spec.key]) in touched:
                    continue
                for other in (limit, limit - 1) if holds else (limit + distance, limit + 1):
                    new = float(other) if isinstance(value, float) else other
                    yield entity, row[spec.key], {**row, name: new}


def _with_row(
    builder: Builder, entity: str, key: str, row: dict[str, Any]
) -> DomainEnvironment | None:
    """The first state with the row in place of its own; None where that breaks an invariant."""
    domain = builder.domain
    environment = builder.start.snapshot()
    try:
        environment.state.put(entity, key, RowCheck(domain.entities[entity]).row(row))
        environment.state.commit()
        broken = any(broken_in(environment.state, domain.file, domain.invariants))
    except EvaluationError:
        return None
    return None if broken or any(domain.overdue(environment.state)) else environment
