"""Syntax trees to typed closures: names become slots of a list, operators become functions.

An environment is a list: slot 0 holds the arguments, slot 1 the state, the rest bindings. Types
are inferred on the way, so that a field that does not exist, a comparison that can never hold or
an enum member that is not one is an error of the domain and not of an episode.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tool_specs.language import summaries, values
from tool_specs.language.expressions import (
    Access,
    Binary,
    Call,
    ExpressionError,
    ListOf,
    Literal,
    Name,
    Node,
    Template,
    Unary,
)
from tool_specs.language.functions import FUNCTIONS, LISTS
from tool_specs.language.types import (
    ANY,
    BOOLEAN,
    DATETIME,
    INTEGER,
    NULL,
    NUMBER,
    NUMBER_KINDS,
    TEXT_KINDS,
    Type,
    comparable,
    list_of,
    nullable,
    union,
)

ARGS, STATE, BUDGET = 0, 1, 2
"""Slots that every environment has: the arguments, the State, and the steps that are left."""
FIRST_FREE = 3

Env = list[Any]
Evaluator = Callable[[Env], Any]


class Typed(NamedTuple):
    run: Evaluator
    type: Type


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may name. `entities` serves lookup."""

    names: Mapping[str, tuple[int, Type]]
    entities: Mapping[str, Type]


def compile_expression(node: Node, scope: Scope) -> Typed:
    """The closure and its type. Raises ExpressionError with a position in the text."""
    match node:
        case Literal(value=value):
            return Typed(lambda env: value, _literal_type(value))
        case Name():
            return _name(node, scope)
        case Access():
            return _access(node, scope)
        case ListOf(items=items):
            parts = [compile_expression(item, scope) for item in items]
            runs = [part.run for part in parts]
            of = union(part.type for part in parts) if parts else None
            return Typed(lambda env: [run(env) for run in runs], list_of(of))
        case Unary():
            return _unary(node, scope)
        case Binary():
            return _binary(node, scope)
        case Call():
            return _call(node, scope)
    raise TypeError(f"no expression: {node!r}")


def compile_condition(node: Node, scope: Scope) -> Callable[[Env], bool]:
    """A closure that gives True or False; an expression of another type is refused."""
    return _condition(node, scope, "a condition")


def compile_template(template: Template, scope: Scope) -> Callable[[Env], str]:
    """The message with its `{expression}` parts filled in."""
    runs: list[Evaluator] = []
    for part in template.parts:
        if isinstance(part, str):
            runs.append(lambda env, text=part: text)
        else:
            runs.append(compile_expression(part, scope).run)
    return lambda env: "".join(values.as_text(run(env)) for run in runs)


def _literal_type(value: Any) -> Type:
    if value is None:
        return NULL
    if isinstance(value, str):
        # an enum of one: that is how a literal is checked against the members of a field
        return Type("enum", values=(value,))
    return {bool: BOOLEAN, int: INTEGER, float: NUMBER}[type(value)]


def _name(node: Name, scope: Scope) -> Typed:
    found = scope.names.get(node.name)
    if found is None:
        raise ExpressionError(
            f"unknown name {node.name!r}; known here: {', '.join(scope.names) or 'none'}",
            node.position,
        )
    slot, type_ = found
    return Typed(lambda env: env[slot], type_)


def _access(node: Access, scope: Scope) -> Typed:
    base = compile_expression(node.base, scope)
    type_, field = _field_type(base.type, node), node.field
    run = base.run
    if isinstance(node.base, Name):
        slot = scope.names[node.base.name][0]
        if slot == ARGS or (base.type.kind == "row" and not base.type.nullable):
            return Typed(lambda env: env[slot][field], type_)  # has every field, always
    return Typed(lambda env: values.field_of(run(env), field), type_)


