"""Fields that a lifecycle maintains, changed past it: read off what a successful call changed.

A lifecycle maintains the status of its rows, the stamps of its moves, and the fields of other rows
that the effects of its moves set. A call may change them by making a move, or several one after the
other, and in no other way. But a field that the file gives a `verb` is changed by hand too, such as
a stock that is recounted, a row's own move sets its own stamp, and an amount that moves add to or
take from is plain data: a tool may add to it or take from it as well. A move is made only of a row
that meets its `needs`, before the call or by what the call itself changes.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any, NamedTuple

from tool_specs.domains.domain import Domain
from tool_specs.domains.interpreter import CallResult, DomainEnvironment
from tool_specs.execution.invariants import compile_needs
from tool_specs.execution.programs import Entities, Program
from tool_specs.execution.state import EntityRow, RowChange, State
from tool_specs.language.domain_file import EntitySpec
from tool_specs.language.expressions import parse, walk
from tool_specs.language.lifecycles import Lifecycle, Move
from tool_specs.language.statements import Let, Update
from tool_specs.language.syntax.nodes import Access, Binary, Literal, Name, Node


class Maintained(NamedTuple):
    """A field of another row that moves of a lifecycle set by their effects."""

    owner: str
    """Entity whose lifecycle it is."""
    ref: str
    """Field of the owner's rows by which they point at the row."""
    moves: tuple[str, ...]
    values: frozenset[Any] | None
    """All that the effects set, where they set constants; None where they compute."""
    by_amounts: bool
    """Whether every effect adds to the field's old value, or takes from it."""


Steps = Mapping[tuple[str, str], Sequence[EntityRow]]
"""(entity, key) -> what a call made of the row, one after the other."""


class _StepState(State):
    """A state that notes what is made of each row."""

    __slots__ = ("made",)

    def __init__(self, state: State) -> None:
        super().__init__(state.tables, state.total, state.start, state.now)
        self.made: dict[tuple[str, str], list[EntityRow]] = {}

    def put(self, entity: str, key: str, row: EntityRow | None) -> None:
        if row is not None:
            self.made.setdefault((entity, key), []).append(row)
        super().put(entity, key, row)


def steps_of(environment: DomainEnvironment, tool: str, arguments: Any) -> Steps:
    """What the call makes of rows; the environment is as it was."""
    state = _StepState(environment.state.snapshot())
    DomainEnvironment(environment.domain, state).call(tool, arguments)
    return state.made


def counted_on(program: Program) -> frozenset[str]:
    """Fields of which every update of the tool computes the new value from the old one."""
    semantics = program.spec.semantics
    named = {s.bind: parse(s.be) for s in semantics if isinstance(s, Let)}
    counted: set[str] = set()
    others: set[str] = set()
    for statement in semantics:
        if not isinstance(statement, Update):
            continue
        for field, text in statement.set.items():
            old = Access(Name(statement.target), field)
            (counted if old in _inlined(parse(text), named) else others).add(field)
    return frozenset(counted - others)


def _inlined(tree: Node, named: Mapping[str, Node]) -> list[Node]:
    """The nodes of an expression and of the names in it, through names of names."""
    found = [tree]
    for node in found:  # grows while it is walked
        found += [child for child in walk(node) if child is not node and child not in found]
        if isinstance(node, Name) and node.name in named and named[node.name] not in found:
            found.append(named[node.name])
    return found


