"""Rules of a domain as preconditions of a change: substitute what will be, fold what is known.

A rule holds before every call, so a change needs a precondition only where the rule mentions what
changes, and only what folding leaves of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from offline_llm.tools.outline import Entity, Outline
from tool_specs.language.expressions import parse, show, walk
from tool_specs.language.syntax.nodes import (
    Access,
    Binary,
    Call,
    ListOf,
    Literal,
    Name,
    Node,
    Unary,
)

_TRUE, _FALSE, _NULL = Literal(True), Literal(False), Literal(None)
_NEVER_NULL = ("now", "count", "sum", "concat")


class Guard(NamedTuple):
    that: str
    error: str
    message: str
    entity: str = ""
    """Of the rows that would break the rule, where these are others: `that` selects them."""


def rewritten(node: Node, put: Mapping[Node, Node]) -> Node:
    """The tree with every subtree that is a key replaced, largest first."""
    if node in put:
        return put[node]
    match node:
        case Access():
            return replace(node, base=rewritten(node.base, put))
        case Call():
            return replace(node, arguments=tuple(rewritten(a, put) for a in node.arguments))
        case ListOf():
            return replace(node, items=tuple(rewritten(i, put) for i in node.items))
        case Unary():
            return replace(node, operand=rewritten(node.operand, put))
        case Binary():
            left, right = rewritten(node.left, put), rewritten(node.right, put)
            return replace(node, left=left, right=right)
    return node


def folded(node: Node, given: frozenset[str]) -> Node:
    """The tree without what is certain. `given` lists expressions that are not null."""
    match node:
        case Unary(operator="not"):
            inner = folded(node.operand, given)
            if isinstance(inner, Literal):
                return Literal(not inner.value)
            return replace(node, operand=inner)
        case Binary(operator="and" | "or"):
            left, right = folded(node.left, given), folded(node.right, given)
            decides = _TRUE if node.operator == "or" else _FALSE
            if decides in (left, right):
                return decides
            if isinstance(left, Literal):
                return right
            return left if isinstance(right, Literal) else replace(node, left=left, right=right)
        case Binary():
            return _compared(
                replace(node, left=folded(node.left, given), right=folded(node.right, given)), given
            )
        case Call(function="coalesce") if _present(node.arguments[0], given):
            return node.arguments[0]
    return node


def _present(node: Node, given: frozenset[str]) -> bool:
    if isinstance(node, Literal):
        return node.value is not None
    if isinstance(node, Call) and node.function in ("date", "add_days", "round", "coalesce"):
        return _present(node.arguments[-1 if node.function == "coalesce" else 0], given)
    if isinstance(node, Binary):
        return True
    return (isinstance(node, Call) and node.function in _NEVER_NULL) or show(node) in given


def _compared(node: Binary, given: frozenset[str]) -> Node:
    left, right, sign = node.left, node.right, node.operator
    if sign in ("==", "!="):
        if left == right:
            return Literal(sign == "==")
        for one, other in ((left, right), (right, left)):
            if one == _NULL and _present(other, given):
                return Literal(sign == "!=")
        if isinstance(left, Literal) and isinstance(right, Literal):
            return Literal((left.value == right.value) == (sign == "=="))
    if sign in ("<", "<=", ">", ">=") and _NULL in (left, right):
        return _FALSE
    listed = isinstance(right, ListOf) and all(isinstance(i, Literal) for i in right.items)
    if sign == "in" and isinstance(left, Literal) and listed:
        return Literal(left in right.items)  # type: ignore[union-attr]
    return node


def _fields(node: Node, entity: str) -> set[str]:
    """Fields of the rule's own row that it mentions."""
    found = (n for n in walk(node) if isinstance(n, Access) and n.base == Name(entity))
    return {n.field for n in found}


