"""Seeds made for the purpose: states and arguments that come near what a tool's conditions ask.

A made case is a case that was seen with a few values changed, in rows that the call has to do with
or in its arguments (`near_values.py`), or with more rows like one of them. A made state is one that
the domain allows: every field keeps its check, every id points at a row, and every rule holds.
Bounded and seeded.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution.fields import Check, check_of, ids_in, refs_of
from tool_specs.execution.invariants import CompiledInvariant
from tool_specs.execution.programs import Program
from tool_specs.execution.state import EntityRow, State
from tool_specs.execution.statements import PAGE
from tool_specs.language.domain_file import FieldSpec, ParamSpec
from tool_specs.language.expressions import parse, walk
from tool_specs.language.syntax.nodes import Access, Call, Literal, Node
from tool_specs.language.values import EvaluationError
from tool_specs.validation.states.cases import FuzzCase
from tool_specs.validation.states.near_values import NearCall, NearValues, texts_in

_ROWS = 24
"""Rows of one call whose values may be changed."""
FIRST_ROWS = 8
"""Of an entity that the tool reads by a condition."""
_COPIES = 6
_BASES = 40
"""Cases that others are made of."""
_DIGITS = 0.1273
"""Shows what is rounded."""
_CHANGES = (1, 1, 1, 2, 2, 3)


class _Slot(NamedTuple):
    """What may be changed: a field of a row, an argument (no entity), or the number of rows like
    this one (no field)."""

    entity: str
    key: str
    field: str


class ValueChange(NamedTuple):
    """A value to be put in the place of another: a field of a row, or an argument (no entity); an
    argument that is null is left out."""

    entity: str
    key: str
    field: str
    """Of the row, or the argument's name."""
    value: Any


class _Ground(NamedTuple):
    """A case that others are made of, and what of it may be changed."""

    case: FuzzCase
    rows: list[tuple[str, EntityRow]]
    slots: list[_Slot]


