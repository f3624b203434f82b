"""Cases on the edge of a comparison: the values at which its two sides are equal, and next to it.

The two sides are measured by running the tool up to the statement, with a return of both sides in
its place. One value that they read, of a row or an argument, is moved by a step and measured again,
which gives the slope, and so the value at which the sides meet: exact where they are linear in it.
Days and times are measured as numbers, and the body of a loop in its first turn.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tool_specs.domains.domain import Domain, compile_tools
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution.programs import Entities, Problems, Program
from tool_specs.language.expressions import parse, show, walk
from tool_specs.language.statements import AnyStatement, ForEach, Let, Read, Return, When
from tool_specs.language.syntax.nodes import Access, Binary, Call, Literal, Name, Node
from tool_specs.language.syntax.tokens import COMPARISONS
from tool_specs.validation.fuzzing import FuzzCase
from tool_specs.validation.made_states import StateMaker, ValueChange
from tool_specs.validation.mutation.trees import sites_of
from tool_specs.validation.near_values import moment_of

_ARITHMETIC = frozenset("+-*/")
_MEASURED = 2
"""Successes, and as many failures at or after it, that are measured for one comparison."""
_ROWS = 8
"""Rows tried for the one that a filter looks at."""
_UNREAD = ("nothing in the semantics reads it", "leave this statement out")
"""What a compiler says of what only the cut part of a tool reads."""
_EPOCH = datetime(1970, 1, 1)


class _Leaf(NamedTuple):
    """A value that a side reads."""

    entity: str
    key: str | None
    """Expression for the key of the row; None for an argument."""
    field: str


class _Probe(NamedTuple):
    domain: Domain
    """Has one tool, which answers with both sides and the keys of the leaves' rows."""
    leaves: tuple[_Leaf, ...]


def edges_of(
    program: Program, index: int, maker: StateMaker, seen: Sequence[FuzzCase]
) -> Iterator[FuzzCase]:
    """For every comparison of the conditions of a statement, and of every value it computes."""
    good = [case for case in seen if not case.result.is_error]
    late = [c for c in seen if c.result.is_error and (c.result.statement or 0) >= index]
    bases = good[:_MEASURED] + late[:_MEASURED]
    for number, where, tree in program.nodes:
        if number != index or where == "message":
            continue
        for site in sites_of(tree):
            node = site.node
            if isinstance(node, Binary) and node.operator in COMPARISONS[:6]:
                yield from _edges(program, index, where, node, maker, bases)


def _edges(
    program: Program,
    index: int,
    where: str,
    node: Binary,
    maker: StateMaker,
    bases: Sequence[FuzzCase],
) -> Iterator[FuzzCase]:
    statement = program.spec.semantics[index]
    for base in bases:
        for first in _candidates(statement, where, base, maker.domain):
            probe = _probe(program, index, node, first, maker.domain)
            if probe is not None:
                yield from _meeting(probe, base, maker)


def _candidates(
    statement: AnyStatement, where: str, base: FuzzCase, domain: Domain
) -> Iterator[AnyStatement | None]:
    """Reads that stand in for a filter: each of one row, under the name of the candidate."""
    if not (isinstance(statement, Read) and where == "where"):
        yield None
        return
    key = domain.entities[statement.entity].key
    for row in base.environment.rows(statement.entity)[:_ROWS]:
        text = show(Literal(row[key]))
        yield Read.model_validate(
            {"op": "read", "entity": statement.entity, "key": text, "as": statement.entity}
        )


def _probe(
    program: Program, index: int, node: Binary, first: AnyStatement | None, domain: Domain
) -> _Probe | None:
    """None where the sides cannot be measured, as with a name that is taken."""
    spec = program.spec
    before = _flat(spec.semantics[:index]) + ([first] if first is not None else [])
    rows = {s.bind: s.entity for s in before if isinstance(s, Read) and s.key is not None}
    named = {s.bind: parse(s.be) for s in before if isinstance(s, Let)}
    leaves = tuple(dict.fromkeys(_leaves(node, rows, named, domain)))
    value: dict[str, Any] = {"l": show(node.left), "r": show(node.right)}
    value |= {f"k{i}": leaf.key for i, leaf in enumerate(leaves) if leaf.key is not None}
    answer = Return.model_validate({"op": "return", "value": value})
    changed = spec.model_copy(update={"semantics": [*before, answer]})
    problems = Problems()
    found = compile_tools([changed], Entities.of(domain.file), problems).get(spec.name)
    refused = [p for p in problems.found if not p.endswith(_UNREAD)]
    return None if found is None or refused else _Probe(domain.with_tools([found]), leaves)


