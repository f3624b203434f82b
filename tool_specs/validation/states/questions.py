"""What a mutant changes, as a question: the two sides that are compared at its place, over it, or
further down with the name that it changes, measured for the tool and for the mutant."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from tool_specs.domains.domain import Domain
from tool_specs.execution.programs import Program
from tool_specs.language.domain_file import ToolSpec
from tool_specs.language.expressions import COMPARISONS, parse, show, walk
from tool_specs.language.statements import AnyStatement, Let, Read
from tool_specs.language.syntax.nodes import Binary, Call, Each, Name, Node, Record
from tool_specs.validation.mutation.mutants import MutantPlace, expressions_of
from tool_specs.validation.mutation.trees import Site, TreePath, sites_of, steps_of, with_node
from tool_specs.validation.states.cases import FuzzCase
from tool_specs.validation.states.measuring import ValueProbe, difference, row_read
from tool_specs.validation.states.naming import CANDIDATE, with_candidate

_ORDERS = COMPARISONS[:6]
_SIDES = ("left", "right")


class Parting(NamedTuple):
    """One expression of the tool, the mutant's in its place, and where they part."""

    statement: int
    member: str
    old: Node
    new: Node
    path: TreePath


class ComparedSides(NamedTuple):
    """Two sides that are compared: how far they are from each other for the tool, and for the
    mutant."""

    probes: tuple[ValueProbe, ...]

    def gaps(self, case: FuzzCase) -> tuple[float | None, ...]:
        """Left minus right, for each element that is looked at; the tool's and then the
        mutant's."""
        found: list[float | None] = []
        for probe in self.probes:
            found += [difference(left, right) for left, right in _pairs_in(probe.run(case))]
        return tuple(found)


def exchange_of(spec: ToolSpec, place: MutantPlace) -> Parting | None:
    """None where the mutant is no other expression."""
    index = place.statement
    if not 0 <= index < len(spec.semantics):
        return None
    mine = dict(expressions_of(spec.semantics[index]))
    for mutant in place.mutants:
        if len(mutant.spec.semantics) != len(spec.semantics):
            continue
        for path, text in expressions_of(mutant.spec.semantics[index]):
            if path in mine and mine[path] != text:
                old, new = parse(mine[path]), parse(text)
                return Parting(index, path[0], old, new, _parting(old, new))
    return None


def _parting(old: Node, new: Node) -> TreePath:
    """Path to the smallest part in which the trees differ."""
    path: TreePath = ()
    while type(old) is type(new):
        others = dict(steps_of(new))
        steps = dict(steps_of(old))
        differing = [step for step in steps if steps[step] != others.get(step)]
        if steps.keys() != others.keys() or len(differing) != 1:
            break
        [step] = differing
        if with_node(old, (step,), others[step]) != new:
            break  # they differ in more than what hangs below
        path, old, new = (*path, step), steps[step], others[step]
    return path


def questions_of(
    program: Program, place: MutantPlace, found: Parting, row: str | None, domain: Domain
) -> Iterator[ComparedSides]:
    """`row`: key of the row that a filter looks at."""
    spec = program.spec
    statement = spec.semantics[found.statement]
    read: AnyStatement | None = None
    old, new = found.old, found.new
    if found.member == "where" and isinstance(statement, Read):
        if row is None:
            return
        read = row_read(statement.entity, row, CANDIDATE)
        old, new = (with_candidate(tree, statement.entity) for tree in (old, new))
    changed = replace(program, spec=place.mutants[0].spec)
    for site in _compared(old, found.path):
        in_new = [s for s in sites_of(new) if s.path == site.path and _is_comparison(s.node)]
        asked = [(program, site), *((program, other) for other in in_new)]
        if question := _question(asked, found.statement, read, domain):
            yield question
    if isinstance(statement, Let):
        yield from _asked_later(program, changed, found.statement, statement, domain)


def _asked_later(
    program: Program, changed: Program, index: int, let: Let, domain: Domain
) -> Iterator[ComparedSides]:
    """Comparisons further down that name what the `let` computes."""
    for later, statement in list(enumerate(program.spec.semantics))[index + 1 :]:
        for path, text in expressions_of(statement):
            if path[0] == "where" or let.bind not in text:
                continue
            for site in sites_of(parse(text)):
                if _is_comparison(site.node) and Name(let.bind) in walk(site.node):
                    asked = [(program, site), (changed, site)]
                    if question := _question(asked, later, None, domain):
                        yield question


def _question(
    asked: list[tuple[Program, Site]], index: int, row: AnyStatement | None, domain: Domain
) -> ComparedSides | None:
    probes = [
        ValueProbe.of(program, index, show(_sides(site)), row, domain) for program, site in asked
    ]
    good = tuple(probe for probe in probes if probe is not None)
    return ComparedSides(good) if good else None


def _compared(tree: Node, path: TreePath) -> Iterator[Site]:
    """The comparisons at the path and over it, the nearest first."""
    over = [s for s in sites_of(tree) if path[: len(s.path)] == s.path]
    yield from (site for site in reversed(over) if _is_comparison(site.node))


def _is_comparison(node: Node) -> bool:
    match node:
        case Binary(operator=operator):
            return operator in _ORDERS
        case Call(function="min" | "max", arguments=(_, _)):
            return True
    return False


def _sides(site: Site) -> Node:
    """Both sides in a record; in a loop, the list of them for all its elements."""
    match site.node:
        case Binary(left=left, right=right):
            sides = (left, right)
        case Call(arguments=items):
            sides = items
        case node:
            raise TypeError(f"{show(node)} compares nothing")
    tree: Node = Record(_SIDES, sides)
    for loop in site.above:
        if isinstance(loop, Each):
            tree = replace(loop, item=tree, condition=None)
    return tree


def _pairs_in(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield value["left"], value["right"]
    for item in value if isinstance(value, list) else ():
        yield from _pairs_in(item)
