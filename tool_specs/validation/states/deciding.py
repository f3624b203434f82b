"""Cases in which one part of a condition decides: what stands beside it is made to hold where it is
joined by `and`, and to fail where it is joined by `or`; the part itself holds, and then does not.

Both sides of a comparison are measured by running the tool up to the statement. What is read of a
row or an argument on one side is then given the value that the other side asks for, on the edge:
`x <= y` is made to hold by x = y, and not to hold by the next x. Where no side is a plain value, a
value in it is moved until the sides meet. A filter is tried on a row more, made for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tool_specs.domains.domain import Domain
from tool_specs.execution.programs import Program
from tool_specs.language.domain_file import FieldSpec, ParamSpec, ToolSpec
from tool_specs.language.expressions import (
    COMPARISONS,
    Access,
    Binary,
    Call,
    Each,
    Literal,
    Name,
    Node,
    Unary,
    parse,
    show,
    walk,
)
from tool_specs.language.statements import AnyStatement, Create, Let, Read
from tool_specs.validation.mutation.trees import Site, sites_of, with_node
from tool_specs.validation.states.cases import FuzzCase
from tool_specs.validation.states.made_states import StateMaker, ValueChange
from tool_specs.validation.states.measuring import ValueProbe, difference, flat, row_read, shifted
from tool_specs.validation.states.near_values import moment_of, texts_in

_BASES = 3
_CANDIDATES = 3
"""Rows of a filter's entity of which the row more is made."""
_CANDIDATE = "candidate_row"
_SETTLED_WRITINGS = frozenset({"lower", "upper", "title", "trim"})
"""Functions that leave what they made as it is: the text that the other side asks for is one."""
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
    around = _Around(program, index, maker.domain)
    for number, where, tree in program.nodes:
        if number != index or where == "message":
            continue
        if where == "where" and isinstance(statement, Read):
            tree = _renamed(tree, statement.entity)
        tree = around.inlined(tree)
        sites = [site for site in sites_of(tree) if around.is_truth(site.node)]
        for base in [*good[:_BASES], *late[:_BASES]] if sites else ():
            if isinstance(statement, Read) and where == "where":
                for case, row in _with_row_more(statement.entity, base, maker):
                    yield case
                    yield from _decided(_Ground(around, maker, case, row), tree, sites)
            else:
                yield from _decided(_Ground(around, maker, base, None), tree, sites)


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
        for case in maker.with_row(base, entity, row):
            [own] = {r[key] for r in case.environment.rows(entity)} - known
            yield case, row_read(entity, own, _CANDIDATE)


def _renamed(tree: Node, entity: str) -> Node:
    """A filter whose candidate has a name of its own: the entity's may be that of another row."""
    for site in sites_of(tree):
        if site.node == Name(entity):
            tree = with_node(tree, site.path, Name(_CANDIDATE))
    return tree


def _decided(ground: "_Ground", tree: Node, sites: Sequence[Site]) -> Iterator[FuzzCase]:
    yield from ground.made(ground.changes(tree, (), True, 0))
    for site in sites:
        for element in range(_ELEMENTS if ground.around.loops(site) else 1):
            beside = ground.beside(site, element)
            yield from ground.made(beside)
            for truth in (True, False):
                for own in ground.alternatives(site.node, site.above, truth, element):
                    yield from ground.made([*beside, *own])
            yield from ground.met(site, beside, element)


class _Leaf(NamedTuple):
    """A value that may be changed: a field of a row, or an argument (no entity)."""

    entity: str
    key: Node | None
    """Expression for the key of the row."""
    field: str
    spec: FieldSpec | ParamSpec