def _flat(statements: Sequence[AnyStatement]) -> list[AnyStatement]:
    """The way through all bodies: without their conditions, and with the first turn of a loop."""
    names = {s.bind for s in statements if isinstance(s, When | ForEach)}
    flat: list[AnyStatement] = []
    for statement in statements:
        if isinstance(statement, ForEach):
            be = f"first({statement.over})"
            flat.append(Let.model_validate({"op": "let", "as": statement.bind, "be": be}))
        elif not isinstance(statement, When):
            inside = None if statement.inside in names else statement.inside
            flat.append(statement.model_copy(update={"inside": inside}))
    return flat


def _leaves(
    node: Node, rows: Mapping[str, str], named: Mapping[str, Node], domain: Domain
) -> Iterator[_Leaf]:
    """`named`: what each let computes, whose leaves are those of its name."""
    for part in walk(node):
        match part:
            case Name(name=name) if name in named:
                others = {n: tree for n, tree in named.items() if n != name}
                yield from _leaves(named[name], rows, others, domain)
            case Access(base=Name(name="args"), field=field):
                yield _Leaf("", None, field)
            case Access(base=Name(name=name), field=field) if name in rows:
                entity = rows[name]
                yield _Leaf(entity, f"{name}.{domain.entities[entity].key}", field)
            case Access(
                base=Call(function="lookup", arguments=(Literal(value=str(entity)), _)) as row,
                field=field,
            ):
                yield _Leaf(entity, f"{show(row)}.{domain.entities[entity].key}", field)


def _meeting(probe: _Probe, base: FuzzCase, maker: StateMaker) -> Iterator[FuzzCase]:
    answer = _measured(probe, base.environment, base.arguments)
    if answer is None:
        return
    for i, leaf in enumerate(probe.leaves):
        key = answer.get(f"k{i}")
        if leaf.key is not None and not isinstance(key, str):
            continue
        change = ValueChange(leaf.entity, key or "", leaf.field, None)
        old = maker.present(base, change)
        if isinstance(old, str) and moment_of(old) is None:
            yield from _copied(answer, change, base, maker)
        elif type(old) in (int, float, str):
            yield from _solved(probe, answer, change, old, base, maker)


def _copied(
    answer: dict[str, Any], change: ValueChange, base: FuzzCase, maker: StateMaker
) -> Iterator[FuzzCase]:
    """Texts and ids: each side's value in the leaf."""
    for value in (answer["l"], answer["r"]):
        if isinstance(value, str):
            yield from maker.made(base, [change._replace(value=value)])


def _solved(
    probe: _Probe,
    answer: dict[str, Any],
    change: ValueChange,
    old: Any,
    base: FuzzCase,
    maker: StateMaker,
) -> Iterator[FuzzCase]:
    gap = _gap(answer)
    step = 1440 if isinstance(old, str) and len(old) == 19 else 1
    moved = maker.made(base, [change._replace(value=_shifted(old, step))])
    for case in moved:
        other = _measured(probe, case.environment, case.arguments)
        new_gap = _gap(other) if other is not None else None
        if gap is None or new_gap is None or new_gap == gap:
            return
        length = -gap * step / (new_gap - gap)
        near = (0, 1, -1) if step == 1 else (0, 1, -1, step, -step)
        for extra in near:
            yield from maker.made(base, [change._replace(value=_shifted(old, length + extra))])


def _measured(probe: _Probe, environment: DomainEnvironment, arguments: Any) -> Any:
    """What the probe answers; None where the call fails before."""
    [name] = probe.domain.programs
    result = DomainEnvironment(probe.domain, environment.state.snapshot()).call(name, arguments)
    return None if result.is_error else result.observation


def _gap(answer: dict[str, Any]) -> float | None:
    """Left side minus right side: a number, days between dates, minutes between date-times."""
    left, right = _as_number(answer["l"]), _as_number(answer["r"])
    return None if left is None or right is None else left - right


def _as_number(value: Any) -> float | None:
    if type(value) in (int, float):
        return value
    moment = moment_of(value) if isinstance(value, str) else None
    if moment is None:
        return None
    minutes = (moment - _EPOCH).total_seconds() / 60
    return minutes / 1440 if len(value) == 10 else minutes


def _shifted(old: Any, by: float) -> Any:
    """A number plus `by`, a date so many days later, a date-time so many minutes later."""
    if not isinstance(old, str):
        value = round(old + by, 6)
        return int(value) if value == int(value) else value
    moment = moment_of(old)
    assert moment is not None, "only moments and numbers are shifted"
    try:
        if len(old) == 10:
            return (moment + timedelta(days=round(by))).date().isoformat()
        return (moment + timedelta(minutes=round(by))).isoformat()
    except OverflowError:
        return old
