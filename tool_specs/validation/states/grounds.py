"""A case whose values are changed so that a condition holds, or does not, or is left to decide."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tool_specs.language.domain_file import FieldSpec, ParamSpec
from tool_specs.language.expressions import (
    COMPARISONS,
    Binary,
    Call,
    Each,
    Literal,
    Node,
    Unary,
    parse,
    show,
    walk,
)
from tool_specs.language.statements import AnyStatement, Read
from tool_specs.validation.mutation.trees import Site
from tool_specs.validation.states.cases import FuzzCase
from tool_specs.validation.states.made_states import StateMaker, ValueChange
from tool_specs.validation.states.measuring import ValueProbe, difference, shifted
from tool_specs.validation.states.naming import CANDIDATE, Around, NamedValue
from tool_specs.validation.states.near_values import moment_of


class DecidedCase:
    """A case whose values are changed; for a filter, with the read of the row that it looks at."""

    def __init__(
        self, around: Around, maker: StateMaker, case: FuzzCase, row: AnyStatement | None
    ) -> None:
        self.around, self.maker, self.case, self.row = around, maker, case, row
        if isinstance(row, Read):
            around.rows = {**around.rows, CANDIDATE: row.entity}
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
        self, leaf: NamedValue, above: Sequence[Node], value: Any, element: int
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
        leaf: NamedValue,
        old: Any,
        beside: list[ValueChange],
        element: int,
    ) -> Iterator[FuzzCase]:
        gap = self.gap(node, above, element)
        step = 1440 if isinstance(old, str) and len(old) == 19 else 1
        for first in self.put(leaf, above, shifted(old, step), element):
            for case in self.made([*beside, *first]):
                other = DecidedCase(self.around, self.maker, case, self.row)
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