class _Around:
    """What an expression of one statement may name."""

    def __init__(self, program: Program, index: int, domain: Domain) -> None:
        self.program, self.index, self.domain = program, index, domain
        self.rows, self.named = _bound(program.spec, index)
        self.probes: dict[tuple[str, str], ValueProbe | None] = {}

    def inlined(self, tree: Node) -> Node:
        """What a `let` computed in the place of its name."""
        for site in sites_of(tree):
            match site.node:
                case Name(name=name) if name in self.named:
                    return self.inlined(with_node(tree, site.path, self.named[name]))
        return tree

    def entity(self, node: Node) -> str | None:
        """Of the row, or the rows, that the expression stands for."""
        match node:
            case Name(name=name):
                return self.rows.get(name)
            case Call(function="lookup", arguments=(Literal(value=str(name)), *_)):
                return name
            case Call(function="first", arguments=(rows,)):
                return self.entity(rows)
            case Access(base=Name(name="args"), field=field):
                params = self.program.spec.params
                found = params.get(field) or params.get(f"{field}_id")
                return found.ref if found is not None else None
            case Access(base=base, field=field) if owner := self.entity(base):
                fields = self.domain.entities[owner].fields
                step = fields.get(field) or fields.get(f"{field}_id")
                return step.to if step is not None else None
        return None

    def leaf(self, node: Node, above: Sequence[Node]) -> _Leaf | None:
        """Of the expression, where it reads one value as it stands."""
        match node:
            case Call(function=function, arguments=(inner,)) if function in _SETTLED_WRITINGS:
                return self.leaf(inner, above)
            case Access(base=Name(name="args"), field=field) if field in self.program.spec.params:
                return _Leaf("", None, field, self.program.spec.params[field])
            case Access(base=base, field=field):
                owner = self.entity(base) or self._of_element(base, above)
                spec = self.domain.entities.get(owner) if owner is not None else None
                if owner is not None and spec is not None and field in spec.fields:
                    return _Leaf(owner, Access(base, spec.key), field, spec.fields[field])
        return None

    def _of_element(self, base: Node, above: Sequence[Node]) -> str | None:
        """Entity of a row that begins at the name of a list's element."""
        loops = {e.name: self.entity(e.source) for e in above if isinstance(e, Each)}
        known = {name: entity for name, entity in loops.items() if entity is not None}
        if not known:
            return None
        self.rows, kept = {**self.rows, **known}, self.rows
        try:
            return self.entity(base)
        finally:
            self.rows = kept

    def is_truth(self, node: Node) -> bool:
        if isinstance(node, Binary):
            return node.operator in COMPARISONS
        return isinstance(node, Access)  # a boolean, as its leaf tells

    def loops(self, site: Site) -> bool:
        return any(isinstance(node, Each) for node in site.above)