class LifecycleGuard:
    """Of one domain."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.maintained = _maintained(domain)
        self.needs = compile_needs(domain.file, Entities.of(domain.file))

    def bypassed(
        self, before: DomainEnvironment, after: State, tool: str, arguments: Any, result: CallResult
    ) -> list[str]:
        """Sentences, one for each field that the call changed past its lifecycle."""
        counted = counted_on(self.domain.programs[tool])
        found = list(self.told(result.diff, before.state, after, {}, counted))
        if not found:
            return []
        steps = steps_of(before, tool, arguments)  # seldom needed: several moves may be one change
        return list(self.told(result.diff, before.state, after, steps, counted))

    def told(
        self,
        diff: Sequence[RowChange],
        before: State,
        after: State,
        steps: Steps,
        counted: Set[str] = frozenset(),
    ) -> Iterator[str]:
        """`counted`: fields that the call computes from what they were (`counted_on`)."""
        for change in diff:
            spec = self.domain.entities[change["entity"]]
            moved = self._moved_by_others(change, diff, before, after, counted)
            if spec.lifecycle is not None and spec.lifecycle.field not in moved:
                own = steps.get((change["entity"], change["id"]), ())
                if not self._kept_in_status(change, spec.lifecycle, diff, before, after):
                    yield from _own(change, spec, spec.lifecycle, own)
                yield from self._unmet(change, spec.lifecycle, before, after, own)
            yield from (words for words in moved.values() if words)

    def _kept_in_status(
        self,
        change: RowChange,
        lifecycle: Lifecycle,
        diff: Sequence[RowChange],
        before: State,
        after: State,
    ) -> bool:
        """Whether the effect of another row's move sets the status to what the row has already:
        the stamp that goes with it is no move of the row's own."""
        if change["op"] != "update" or lifecycle.field in change["after"]:
            return False
        entity, key = change["entity"], change["id"]
        row = after.get(entity, key)
        return row is not None and any(
            (by.values is None or row[lifecycle.field] in by.values)
            and self._moves(other, by, key, before, after)
            for by in self.maintained.get((entity, lifecycle.field), ())
            for other in diff
        )

    def _unmet(
        self,
        change: RowChange,
        lifecycle: Lifecycle,
        before: State,
        after: State,
        steps: Sequence[EntityRow],
    ) -> Iterator[str]:
        """A move whose needs the row met neither before the call nor after it, nor as
        the call changed it in the state before."""
        entity, field = change["entity"], lifecycle.field
        if change["op"] != "update" or field not in change["after"]:
            return
        states = (before, after)
        # a call that gives a row what it lacks, and then moves it, is between both
        rows = [(mine.get(entity, change["id"]), state) for mine in states for state in states]
        way = [change["before"][field], *[row[field] for row in steps], change["after"][field]]
        for old, new in pairwise(way):
            moves = [m for m in lifecycle.moves if old in m.from_ and new == m.to]
            unmet = [self._first_unmet(entity, move, rows) for move in moves if old != new]
            if unmet and all(need is not None for need in unmet):
                yield (
                    f"makes the move {moves[0].name} of {entity} where its needs do not hold: "
                    f"{unmet[0]}; require that as the lifecycle does"
                )

    def _first_unmet(
        self, entity: str, move: Move, rows: Sequence[tuple[EntityRow | None, State]]
    ) -> str | None:
        """Text of the first need that holds in none of these states."""
        for need in self.needs[entity, move.name]:
            if not any(row is not None and need.holds(row, state) for row, state in rows):
                return need.that
        return None

    def _moved_by_others(
        self,
        change: RowChange,
        diff: Sequence[RowChange],
        before: State,
        after: State,
        counted: Set[str],
    ) -> dict[str, str]:
        """Fields that effects of other rows' moves maintain: why the change is none of theirs,
        empty where it is."""
        entity, key = change["entity"], change["id"]
        found: dict[str, str] = {}
        for field, value in change["after"].items() if change["op"] == "update" else ():
            owners = self.maintained.get((entity, field), ())
            concerned = [m for m in owners if m.values is None or value in m.values]
            if field in counted and all(m.by_amounts for m in owners):
                continue
            made = any(self._moves(d, m, key, before, after) for d in diff for m in concerned)
            if made:
                found[field] = ""
            elif concerned and not self._is_the_rows_own(field, change):
                found[field] = _past(entity, field, concerned)
        return found

    def _is_the_rows_own(self, field: str, change: RowChange) -> bool:
        """Whether the field is the row's status, one with a verb, or the stamp of its move."""
        spec = self.domain.entities[change["entity"]]
        if field == spec.lifecycle_field or spec.fields[field].verb is not None:
            return True
        lifecycle, before, after = spec.lifecycle, change["before"], change["after"]
        if lifecycle is None or lifecycle.field not in after:  # which hold what is changed alone
            return False
        return any(
            move.stamp == field
            and before[lifecycle.field] in move.from_
            and after[lifecycle.field] == move.to
            for move in lifecycle.moves
        )

    def _moves(
        self, change: RowChange, by: Maintained, key: str, before: State, after: State
    ) -> bool:
        """Whether the change begins, ends or moves a row of the owner that points at the row."""
        if change["entity"] != by.owner:
            return False
        status = self.domain.entities[by.owner].lifecycle_field
        if change["op"] == "update" and status not in change["after"]:
            return by.ref in change["after"] and key in (
                change["before"][by.ref],
                change["after"][by.ref],
            )
        rows = [state.get(by.owner, change["id"]) for state in (before, after)]
        return any(row is not None and row[by.ref] == key for row in rows)


