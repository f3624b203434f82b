"""Cases in which one part of a condition decides: what stands beside it is made to hold where it is
joined by `and`, and to fail where it is joined by `or`; the part itself holds, and then does not.

Both sides of a comparison are measured by running the tool up to the statement. What is read of a
row or an argument on one side is then given the value that the other side asks for, on the edge:
`x <= y` is made to hold by x = y, and not to hold by the next x. Where no side is a plain value, a
value in it is moved until the sides meet. A filter is tried on a row more, made for it.
"""

from collections.abc import Iterator, Sequence

from tool_specs.execution.programs import Program
from tool_specs.language.statements import AnyStatement, Read
from tool_specs.language.syntax.nodes import Node
from tool_specs.validation.mutation.trees import Site, sites_of
from tool_specs.validation.states.cases import FuzzCase
from tool_specs.validation.states.grounds import DecidedCase
from tool_specs.validation.states.made_states import StateMaker
from tool_specs.validation.states.measuring import row_read
from tool_specs.validation.states.more_rows import with_row
from tool_specs.validation.states.naming import CANDIDATE, Around, with_candidate
from tool_specs.validation.states.near_values import texts_in

_BASES = 3
_CANDIDATES = 3
"""Rows of a filter's entity of which the row more is made."""
_ELEMENTS = 2
"""Of a list whose elements a condition looks at."""


def deciding(
    program: Program, index: int, maker: StateMaker, seen: Sequence[FuzzCase]
) -> Iterator[FuzzCase]:
    """For every comparison and every truth that the statement reads."""
    good = [case for case in seen if not case.result.is_error]
    good.sort(key=lambda case: -len(case.arguments))  # what is left out decides nothing
    late = [c for c in seen if c.result.is_error and (c.result.statement or 0) >= index]
    statement = program.spec.semantics[index]
    around = Around(program, index, maker.domain)
    for number, where, tree in program.nodes:
        if number != index or where == "message":
            continue
        if where == "where" and isinstance(statement, Read):
            tree = with_candidate(tree, statement.entity)
        tree = around.inlined(tree)
        sites = [site for site in sites_of(tree) if around.is_truth(site.node)]
        for base in [*good[:_BASES], *late[:_BASES]] if sites else ():
            if isinstance(statement, Read) and where == "where":
                for case, row in _with_row_more(statement.entity, base, maker):
                    yield case
                    yield from _decided(DecidedCase(around, maker, case, row), tree, sites)
            else:
                yield from _decided(DecidedCase(around, maker, base, None), tree, sites)


def _with_row_more(
    entity: str, base: FuzzCase, maker: StateMaker
) -> Iterator[tuple[FuzzCase, AnyStatement]]:
    """The case with a row more, and the read of that row."""
    spec, rows = maker.domain.entities[entity], base.environment.rows(entity)
    key = spec.key
    known = {row[key] for row in rows}
    # near rows first, and one of each status: little is changed in them that a rule may refuse
    named = set(texts_in(base.arguments))
    rows = sorted(rows, key=lambda row: -len(named.intersection(texts_in(row))))
    of_status = {row[spec.lifecycle_field]: row for row in rows} if spec.lifecycle_field else {}
    chosen = [*rows[:_CANDIDATES], *of_status.values()]
    for row in {row[key]: row for row in chosen}.values():
        for case in with_row(maker, base, entity, row):
            [own] = {r[key] for r in case.environment.rows(entity)} - known
            yield case, row_read(entity, own, CANDIDATE)


def _decided(ground: DecidedCase, tree: Node, sites: Sequence[Site]) -> Iterator[FuzzCase]:
    yield from ground.made(ground.changes(tree, (), True, 0))
    for site in sites:
        for element in range(_ELEMENTS if ground.around.loops(site) else 1):
            beside = ground.beside(site, element)
            yield from ground.made(beside)
            for truth in (True, False):
                for own in ground.alternatives(site.node, site.above, truth, element):
                    yield from ground.made([*beside, *own])
            yield from ground.met(site, beside, element)