class _Ground:
    """A case whose values are changed; for a filter, with the read of the row that it looks at."""

    def __init__(
        self, around: _Around, maker: StateMaker, case: FuzzCase, row: AnyStatement | None
    ) -> None:
        self.around, self.maker, self.case, self.row = around, maker, case, row
        if isinstance(row, Read):
            around.rows = {**around.rows, _CANDIDATE: row.entity}
        self.values: dict[tuple[str, int], Any] = {}

    def made(self, changes: Sequence[ValueChange]) -> Iterator[FuzzCase]:
        """The last change of a value counts."""
        own = {(c.entity, c.key, c.field): c for c in changes}
        if own:
            yield from self.maker.made(self.case, list(own.values()))

    def beside(self, site: Site, element: int) -> list[ValueChange]:
        """Changes by which what stands around the site leaves the decision to it."""
        found: list[ValueChange] = []
        node = site.node
        for place, above in enumerate(site.above):
            further = site.above[place + 1 :]
            match above:
                case Binary(operator="and" | "or" as joined, left=left, right=right):
                    other = right if left is node else left
                    found += self.changes(other, (above, *further), joined == "and", element)
                case Call(function="if", arguments=(condition, then, _)) if condition is not node:
                    found += self.changes(condition, (above, *further), then is node, element)
                case Each(item=item, condition=Node() as condition) if item is node:
                    found += self.changes(condition, (above, *further), True, element)
            node = above
        return found

    def changes(
        self, node: Node, above: Sequence[Node], truth: bool, element: int
    ) -> list[ValueChange]:
        """Changes by which the expression has this truth, as far as they are found; none where it
        has it already."""
        if self.measured(node, above, element) is truth:
            return []
        match node:
            case Binary(operator="and" | "or" as joined, left=left, right=right):
                inner = (node, *above)
                # of alternatives the second: a test for null stands first
                both = (left, right) if (joined == "and") == truth else (right,)
                return [c for part in both for c in self.changes(part, inner, truth, element)]
            case Unary(operator="not", operand=operand):
                return self.changes(operand, (node, *above), not truth, element)
        return next(self.alternatives(node, above, truth, element), [])

    def alternatives(
        self, node: Node, above: Sequence[Node], truth: bool, element: int
    ) -> Iterator[list[ValueChange]]:
        """Ways to give a comparison, or a boolean, this truth."""
        if not isinstance(node, Binary):
            leaf = self.around.leaf(node, above)
            if leaf is not None and leaf.spec.type == "boolean":
                yield from self.put(leaf, above, truth, element)
            return
        inner = (node, *above)
        for side, other, sign in (
            (node.left, node.right, node.operator),
            (node.right, node.left, _MIRRORED.get(node.operator, "")),
        ):
            leaf = self.around.leaf(side, inner)
            if leaf is not None and sign:
                wanted = self.measured(other, inner, element)
                for value in _values(leaf.spec, sign, wanted, truth):
                    yield from self.put(leaf, inner, value, element)

    def put(
        self, leaf: _Leaf, above: Sequence[Node], value: Any, element: int
    ) -> Iterator[list[ValueChange]]:
        key = "" if leaf.key is None else self.measured(leaf.key, above, element)
        if isinstance(key, str):
            yield [ValueChange(leaf.entity, key, leaf.field, value)]

    def measured(self, node: Node, above: Sequence[Node], element: int) -> Any:
        """Value of the expression just before the statement; null where it cannot be told."""
        if isinstance(node, Literal):
            return node.value
        depth = 0
        for loop in above:
            if isinstance(loop, Each):
                node = replace(loop, item=node, condition=None)
                depth += 1
        place = (show(node), element)
        if place not in self.values:
            self.values[place] = self._run(node, depth, element)
        return self.values[place]

    def _run(self, node: Node, depth: int, element: int) -> Any:
        probe = self.probe(node)
        value = probe.run(self.case) if probe is not None else None
        for _ in range(depth):
            if not isinstance(value, list) or not value:
                return None
            value = value[min(element, len(value) - 1)]
        return value

    def probe(self, node: Node) -> ValueProbe | None:
        around = self.around
        place = (show(node), show(parse(self.row.key)) if isinstance(self.row, Read) else "")
        if place not in around.probes:
            around.probes[place] = ValueProbe.of(
                around.program, around.index, show(node), self.row, around.domain
            )
        return around.probes[place]

    def met(self, site: Site, beside: list[ValueChange], element: int) -> Iterator[FuzzCase]:
        """Where no side is a value as it stands: a value in one is moved until both sides meet."""
        node = site.node
        if not isinstance(node, Binary) or node.operator not in COMPARISONS[:6]:
            return
        inner = (node, *site.above)
        if any(self.around.leaf(side, inner) for side in (node.left, node.right)):
            return
        for part in (*walk(node.left), *walk(node.right)):
            leaf = self.around.leaf(part, inner)
            if leaf is None or leaf.spec.type not in _MOVABLE:
                continue
            old = self.measured(part, inner, element)
            if type(old) in (int, float, str):
                yield from self._moved(node, inner, leaf, old, beside, element)

    def _moved(
        self,
        node: Binary,
        above: Sequence[Node],
        leaf: _Leaf,
        old: Any,
        beside: list[ValueChange],
        element: int,
    ) -> Iterator[FuzzCase]:
        gap = self.gap(node, above, element)
        step = 1440 if isinstance(old, str) and len(old) == 19 else 1
        for first in self.put(leaf, above, shifted(old, step), element):
            for case in self.made([*beside, *first]):
                other = _Ground(self.around, self.maker, case, self.row)
                after = other.gap(node, above, element)
                if gap is None or after is None or after == gap:
                    continue
                length = -gap * step / (after - gap)
                for extra in (0, 1, -1) if step == 1 else (0, 1, -1, step, -step):
                    for own in self.put(leaf, above, shifted(old, length + extra), element):
                        yield from self.made([*beside, *own])

    def gap(self, node: Binary, above: Sequence[Node], element: int) -> float | None:
        left, right = (self.measured(side, above, element) for side in (node.left, node.right))
        return difference(left, right)