def _past(entity: str, field: str, owners: Sequence[Maintained]) -> str:
    names = ", ".join(dict.fromkeys(move for m in owners for move in m.moves))
    return (
        f"sets {entity}.{field} past the lifecycle of {owners[0].owner}, whose moves ({names}) "
        f"maintain it; make one of these moves in the same call, or leave the field alone"
    )


def _own(
    change: RowChange, spec: EntitySpec, lifecycle: Lifecycle, steps: Sequence[EntityRow]
) -> Iterator[str]:
    """The status and stamps of a row that has a lifecycle."""
    entity, field = change["entity"], lifecycle.field
    first = spec.fields[field].values[0]
    statuses = [row[field] for row in steps]
    if change["op"] == "create":
        status = change["after"][field]
        if status != first and not (statuses[:1] == [first] and _are_moves(statuses, lifecycle)):
            yield (
                f"creates a row of {entity} with {field} {status!r}; the lifecycle of {entity} "
                f"begins with {first!r}, and later ones are reached by its moves"
            )
        return
    if change["op"] != "update":
        return
    before, after = change["before"], change["after"]
    if field in after:
        way = [before[field], *(statuses or [after[field]])]
        if not _are_moves(way, lifecycle):
            yield _no_move(entity, field, before[field], after[field], lifecycle.moves)
        return
    stamps = {m.stamp: m.name for m in lifecycle.moves if m.stamp is not None}
    given = {taken for move in lifecycle.moves for taken in move.takes}
    for stamp in stamps.keys() & after.keys() - given:
        yield (
            f"sets {entity}.{stamp} past the lifecycle of {entity}: it is the stamp of the move "
            f"{stamps[stamp]}; set it together with that move, or leave it alone"
        )


def _are_moves(way: Sequence[Any], lifecycle: Lifecycle) -> bool:
    """Whether each status is the one before it, or reached from it by a move."""
    return all(
        old == new or any(old in m.from_ and new == m.to for m in lifecycle.moves)
        for old, new in pairwise(way)
    )


def _no_move(entity: str, field: str, old: str, new: str, moves: Sequence[Move]) -> str:
    ways = [f"{m.name} (from {' or '.join(m.from_)})" for m in moves if m.to == new]
    there = f"{new!r} is reached by {', '.join(ways)}" if ways else f"no move leads to {new!r}"
    return (
        f"takes {entity}.{field} from {old!r} to {new!r}, which is no move of the lifecycle of "
        f"{entity}: {there}; require the right status first"
    )


def _maintained(domain: Domain) -> dict[tuple[str, str], tuple[Maintained, ...]]:
    """(entity, field) -> whose effects set it."""
    found: dict[tuple[str, str], dict[tuple[str, str], list[tuple[str, str]]]] = {}
    for owner, spec in domain.entities.items():
        for move in spec.lifecycle.moves if spec.lifecycle is not None else ():
            for effect in move.effects:
                target = spec.fields[effect.ref].to
                assert target is not None, "a loaded domain's effects go by references"
                for field, text in effect.set.items():
                    by = found.setdefault((target, field), {}).setdefault((owner, effect.ref), [])
                    by.append((move.name, text))
    return {
        place: tuple(
            _maintained_by(place, owner, ref, moves) for (owner, ref), moves in owners.items()
        )
        for place, owners in found.items()
    }


def _maintained_by(
    place: tuple[str, str], owner: str, ref: str, moves: Sequence[tuple[str, str]]
) -> Maintained:
    trees = [parse(text) for _, text in moves]
    old = Access(Name(place[0]), place[1])
    names = tuple(name for name, _ in moves)
    return Maintained(owner, ref, names, _constants(trees), all(_adds(t, old) for t in trees))


def _adds(tree: Node, old: Node) -> bool:
    """Whether the expression adds to the old value or takes from it, whatever bounds the result."""
    sums = [n for n in walk(tree) if isinstance(n, Binary) and n.operator in ("+", "-")]
    return any(n.left == old or (n.operator == "+" and n.right == old) for n in sums)


def _constants(trees: Sequence[Node]) -> frozenset[Any] | None:
    values = [tree.value for tree in trees if isinstance(tree, Literal)]
    return frozenset(values) if len(values) == len(trees) else None
