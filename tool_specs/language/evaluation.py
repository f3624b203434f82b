"""Syntax trees to typed closures: names become slots of a list, operators become functions.

An environment is a list: slot 0 holds the arguments, slot 1 the state, the rest bindings. Types
are inferred on the way, so that a field that does not exist, a comparison that can never hold or
an enum member that is not one is an error of the domain and not of an episode.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tool_specs.language import paths, summaries, values
from tool_specs.language.expressions import Template
from tool_specs.language.functions import FUNCTIONS, LISTS
from tool_specs.language.operators import (
    ARITHMETIC,
    Env,
    Evaluator,
    Typed,
    arithmetic,
    comparison,
    need_number,
    plain_number,
)
from tool_specs.language.syntax.nodes import (
    Access,
    Binary,
    Call,
    Each,
    ListOf,
    Literal,
    Name,
    Node,
    Record,
    Unary,
)
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.language.types import (
    ANY,
    BOOLEAN,
    DATETIME,
    NUMBER_KINDS,
    STRING,
    TEXT_KINDS,
    Type,
    list_of,
    literal_type,
    nullable,
    union,
)

ARGS, STATE, BUDGET = 0, 1, 2
"""Slots that every environment has: the arguments, the State, and the steps that are left."""
FIRST_FREE = 3
_ELEMENT = -1
"""Where the element of `[.. for x in ..]` stands: on top, so that no scope has to keep a slot for
it, and there is one at a time."""

_CHARACTERS_A_STEP = 100
"""Of the texts of a list that is made of another."""

MOST_ELEMENTS = 1000
"""Of a list that another is made of."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may name. `entities` serves lookup."""

    names: Mapping[str, tuple[int, Type]]
    entities: Mapping[str, Type]


def compile_expression(node: Node, scope: Scope) -> Typed:
    """The closure and its type. Raises ExpressionError with a position in the text."""
    match node:
        case Literal(value=value):
            return Typed(lambda env: value, literal_type(value))
        case Name():
            return _name(node, scope)
        case Access():
            return _access(node, scope)
        case ListOf(items=items):
            parts = [compile_expression(item, scope) for item in items]
            runs = [part.run for part in parts]
            of = union(part.type for part in parts) if parts else None
            return Typed(lambda env: [run(env) for run in runs], list_of(of))
        case Each():
            return _each(node, scope)
        case Record(names=names, values=parts):
            compiled = [compile_expression(part, scope) for part in parts]
            named = list(zip(names, compiled, strict=True))
            type_ = Type("object", fields={name: part.type for name, part in named})
            pairs = [(name, part.run) for name, part in named]
            return Typed(lambda env: {name: run(env) for name, run in pairs}, type_)
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
    return _reached(compile_expression(node.base, scope), node, scope)


def _reached(base: Typed, node: Access, scope: Scope) -> Typed:
    """One step of a path, by the rule of `paths.py`."""
    if entity := paths.referred(base.type):
        return _reached(_rows(entity, base, node, scope), node, scope)
    if name := paths.reference(base.type, node.field):
        key = _field(base, replace(node, field=name), scope)
        return _rows(paths.referred(key.type) or "", key, node, scope)
    return _field(base, node, scope)


def _field(base: Typed, node: Access, scope: Scope) -> Typed:
    type_, field, run = _field_type(base.type, node), node.field, base.run
    holder = base.type.of if base.type.kind == "list" and base.type.of else base.type
    kept = holder.kind == "row"
    if isinstance(node.base, Name) and node.base.name in scope.names:
        slot, held = scope.names[node.base.name]
        if held is base.type and (slot == ARGS or (held.kind == "row" and not held.nullable)):
            return Typed(lambda env: env[slot][field], type_, kept)  # has every field, always
    return Typed(lambda env: values.field_of(run(env), field), type_, kept)


def _rows(entity: str, key: Typed, node: Node, scope: Scope) -> Typed:
    """The row whose id the key is, or the rows of a list of them.

    Null for an id of no row. A row that another refers to is there: where it is not, this call
    has deleted it.
    """
    row = scope.entities.get(entity)
    if row is None:
        raise ExpressionError(f"unknown entity {entity!r}", node.position)
    run = key.run
    find = _finder(entity, kept=key.kept)
    if key.type.kind != "list":
        surely = key.kept and not key.type.nullable
        return Typed(lambda env: find(env, run(env)), row if surely else nullable(row))

    def find_all(env: Env) -> Any:
        keys = run(env)
        return None if keys is None else [find(env, wanted) for wanted in keys]

    surely = key.kept and key.type.of is not None and not key.type.of.nullable
    rows = list_of(row if surely else nullable(row))
    return Typed(find_all, nullable(rows) if key.type.nullable else rows)


def _finder(entity: str, *, kept: bool) -> Callable[[Env, Any], Any]:
    def find(env: Env, key: Any) -> Any:
        return env[STATE].get(entity, key) if isinstance(key, str) else None

    def find_kept(env: Env, key: Any) -> Any:
        found = find(env, key)
        if found is None and key is not None:
            words = f"{entity} {values.show_value(key)} was deleted by this call"
            raise values.EvaluationError(words)
        return found

    return find_kept if kept else find


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
        words = f"{what} has no field {node.field!r}; it has {', '.join(base.fields) or 'none'}"
        reached = paths.references(base)
        words += f", and the rows {', '.join(reached)}" if reached else ""
        raise ExpressionError(words, node.position)
    return nullable(found) if base.nullable else found