def _field_type(base: Type, node: Access) -> Type:
    if base.kind == "list":
        inner = _field_type(base.of, node) if base.of is not None else ANY
        return nullable(list_of(inner)) if base.nullable else list_of(inner)
    if base.kind == "any" or (base.kind == "object" and base.fields is None):
        return ANY
    if base.fields is None:
        raise ExpressionError(f"{base} has no field {node.field!r}", node.position)
    found = base.fields.get(node.field)
    if found is None:
        what = node.base.name if isinstance(node.base, Name) else base.entity or "the object"
        raise ExpressionError(
            f"{what} has no field {node.field!r}; it has {', '.join(base.fields) or 'none'}",
            node.position,
        )
    return nullable(found) if base.nullable else found


def _condition(node: Node, scope: Scope, what: str) -> Callable[[Env], bool]:
    run, type_ = compile_expression(node, scope)
    if type_.kind not in ("boolean", "any", "null"):
        raise ExpressionError(f"{what} needs true or false, got {type_}", node.position)
    if type_ == BOOLEAN:
        return run
    return lambda env: values.truth(run(env))


def _unary(node: Unary, scope: Scope) -> Typed:
    if node.operator == "not":
        condition = _condition(node.operand, scope, "not")
        return Typed(lambda env: not condition(env), BOOLEAN)
    run, type_ = compile_expression(node.operand, scope)
    _need_number("-", type_, node)
    return Typed(lambda env: values.negate(run(env)), _plain_number(type_))


def _need_number(what: str, type_: Type, node: Node) -> None:
    if type_.kind not in NUMBER_KINDS and type_.kind != "any":
        raise ExpressionError(f"{what} needs numbers, got {type_}", node.position)


def _plain_number(*types: Type) -> Type:
    return INTEGER if all(t.kind == "integer" for t in types) else NUMBER


def _binary(node: Binary, scope: Scope) -> Typed:
    if node.operator in ("and", "or"):
        left = _condition(node.left, scope, node.operator)
        right = _condition(node.right, scope, node.operator)
        if node.operator == "and":
            return Typed(lambda env: left(env) and right(env), BOOLEAN)
        return Typed(lambda env: left(env) or right(env), BOOLEAN)
    left, right = compile_expression(node.left, scope), compile_expression(node.right, scope)
    if node.operator in _ARITHMETIC:
        return _arithmetic(node, left, right)
    return Typed(_comparison(node, left, right), BOOLEAN)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": values.add,
    "-": values.subtract,
    "*": values.multiply,
    "/": values.divide,
}


def _arithmetic(node: Binary, left: Typed, right: Typed) -> Typed:
    for side in (left, right):
        _need_number(node.operator, side.type, node)
    apply, a, b = _ARITHMETIC[node.operator], left.run, right.run
    type_ = NUMBER if node.operator == "/" else _plain_number(left.type, right.type)
    return Typed(lambda env: apply(a(env), b(env)), type_)


_ORDERINGS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_SCALARS = TEXT_KINDS | NUMBER_KINDS


def _comparison(node: Binary, left: Typed, right: Typed) -> Evaluator:
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


def _text_comparison(node: Binary, left: Typed, right: Typed) -> Evaluator:
    a, b = left.run, right.run
    allowed = TEXT_KINDS | {"any", "null"}
    lists = {"list"} if node.operator == "contains" else set()
    if left.type.kind not in allowed | lists or right.type.kind not in allowed:
        raise ExpressionError(
            f"{node.operator} needs text on both sides, got {left.type} and {right.type}",
            node.position,
        )
    apply = values.contains if node.operator == "contains" else values.starts_with
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