class StateMaker:
    """Of one tool of a domain."""

    def __init__(
        self, domain: Domain, program: Program, rng: Random, rules: Sequence[Node] = ()
    ) -> None:
        """`rules`: expressions beside those of the tool whose constants are worth trying."""
        self.domain, self.program, self.rng = domain, program, rng
        self.checks: dict[tuple[str, str], Check] = {}
        nodes = [node for _, _, tree in program.nodes for node in walk(tree)]
        nodes += [node for tree in rules for node in walk(tree)]
        constants = [n.value for n in nodes if isinstance(n, Literal) and n.value is not None]
        functions = frozenset(node.function for node in nodes if isinstance(node, Call))
        self.values = NearValues(domain, constants, functions, rng)
        self.copies = [*range(1, _COPIES), *([PAGE + 1] if _asks_for_pages(constants) else [])]
        self.mentioned = frozenset(n.field for n in nodes if isinstance(n, Access))
        self.searched = _searched(program, nodes, domain)
        self.elsewhere = _rules_that_look_elsewhere(domain)

    def cases(
        self, bases: Sequence[FuzzCase], num_cases: int, about: Collection[str] = ()
    ) -> Iterator[FuzzCase]:
        """At most `num_cases`, with their results. `about`: names of fields and parameters that
        are changed; all that the tool mentions if empty.

        A case whose outcome is new becomes a base of later ones.
        """
        grounds = [self._ground(case, about) for case in bases]
        seen = {_outcome(case) for case in bases}
        for _ in range(num_cases if grounds else 0):
            case = self._changed(self._one_of(grounds))
            if case is None:
                continue
            if (outcome := _outcome(case)) not in seen and len(grounds) < _BASES:
                seen.add(outcome)
                grounds.append(self._ground(case, about))
            yield case

    def with_near_argument(
        self, environment: DomainEnvironment, arguments: dict[str, Any], name: str
    ) -> dict[str, Any]:
        """The arguments with another value for one; as they are where the tool refuses that."""
        state = environment.state
        call = NearCall(arguments, self._rows(state, arguments), state)
        changed = self._with_argument(name, call)
        return changed if self.program.validator.is_valid(changed) else arguments

    def present(self, base: FuzzCase, change: ValueChange) -> Any:
        """What stands where the change would be made; None where nothing does."""
        if not change.entity:
            return base.arguments.get(change.field)
        row = base.environment.state.get(change.entity, change.key)
        return None if row is None else row.get(change.field)

    def made(self, base: FuzzCase, changes: Sequence[ValueChange]) -> Iterator[FuzzCase]:
        """The case with these changes; none where they are not allowed."""
        environment, arguments = base.environment.snapshot(), base.arguments
        touched: dict[tuple[str, str], None] = {}
        for change in changes:
            if not change.entity:
                arguments = {n: v for n, v in arguments.items() if n != change.field}
                arguments |= {} if change.value is None else {change.field: change.value}
            elif self._store(environment.state, change):
                touched[change.entity, change.key] = None
            else:
                return
        if (case := self.called(environment, arguments, touched)) is not None:
            yield case

    def flips(self, bases: Sequence[FuzzCase], about: Collection[str]) -> Iterator[FuzzCase]:
        """Each base with one truth, one member of an enum or one null exchanged, in turn; a null
        for what another row has."""
        for base in bases:
            for slot in dict.fromkeys(self._ground(base, about).slots):
                if slot.entity and not slot.field:
                    continue
                name = slot.field or slot.key
                if slot.entity:
                    spec: FieldSpec | ParamSpec = self.domain.entities[slot.entity].fields[name]
                else:
                    spec = self.program.spec.params[name]
                change = ValueChange(slot.entity, slot.key, name, None)
                values = [True, False] if spec.type == "boolean" else list(spec.values)
                old = self.present(base, change)
                if type(old) in (int, float):
                    values = self._other_numbers(base, slot, spec, old)
                if spec.optional and slot.entity:
                    values += [None] if old is not None else self._others(base, slot)
                for value in values:
                    if value != old:
                        yield from self.made(base, [change._replace(value=value)])

    def _other_numbers(
        self, base: FuzzCase, slot: _Slot, spec: FieldSpec | ParamSpec, old: float
    ) -> list[Any]:
        """One with more digits than people write, and the largest that a row has."""
        rows = base.environment.rows(slot.entity) if slot.entity else []
        known = [row[slot.field] for row in rows if row[slot.field] is not None]
        digits = [round(old + _DIGITS, 4)] if spec.type == "number" else []
        return [*digits, max(known, default=old)]

    def _others(self, base: FuzzCase, slot: _Slot) -> list[Any]:
        """What other rows have in the field, a first and a last one."""
        rows = base.environment.rows(slot.entity)
        found = [row[slot.field] for row in rows if row[slot.field] is not None]
        if not found and (fallback := self._one_like(base, slot)) is not None:
            return [fallback]
        return [found[0], found[-1]] if found else []

    def _one_like(self, base: FuzzCase, slot: _Slot) -> Any:
        state = base.environment.state
        call = NearCall(base.arguments, self._rows(state, base.arguments), state)
        spec = self.domain.entities[slot.entity].fields[slot.field]
        return self.values.choice(spec, slot.field, call, null=False)

    def _one_of(self, grounds: Sequence[_Ground]) -> _Ground:
        good = [g for g in grounds if not g.case.result.is_error]
        return self.rng.choice(good if good and self.rng.random() < 0.6 else grounds)

    def _ground(self, case: FuzzCase, about: Collection[str]) -> _Ground:
        rows = self._rows(case.environment.state, case.arguments)
        fields = about or self.mentioned
        slots = [
            _Slot(entity, row[self.domain.entities[entity].key], field)
            for entity, row in rows
            for field in (*row, *([""] if entity in self.searched else []))
            if field in fields or not field
        ]
        cursors = self.program.hints.cursors
        names = [name for name in self.program.spec.params if name not in cursors]
        # arguments are few and rows are many: both get their share
        often = [_Slot("", name, "") for name in names if name in fields or not about]
        slots += often * max(1, len(slots) // (2 * len(often) + 1))
        return _Ground(case, rows, slots or [_Slot("", name, "") for name in names])

    def _rows(self, state: State, arguments: Any) -> list[tuple[str, EntityRow]]:
        """What the call has to do with: rows that it names, rows of what it searches, and those
        that these refer to."""
        names = set(texts_in(arguments))
        waiting = [
            (entity, name)
            for entity in self.domain.entities
            for name in sorted(names)
            if state.get(entity, name) is not None
        ]
        for entity in self.searched:
            key = self.domain.entities[entity].key
            waiting += [
                (entity, row[key]) for row in islice(state.tables[entity].rows(), FIRST_ROWS)
            ]
        found: dict[tuple[str, str], EntityRow] = {}
        for entity, key in waiting:  # grows while it is walked
            row = state.get(entity, key)
            if row is None or (entity, key) in found or len(found) >= _ROWS:
                continue
            found[entity, key] = row
            for field, target in refs_of(self.domain.entities[entity]).items():
                waiting += [(target, other) for other in ids_in(row[field])[:2]]
        return [(entity, row) for (entity, _), row in found.items()]

    def _changed(self, ground: _Ground) -> FuzzCase | None:
        """None where the change is not allowed, or the call breaks down on what the tool does not
        expect: that is no evidence."""
        if not ground.slots:
            return None
        environment, arguments = ground.case.environment.snapshot(), ground.case.arguments
        state = environment.state
        touched: dict[tuple[str, str], None] = {}
        for _ in range(self.rng.choice(_CHANGES)):
            slot = self.rng.choice(ground.slots)
            call = NearCall(arguments, ground.rows, state)
            if not slot.entity:
                arguments = self._with_argument(slot.key, call)
            elif self._put(slot, call):
                touched[slot.entity, slot.key] = None
            else:
                return None
        return self.called(environment, arguments, touched)

    def called(
        self,
        environment: DomainEnvironment,
        arguments: Any,
        touched: Collection[tuple[str, str]],
    ) -> FuzzCase | None:
        """The call in an environment whose rows were changed; None where it is not allowed."""
        state = environment.state
        if not self.program.validator.is_valid(arguments):
            return None
        if touched and not self._allowed(state, touched):
            return None
        state.commit()
        result = environment.snapshot().call(self.program.spec.name, arguments)
        known = result.error_code not in ("internal", "invalid_arguments")
        return FuzzCase(environment, arguments, result) if known else None

    def _put(self, slot: _Slot, call: NearCall) -> bool:
        row, spec = call.state.get(slot.entity, slot.key), self.domain.entities[slot.entity]
        if row is None:
            return False
        if not slot.field:
            return bool(self.copy(slot.entity, row, call.state, self.rng.choice(self.copies)))
        value = self.values.choice(spec.fields[slot.field], slot.field, call, null=True)
        return self._store(call.state, ValueChange(*slot, value))

    def _store(self, state: State, change: ValueChange) -> bool:
        """False for a value that the field does not take, or a row that is not there."""
        entity, key, field, value = change
        row, spec = state.get(entity, key), self.domain.entities[entity]
        if row is None or field == spec.key:
            return False
        check = self.checks.get((entity, field))
        if check is None:
            check = self.checks[entity, field] = check_of(spec.fields[field])
        try:
            state.put(entity, key, {**row, field: check(value)})
        except EvaluationError:
            return False
        return True

    def copy(self, entity: str, row: EntityRow, state: State, num_copies: int) -> list[str]:
        """Keys of more rows that are like this one: pages fill up, and sums and orders get ties."""
        spec = self.domain.entities[entity]
        prefix = spec.prefix if spec.prefix is not None else f"{row[spec.key]}-"
        number = max(state.tables[entity].last_number(prefix), 1000)
        made = [f"{prefix}{number + 1 + i}" for i in range(num_copies)]
        for key in made:
            state.put(entity, key, {**row, spec.key: key})
        return made

    def _allowed(self, state: State, touched: Collection[tuple[str, str]]) -> bool:
        """Whether refs point at rows and rules hold: for the changed rows, and for every row of a
        rule that looks at other rows."""
        for entity, key in touched:
            row = state.get(entity, key)
            if row is None:
                return False
            refs = refs_of(self.domain.entities[entity])
            if any(state.get(to, k) is None for f, to in refs.items() for k in ids_in(row[f])):
                return False
            if not _keeps(row, state, self.domain.invariants.get(entity, ())):
                return False
        return all(
            _keeps(row, state, rules)
            for entity, rules in self.elsewhere.items()
            for row in state.tables[entity].rows()
        )

    def _with_argument(self, name: str, call: NearCall) -> Any:
        spec, old = self.program.spec.params[name], call.arguments.get(name)
        value = self._argument(spec, name, old, call)
        left = {n: v for n, v in call.arguments.items() if n != name}
        return left if value is None else {**left, name: value}

    def _argument(self, spec: ParamSpec, name: str, old: Any, call: NearCall) -> Any:
        """None for one that is left out."""
        if spec.optional and self.rng.random() < 0.3:
            return None
        if spec.type == "array" and spec.items is not None:
            items = list(old or [])
            item = self._argument(spec.items, name, items[0] if items else None, call)
            if item is None:
                return items or None
            return self.rng.choice(([item], [*items, item], [item, *items[1:]]))
        if spec.type == "object":
            return self._members(spec, old, call)
        value = self.values.choice(spec, name, call, null=False)
        return old if value is None else value

    def _members(self, spec: ParamSpec, old: Any, call: NearCall) -> dict[str, Any]:
        members = dict(old or {})
        for name, own in (spec.properties or {}).items():
            if name not in members or self.rng.random() < 0.4:
                members[name] = self._argument(own, name, members.get(name), call)
        return {name: value for name, value in members.items() if value is not None}


def _keeps(row: EntityRow, state: State, rules: Sequence[CompiledInvariant]) -> bool:
    return all(rule.holds(row, state) for rule in rules)


def _asks_for_pages(constants: Sequence[Any]) -> bool:
    return any(type(value) is int and value >= PAGE for value in constants)


def _outcome(case: FuzzCase) -> tuple[Any, ...]:
    result = case.result
    if result.is_error:
        return (result.error_code, result.statement)
    return (json.dumps(result.observation, sort_keys=True)[:200], len(result.diff))


def _searched(program: Program, nodes: Sequence[Node], domain: Domain) -> tuple[str, ...]:
    """Entities whose rows the tool finds by a condition, or looks up."""
    found = {s.entity for s in program.spec.semantics if s.op == "read" and s.key is None}
    for node in nodes:
        if isinstance(node, Call) and node.function == "lookup":
            first = node.arguments[0]
            found |= {str(first.value)} if isinstance(first, Literal) else set()
    return tuple(sorted(found & domain.entities.keys()))


def _rules_that_look_elsewhere(domain: Domain) -> dict[str, tuple[CompiledInvariant, ...]]:
    """Rules whose truth for a row may change with another row."""
    found: dict[str, tuple[CompiledInvariant, ...]] = {}
    for entity, rules in domain.invariants.items():
        far = tuple(rule for rule in rules if _looks_elsewhere(parse(rule.spec.that)))
        if far:
            found[entity] = far
    return found


def _looks_elsewhere(tree: Node) -> bool:
    """A lookup, or a chain of fields by way of a reference."""
    return any(
        (isinstance(n, Call) and n.function == "lookup")
        or (isinstance(n, Access) and isinstance(n.base, Access))
        for n in walk(tree)
    )