def _condition(node: Node, scope: Scope, what: str) -> Callable[[Env], bool]:
    run, type_, _ = compile_expression(node, scope)
    if type_.kind not in ("boolean", "any", "null"):
        raise ExpressionError(f"{what} needs true or false, got {type_}", node.position)
    if type_ == BOOLEAN:
        return run
    return lambda env: values.truth(run(env))


def spend(env: Env, steps: int) -> None:
    """Rows looked at, statements run and elements made; a call may take so many."""
    env[BUDGET] -= steps
    if env[BUDGET] < 0:
        raise values.EvaluationError("more than 1000000 steps in one call")


def _each(node: Each, scope: Scope) -> Typed:
    if node.name in scope.names:
        words = f"{node.name!r} is bound already; choose another name for the element"
        raise ExpressionError(words, node.position)
    if any(slot == _ELEMENT for slot, _ in scope.names.values()):
        words = "a list is made inside the item of another; give the inner one a name before"
        raise ExpressionError(words, node.position)
    source, type_, _ = compile_expression(node.source, scope)
    if type_.kind not in ("list", "any"):
        raise ExpressionError(f"for {node.name} in needs a list, got {type_}", node.position)
    names = {**scope.names, node.name: (_ELEMENT, type_.of or ANY)}
    inner = replace(scope, names=names)
    item = compile_expression(node.item, inner)
    condition = node.condition and _condition(node.condition, inner, "if")
    make = item.run

    def run(env: Env) -> list[Any]:
        elements = values.elements(f"for {node.name} in", source(env))
        if len(elements) > MOST_ELEMENTS:
            words = f"for {node.name} in runs over at most {MOST_ELEMENTS}, got {len(elements)}"
            raise values.EvaluationError(words)
        spend(env, len(elements))
        made: list[Any] = []
        env.append(None)
        try:
            for element in elements:
                env[_ELEMENT] = element
                if condition is None or condition(env):
                    made.append(make(env))
        finally:
            env.pop()
        if holds_text:  # else a loop over such lists could fill the memory within its steps
            spend(env, values.num_characters(made) // _CHARACTERS_A_STEP)
        return made

    holds_text = item.type.kind in TEXT_KINDS | {"object", "list", "any"}
    return Typed(run, list_of(item.type))


def _unary(node: Unary, scope: Scope) -> Typed:
    if node.operator == "not":
        condition = _condition(node.operand, scope, "not")
        return Typed(lambda env: not condition(env), BOOLEAN)
    run, type_, _ = compile_expression(node.operand, scope)
    need_number("-", type_, node)
    return Typed(lambda env: values.negate(run(env)), plain_number(type_))


def _binary(node: Binary, scope: Scope) -> Typed:
    if node.operator in ("and", "or"):
        left = _condition(node.left, scope, node.operator)
        right = _condition(node.right, scope, node.operator)
        if node.operator == "and":
            return Typed(lambda env: left(env) and right(env), BOOLEAN)
        return Typed(lambda env: left(env) or right(env), BOOLEAN)
    left, right = compile_expression(node.left, scope), compile_expression(node.right, scope)
    if node.operator in ARITHMETIC:
        return arithmetic(node, left, right)
    return Typed(comparison(node, left, right), BOOLEAN)


def _call(node: Call, scope: Scope) -> Typed:
    if node.function == "now":
        _need_count(node, "now()", 0, 0)
        return Typed(lambda env: env[STATE].now, DATETIME)
    if form := FORMS.get(node.function):
        return form(node, scope)
    function = FUNCTIONS.get(node.function)
    if function is None:
        known = ", ".join(sorted([*FUNCTIONS, *FORMS, "now"]))
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
    key = compile_expression(node.arguments[1], scope)
    of = key.type.of if key.type.kind == "list" and key.type.of is not None else key.type
    if of.kind not in TEXT_KINDS | {"any", "null"}:
        raise ExpressionError(f"{usage} needs a key, which is text, got {of}", node.position)
    return _rows(entity, key._replace(kept=False), node, scope)


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
    run, type_, _ = compile_expression(node.arguments[0], scope)
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


def _format(node: Call, scope: Scope) -> Typed:
    usage = "format(number, digits) or format(date, '%d %B %Y')"
    _need_count(node, usage, 2, 2)
    run, type_, _ = compile_expression(node.arguments[0], scope)
    shown = nullable(STRING) if type_.nullable else STRING
    how = node.arguments[1].value if isinstance(node.arguments[1], Literal) else None
    if type(how) is int and 0 <= how <= 9 and type_.kind in NUMBER_KINDS | {"any"}:
        return Typed(lambda env: summaries.with_digits(run(env), how), shown)
    if not isinstance(how, str) or type_.kind not in TEXT_KINDS | {"any", "null"}:
        raise ExpressionError(f"write {usage}; got {type_}", node.position)
    if unknown := summaries.unknown_parts(how):
        words = f"{usage} does not know {unknown[0]!r}; it knows {summaries.DATE_PARTS}"
        raise ExpressionError(words, node.arguments[1].position)
    return Typed(lambda env: summaries.dated(run(env), how), shown)


_MOST_PICKED = 20
FORMS: dict[str, Callable[[Call, Scope], Typed]] = {
    "lookup": _lookup,
    "if": _choice,
    "pick": _pick,
    "format": _format,
}
"""Functions whose arguments are more than values."""