_MOVABLE = frozenset({"integer", "number", "date", "datetime"})
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "in": "holds"}
_ORDERED = {"<": (-1, 0), "<=": (0, 1), ">": (1, 0), ">=": (0, -1)}
"""Sign -> how far from the other side a value lies for which it holds, and one for which not."""


def _values(spec: FieldSpec | ParamSpec, sign: str, other: Any, truth: bool) -> Iterator[Any]:
    """Values of a field or parameter for which `value sign other` has this truth."""
    if sign in ("==", "!="):
        if (sign == "==") == truth:
            yield _fitted(spec, other)
        else:
            yield from _different(spec, [other])
    elif sign in _ORDERED and other is not None:
        by = _ORDERED[sign][0 if truth else 1]
        fitted = _fitted(spec, other)
        if type(fitted) in (int, float) or (isinstance(fitted, str) and moment_of(fitted)):
            yield shifted(fitted, by)
            if by and spec.type == "number":
                yield shifted(fitted, by / 100)  # within what a fraction adds to the other side
    elif sign == "in" and isinstance(other, list):
        yield from other[:1] if truth else _different(spec, other)
    elif sign in ("contains", "holds", "starts_with", "ends_with") and other is not None:
        item = other if truth else "zzzz"
        yield [item] if spec.type == "list" else item


def _fitted(spec: FieldSpec | ParamSpec, value: Any) -> Any:
    """The day of a time, or the first moment of a day, as the type asks; of a list its kind."""
    if isinstance(value, str) and spec.type == "date":
        return value[:10]
    if isinstance(value, str) and spec.type == "datetime" and len(value) == 10:
        return f"{value}T00:00:00"
    if type(value) is float and spec.type == "integer":
        return round(value)
    return value


def _different(spec: FieldSpec | ParamSpec, taken: Sequence[Any]) -> Iterator[Any]:
    """One value that is none of these."""
    if spec.type == "boolean":
        yield from (value for value in (True, False) if value not in taken)
    elif spec.type == "enum":
        yield from [value for value in spec.values if value not in taken][:1]
    elif spec.type in ("integer", "number"):
        numbers = [value for value in taken if type(value) in (int, float)]
        yield max(numbers, default=0) + 1
    elif spec.type in ("date", "datetime"):
        moments = [value for value in taken if isinstance(value, str)]
        latest = max(moments, default="2026-01-05T10:00:00")
        yield _fitted(spec, shifted(latest, 1))
    elif spec.type == "string":
        yield "zzzz"


def _bound(spec: ToolSpec, index: int) -> tuple[dict[str, str], Mapping[str, Node]]:
    """Names of rows with their entity, and what other names stand for, before a statement."""
    rows: dict[str, str] = {}
    named: dict[str, Node] = {}
    for statement in flat(spec.semantics[:index]):
        match statement:
            case Read() | Create() if statement.bind is not None:
                rows[statement.bind] = statement.entity
            case Let(bind=bind, be=be):
                named[bind] = parse(be)
    return rows, named
