"""Lifecycles and invariants of a domain file: typed, compiled, and shown on the seed.

`compile_invariants` and `check_lifecycles` are the static part, which every domain passes on
loading. `idle_parts` runs them over the seed: a move that no row can make, or a need that no row
ever fails, is business that no tool evolved from the domain could show.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tool_specs.execution.programs import Entities, Problems
from tool_specs.execution.state import EntityRow, State
from tool_specs.execution.statements import MAX_STEPS
from tool_specs.language.domain_file import DomainFile, EntitySpec
from tool_specs.language.evaluation import (
    FIRST_FREE,
    Env,
    Evaluator,
    Scope,
    compile_condition,
    compile_expression,
    compile_template,
)
from tool_specs.language.expressions import parse, parse_template
from tool_specs.language.lifecycles import Effect, Invariant, Move
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.language.types import mismatch
from tool_specs.language.values import EvaluationError


@dataclass(frozen=True, slots=True)
class CompiledInvariant:
    spec: Invariant
    run: Evaluator

    def holds(self, row: EntityRow, state: State) -> bool:
        """False also where the expression cannot be evaluated on the row."""
        return _true(self.run, [{}, state, MAX_STEPS, row])


@dataclass(frozen=True, slots=True)
class CompiledNeed:
    """A precondition of a move beyond the status of its row."""

    that: str
    run: Evaluator

    def holds(self, row: EntityRow, state: State) -> bool:
        """False also where the expression cannot be evaluated on the row."""
        return _true(self.run, [{}, state, MAX_STEPS, row])


Invariants = Mapping[str, tuple[CompiledInvariant, ...]]
"""By entity."""


def compile_invariants(file: DomainFile, entities: Entities, problems: Problems) -> Invariants:
    found: dict[str, tuple[CompiledInvariant, ...]] = {}
    for rule in file.rules:
        path = f"rules[{rule.id}]"
        if rule.entity not in file.entities:
            known = ", ".join(file.entities)
            problems.add(f"{path}.entity", f"unknown entity {rule.entity!r}; known: {known}")
            continue
        run = _condition(rule.that, _scope(entities, rule.entity), f"{path}.that", problems)
        found[rule.entity] = (*found.get(rule.entity, ()), CompiledInvariant(rule, run))
    return found


def compile_needs(
    file: DomainFile, entities: Entities
) -> dict[tuple[str, str], tuple[CompiledNeed, ...]]:
    """(entity, move) -> its needs, of a file that `check_lifecycles` finds no problem in."""
    return {
        (name, move.name): tuple(
            CompiledNeed(
                need.that, _condition(need.that, _scope(entities, name), move.name, Problems())
            )
            for need in move.needs
        )
        for name, entity in file.entities.items()
        for move in (entity.lifecycle.moves if entity.lifecycle is not None else ())
    }


def broken_in(state: State, file: DomainFile, invariants: Invariants) -> Iterator[tuple[str, str]]:
    """(path, words) of every row of the state for which an invariant does not hold."""
    for entity, rules in invariants.items():
        key = file.entities[entity].key
        for row in state.tables[entity].rows():
            for rule in rules:
                if not rule.holds(row, state):
                    yield (
                        f"seed.{entity}[{row[key]}]",
                        f"breaks rule {rule.spec.id}: {rule.spec.that}",
                    )


def check_lifecycles(file: DomainFile, entities: Entities, problems: Problems) -> None:
    """Names, fields and types of every move; what a seed would show is `idle_parts`."""
    for name, entity in file.entities.items():
        if entity.lifecycle is None:
            continue
        path = f"entities.{name}.lifecycle"
        field = entity.fields.get(entity.lifecycle.field)
        if field is None or field.type != "enum":
            problems.add(f"{path}.field", f"{entity.lifecycle.field!r} is not an enum of {name}")
            continue
        for move in entity.lifecycle.moves:
            place = f"{path}.moves[{move.name}]"
            for status in (*move.from_, move.to):
                if status not in field.values:
                    allowed = ", ".join(field.values)
                    problems.add(place, f"{status!r} is not a {name} status; allowed: {allowed}")
            _check_move(move, name, entity, entities, place, problems)


def _check_move(
    move: Move, name: str, entity: EntitySpec, entities: Entities, path: str, problems: Problems
) -> None:
    stamp = entity.fields.get(move.stamp) if move.stamp is not None else None
    if move.stamp is not None and (stamp is None or stamp.type not in ("date", "datetime")):
        problems.add(f"{path}.stamp", f"{move.stamp!r} is not a date or datetime of {name}")
    for taken in move.takes:
        if taken not in entity.fields or taken in (entity.key, entity.lifecycle_field):
            problems.add(f"{path}.takes", f"{taken!r} is not a field that a caller may give")
    scope = _scope(entities, name)
    for need in move.needs:
        place = f"{path}.needs[{need.error}]"
        _condition(need.that, scope, f"{place}.that", problems)
        _template(need.message, scope, f"{place}.message", problems)
    for effect in move.effects:
        _check_effect(effect, name, entity, entities, f"{path}.effects[{effect.ref}]", problems)


def _check_effect(
    effect: Effect, name: str, entity: EntitySpec, entities: Entities, path: str, problems: Problems
) -> None:
    ref = entity.fields.get(effect.ref)
    if ref is None or ref.type != "ref" or ref.to not in entities.file.entities:
        problems.add(f"{path}.ref", f"{effect.ref!r} is not a ref field of {name}")
        return
    other = entities.file.entities[ref.to]
    for field, text in effect.set.items():
        place = f"{path}.set.{field}"
        if field not in other.fields or field == other.key:
            problems.add(place, f"{ref.to} has no such field to set")
            continue
        try:
            typed = compile_expression(parse(text), _scope(entities, name, ref.to))
        except ExpressionError as error:
            problems.add(place, f"{text!r}: {error}")
            continue
        if reason := mismatch(typed.type, other.fields[field].as_type()):
            problems.add(place, f"{text!r}: {reason}")


def idle_parts(file: DomainFile, entities: Entities, state: State) -> list[str]:
    """Moves that no seed row can make, and needs that no row fails or that no row meets."""
    found: list[str] = []
    lifecycles = [(n, e.lifecycle) for n, e in file.entities.items() if e.lifecycle is not None]
    for name, lifecycle in lifecycles:
        for move in lifecycle.moves:
            path = f"entities.{name}.lifecycle.moves[{move.name}]"
            field = lifecycle.field
            rows = [r for r in state.tables[name].rows() if r[field] in move.from_]
            if not rows:
                found.append(f"{path}: no row of the seed has status {' or '.join(move.from_)}")
                continue
            able = rows
            for need in move.needs:
                run = _condition(need.that, _scope(entities, name), path, Problems())
                meets = [r for r in rows if _true(run, [{}, state, MAX_STEPS, r])]
                if len(meets) == len(rows):
                    found.append(f"{path}.needs[{need.error}]: no row in {move.from_} fails it")
                able = [r for r in able if r in meets]
            if not able:
                found.append(f"{path}: no row in {', '.join(move.from_)} meets its needs")
    return found


def _scope(entities: Entities, *names: str) -> Scope:
    """The rows of these entities under their names, in slots of their own; no arguments."""
    slots = {name: (FIRST_FREE + i, entities.types[name]) for i, name in enumerate(names)}
    return Scope(slots, entities.types)


def _condition(text: str, scope: Scope, path: str, problems: Problems) -> Evaluator:
    try:
        return compile_condition(parse(text), scope)
    except ExpressionError as error:
        problems.add(path, f"{text!r}: {error}")
        return lambda env: False


def _template(text: str, scope: Scope, path: str, problems: Problems) -> None:
    try:
        compile_template(parse_template(text), scope)
    except ExpressionError as error:
        problems.add(path, f"{text!r}: {error}")


def _true(run: Evaluator, env: Env) -> bool:
    try:
        value: Any = run(env)
    except EvaluationError:
        return False
    return bool(value)