def own_guards(
    outline: Outline,
    entity: Entity,
    new: Mapping[str, str],
    *,
    row: str | None,
    was: Mapping[str, Sequence[str]] | None = None,
    given: frozenset[str] = frozenset(),
    after: Mapping[Node, Node] | None = None,
    like: str | None = None,
) -> list[Guard] | None:
    """What must hold for the row with these new values; None when a rule can never hold.

    `row` is the binding of the row as it is, None for a new one. `was` maps fields to the values
    that they can have by now (a status that was just checked); `given` lists arguments that are
    never null; `after` maps fields of looked-up rows to what the same call will make of them;
    `like` is the binding of another row of the entity that a new one is copied from.
    """
    guards = []
    present = given | {f"{row}.{f.name}" for f in entity.fields.values() if not f.optional}
    for rule in outline.rules:
        if rule["entity"] != entity.name:
            continue
        tree = parse(rule["that"])
        mentioned = _fields(tree, entity.name)
        touched = bool(mentioned & new.keys()) or (after and _looks_anywhere(tree))
        if row is not None and not touched:
            continue
        put: dict[Node, Node] = {
            Access(Name(entity.name), f): parse(new.get(f, f"{row}.{f}" if row else "null"))
            for f in mentioned
        }
        held = (
            [_as_it_was(tree, entity, row or like or "", values, present) for values in _cases(was)]
            if row or like
            else []
        )
        tree = folded(rewritten(rewritten(tree, put), after or {}), present)
        if row is not None and was:
            certain = {f"{row}.{f}": values[0] for f, values in was.items() if len(values) == 1}
            tree = folded(
                rewritten(tree, {parse(k): Literal(v) for k, v in certain.items()}), present
            )
        if tree == _FALSE:
            return None
        if tree != _TRUE and not (held and all(implies(h, tree) for h in held)):
            guards.append(Guard(show(tree), f"rule_{rule['id']}", _message(rule)))
    return guards


def _looks_anywhere(tree: Node) -> bool:
    return any(isinstance(n, Call) and n.function == "lookup" for n in walk(tree))


def _cases(was: Mapping[str, Sequence[str]] | None) -> list[dict[str, str]]:
    """What the fields can be, one combination at a time."""
    cases: list[dict[str, str]] = [{}]
    for field, values in (was or {}).items():
        cases = [case | {field: value} for case in cases for value in values]
    return cases


def _as_it_was(
    tree: Node, entity: Entity, row: str, values: Mapping[str, str], present: frozenset[str]
) -> Node:
    """What the rule says of the row before the change, with what its fields can be."""
    put: dict[Node, Node] = {
        Access(Name(entity.name), f): Literal(values[f]) if f in values else parse(f"{row}.{f}")
        for f in _fields(tree, entity.name)
    }
    return folded(rewritten(tree, put), present)


def implies(held: Node, wanted: Node) -> bool:
    """Whether the one is the other, or plainly more than it."""
    if held == wanted:
        return True
    if isinstance(held, Binary) and held.operator == "and":
        return implies(held.left, wanted) or implies(held.right, wanted)
    if isinstance(wanted, Binary) and wanted.operator == "or":
        return implies(held, wanted.left) or implies(held, wanted.right)
    return False


def others_guards(
    outline: Outline, entity: Entity, new: Mapping[str, str], *, row: str
) -> list[Guard]:
    """Rows of other entities whose rules look this row up: which of them the change would break."""
    guards = []
    for rule in outline.rules:
        if rule["entity"] == entity.name:
            continue
        tree = parse(rule["that"])
        looked = [
            node
            for node in walk(tree)
            if isinstance(node, Access) and node.field in new and _looks_up(node.base, entity.name)
        ]
        for call in dict.fromkeys(n.base for n in looked):
            key = call.arguments[1]  # type: ignore[union-attr]
            put: dict[Node, Node] = {n: parse(new[n.field]) for n in looked if n.base == call}
            broken = folded(Unary("not", rewritten(tree, put)), frozenset())
            if broken != _FALSE:
                same = Binary("==", key, parse(f"{row}.{entity.key}"))
                that = show(Binary("and", same, broken))
                guards.append(Guard(that, f"rule_{rule['id']}", _message(rule), rule["entity"]))
    return guards


def _looks_up(node: Node, entity: str) -> bool:
    return (
        isinstance(node, Call)
        and node.function == "lookup"
        and node.arguments[0] == Literal(entity)
    )


def _message(rule: Mapping[str, str]) -> str:
    return str(rule.get("text") or rule["id"]).replace("{", "(").replace("}", ")")


def mentions(outline: Outline, entity: Entity, field: str) -> bool:
    """Whether any rule says something about the field."""
    return any(
        (rule["entity"] == entity.name and field in _fields(parse(rule["that"]), entity.name))
        or (f"lookup('{entity.name}'" in rule["that"] and f".{field}" in rule["that"])
        for rule in outline.rules
    )