def _call(node: Call, scope: Scope) -> Typed:
    if node.function == "now":
        _need_count(node, "now()", 0, 0)
        return Typed(lambda env: env[STATE].now, DATETIME)
    if form := _FORMS.get(node.function):
        return form(node, scope)
    function = FUNCTIONS.get(node.function)
    if function is None:
        known = ", ".join(sorted([*FUNCTIONS, *_FORMS, "now"]))
        raise ExpressionError(f"unknown function {node.function!r}; known: {known}", node.position)
    _need_count(node, function.usage, function.least, function.most)
    parts = [compile_expression(argument, scope) for argument in node.arguments]
    for part in parts:
        if function.accepts is not None and part.type.kind not in function.accepts:
            raise ExpressionError(f"{function.usage} does not take {part.type}", node.position)
    if node.function in ("min", "max") and len(parts) == 1 and parts[0].type.kind not in LISTS:
        raise ExpressionError(f"{function.usage} does not take {parts[0].type}", node.position)
    apply, runs = function.apply, [part.run for part in parts]
    type_ = function.result([part.type for part in parts])
    if len(runs) == 1:
        only = runs[0]
        return Typed(lambda env: apply(only(env)), type_)
    if len(runs) == 2:
        first, second = runs
        return Typed(lambda env: apply(first(env), second(env)), type_)
    return Typed(lambda env: apply(*[run(env) for run in runs]), type_)


def _need_count(node: Call, usage: str, least: int, most: int) -> None:
    if not least <= len(node.arguments) <= most:
        raise ExpressionError(
            f"write {usage}; {len(node.arguments)} arguments were given", node.position
        )


def _lookup(node: Call, scope: Scope) -> Typed:
    usage = "lookup('entity', key)"
    _need_count(node, usage, 2, 2)
    first = node.arguments[0]
    entity = first.value if isinstance(first, Literal) else None
    if not isinstance(entity, str) or entity not in scope.entities:
        raise ExpressionError(
            f"write {usage} with one of {', '.join(map(repr, scope.entities))}", first.position
        )
    run, type_ = compile_expression(node.arguments[1], scope)
    if type_.kind not in TEXT_KINDS | {"any", "null"}:
        raise ExpressionError(f"{usage} needs a key, which is text, got {type_}", node.position)

    def find(env: Env) -> Any:
        key = run(env)
        return env[STATE].get(entity, key) if isinstance(key, str) else None

    return Typed(find, nullable(scope.entities[entity]))


def _choice(node: Call, scope: Scope) -> Typed:
    """Only the side that is chosen is evaluated, so that the other may divide by zero."""
    _need_count(node, "if(condition, then, otherwise)", 3, 3)
    condition = _condition(node.arguments[0], scope, "if")
    then, otherwise = (compile_expression(side, scope) for side in node.arguments[1:])
    a, b = then.run, otherwise.run
    return Typed(
        lambda env: a(env) if condition(env) else b(env), union((then.type, otherwise.type))
    )


def _pick(node: Call, scope: Scope) -> Typed:
    usage = "pick(rows, 'field', ...)"
    _need_count(node, usage, 2, _MOST_PICKED)
    run, type_ = compile_expression(node.arguments[0], scope)
    names = [a.value if isinstance(a, Literal) else None for a in node.arguments[1:]]
    fields = [name for name in names if isinstance(name, str)]
    row = type_.of if type_.kind == "list" and type_.of is not None else type_
    known = row.fields
    if known is None or len(fields) < len(names) or len(set(fields)) < len(fields):
        raise ExpressionError(f"write {usage} with rows and different field names", node.position)
    for name in fields:
        if name not in known:
            words = f"{row} has no field {name!r}; it has {', '.join(known)}"
            raise ExpressionError(words, node.position)
    shown = Type("object", row.nullable, fields={name: known[name] for name in fields})
    if type_.kind == "list":
        shown = Type("list", type_.nullable, of=shown)
    return Typed(lambda env: summaries.picked(run(env), fields), shown)


_MOST_PICKED = 20
_FORMS: dict[str, Callable[[Call, Scope], Typed]] = {
    "lookup": _lookup,
    "if": _choice,
    "pick": _pick,
}
"""Functions whose arguments are more than values."""
