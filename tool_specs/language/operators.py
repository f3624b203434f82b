"""Typed closures, and what the operators make of two of them.

Types are checked here, before anything runs; what operators do to values is in `values.py`.
"""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from tool_specs.language import values
from tool_specs.language.syntax.nodes import Binary, Node
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.language.types import (
    INTEGER,
    NUMBER,
    NUMBER_KINDS,
    TEXT_KINDS,
    Type,
    comparable,
)

Env = list[Any]
Evaluator = Callable[[Env], Any]


class Typed(NamedTuple):
    run: Evaluator
    type: Type
    kept: bool = False
    """Ids, or one, that stand in a row: the state keeps the rows that they point at."""


def need_number(what: str, type_: Type, node: Node) -> None:
    if type_.kind not in NUMBER_KINDS and type_.kind != "any":
        raise ExpressionError(f"{what} needs numbers, got {type_}", node.position)


def plain_number(*types: Type) -> Type:
    return INTEGER if all(t.kind == "integer" for t in types) else NUMBER


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": values.add,
    "-": values.subtract,
    "*": values.multiply,
    "/": values.divide,
}


def arithmetic(node: Binary, left: Typed, right: Typed) -> Typed:
    for side in (left, right):
        need_number(node.operator, side.type, node)
    apply, a, b = ARITHMETIC[node.operator], left.run, right.run
    type_ = NUMBER if node.operator == "/" else plain_number(left.type, right.type)
    return Typed(lambda env: apply(a(env), b(env)), type_)


_ORDERINGS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_SCALARS = TEXT_KINDS | NUMBER_KINDS


def comparison(node: Binary, left: Typed, right: Typed) -> Evaluator:
    a, b, sign = left.run, right.run, node.operator
    if sign in ("==", "!="):
        _need_comparable(node, left.type, right.type)
        if {left.type.kind, right.type.kind} <= _SCALARS | {"null"}:
            # no booleans on either side, so Python's equality is JSON's
            return (lambda env: a(env) == b(env)) if sign == "==" else lambda env: a(env) != b(env)
        if sign == "==":
            return lambda env: values.equal(a(env), b(env))
        return lambda env: not values.equal(a(env), b(env))
    if sign in _ORDERINGS:
        _need_ordered(node, left.type, right.type)
        compare = _ORDERINGS[sign]
        return lambda env: values.ordered(x := a(env), y := b(env)) and compare(x, y)
    if sign == "in":
        if right.type.kind not in ("list", "any"):
            raise ExpressionError(f"in needs a list on its right, got {right.type}", node.position)
        if right.type.of is not None:
            _need_comparable(node, left.type, right.type.of)
        return lambda env: values.is_in(a(env), b(env))
    return _text_comparison(node, left, right)


_TEXT_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "contains": values.contains,
    "starts_with": values.starts_with,
    "ends_with": values.ends_with,
}


def _text_comparison(node: Binary, left: Typed, right: Typed) -> Evaluator:
    a, b = left.run, right.run
    allowed = TEXT_KINDS | {"any", "null"}
    lists = {"list"} if node.operator == "contains" else set()
    if left.type.kind not in allowed | lists or right.type.kind not in allowed:
        raise ExpressionError(
            f"{node.operator} needs text on both sides, got {left.type} and {right.type}",
            node.position,
        )
    apply = _TEXT_COMPARISONS[node.operator]
    return lambda env: apply(a(env), b(env))


def _need_comparable(node: Binary, a: Type, b: Type) -> None:
    if not comparable(a, b):
        raise ExpressionError(f"{a} and {b} are never equal", node.position)
    if a.kind == b.kind == "enum" and not set(a.values) & set(b.values):
        small, large = sorted((a, b), key=lambda t: len(t.values))
        raise ExpressionError(
            f"{', '.join(map(repr, small.values))} is not one of {', '.join(large.values)}",
            node.position,
        )


def _need_ordered(node: Binary, a: Type, b: Type) -> None:
    for family in (TEXT_KINDS, NUMBER_KINDS):
        if {a.kind, b.kind} <= family | {"any", "null"}:
            return
    raise ExpressionError(f"cannot order {a} and {b} with {node.operator}", node.position)
