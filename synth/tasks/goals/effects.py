"""What the write statements of a tool can do to a row, read off its semantics.

An over-approximation: whatever a call can store, the `ValueSource` of its field admits, and a guard
is listed only where every call that changes the row has passed it. So what no write admits, no call
does.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from synth.rubrics.built_in import same_value
from tool_specs.execution.jobs import CompiledJob
from tool_specs.language.domain_file import ParamSpec, ToolSpec
from tool_specs.language.expressions import parse
from tool_specs.language.expressions import terms as terms_of
from tool_specs.language.statements import (
    WRITING_OPS,
    Create,
    Delete,
    Let,
    Link,
    Read,
    Require,
    Update,
)
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

ANY = "*"
"""An entity that the text of the semantics does not tell."""


class ValueSource(NamedTuple):
    """What a write can store in a field."""

    values: tuple[Any, ...] | None = None
    """None: anything between the bounds."""
    low: float | None = None
    high: float | None = None
    param: str | None = None
    """The parameter whose value is stored as it is given."""

    def admits(self, value: Any) -> bool:
        if self.values is not None:
            return any(same_value(value, own) for own in self.values)
        if isinstance(value, int | float) and not isinstance(value, bool):
            above = self.low is None or value >= self.low
            return above and (self.high is None or value <= self.high)
        return True


ANYTHING = ValueSource()


class FieldCondition(NamedTuple):
    """A condition on the row that is changed, as it was before."""

    field: str
    operator: str
    values: tuple[Any, ...]

    def may_hold(self, source: ValueSource) -> bool:
        if source.values is None:
            return True
        if self.operator == "!=":
            return any(value != self.values[0] for value in source.values)
        return any(same_value(v, own) for v in source.values for own in self.values)


class Write(NamedTuple):
    """One statement that changes a row."""

    op: str
    """create, update or delete; links are updates."""
    entity: str
    sets: Mapping[str, ValueSource]
    key: str | None = None
    """The parameter that holds the row's id, where the statement concerns no other row."""
    guards: tuple[FieldCondition, ...] = ()
    always: bool = False
    """Whether every call that succeeds has this effect."""
    given: Mapping[str, str] = MappingProxyType({})
    """Field -> the parameter whose value it takes as it is."""


def writes_of(spec: ToolSpec, bound: Mapping[str, str], now: str | None) -> tuple[Write, ...]:
    """`bound`: the entity whose row, or rows, each name stands for, as `Program.rows` has it;
    `now`: what now() always is, None where the clock moves."""
    return tuple(_writes(spec, bound, _Values(spec, now)))


def job_writes(job: CompiledJob) -> tuple[Write, ...]:
    spec = job.spec
    body = ToolSpec(name=spec.name, description=spec.text, semantics=spec.do)
    return tuple(_writes(body, job.rows, _Values(body, None)))


def _writes(spec: ToolSpec, bound: Mapping[str, str], values_of: "_Values") -> Iterator[Write]:
    keys: dict[str, str | None] = {}
    guards = _guards(spec)

    def at(target: str) -> tuple[str, str | None, tuple[FieldCondition, ...]]:
        own = tuple(guard for name, guard in guards if name == target)
        return bound.get(target, ANY), keys.get(target), own

    for statement in spec.semantics:
        match statement:
            case Read(bind=name, key=key):
                keys[name] = values_of.param(key) if key is not None else None
            case Let(bind=name, be=be):
                values_of.named[name] = be
            case Create(entity=entity, set=values):
                sets = {field: values_of.source(text) for field, text in values.items()}
                always, given = statement.inside is None, values_of.given(values)
                yield Write("create", entity, sets, always=always, given=given)
            case Update(target=target, set=values):
                entity, key, own = at(target)
                sets = {field: values_of.source(text) for field, text in values.items()}
                yield Write("update", entity, sets, key, own, given=values_of.given(values))
            case Link(target=target, field=field):
                entity, key, own = at(target)
                yield Write("update", entity, {field: ANYTHING}, key, own)
            case Delete(target=target):
                entity, key, own = at(target)
                yield Write("delete", entity, {}, key, own)


class _Values:
    """What expressions of a tool can come to; a name that `let` gives is its expression."""

    def __init__(self, spec: ToolSpec, now: str | None) -> None:
        self.spec, self.now = spec, now
        self.named: dict[str, str] = {}

    def tree(self, expression: str) -> Node:
        """Looks through names: arguments, literals and the clock never change in a call."""
        tree = parse(expression)
        while isinstance(tree, Name) and tree.name in self.named:
            tree = parse(self.named[tree.name])
        return tree

    def param(self, expression: str) -> str | None:
        match self.tree(expression):
            case Access(base=Name(name="args"), field=field):
                return field
        return None

    def given(self, values: Mapping[str, str]) -> dict[str, str]:
        found = {field: self.param(text) for field, text in values.items()}
        return {field: name for field, name in found.items() if name is not None}

    def source(self, expression: str) -> ValueSource:
        match self.tree(expression):
            case Literal(value=value):
                return ValueSource((value,))
            case Call(function="now", arguments=()) if self.now is not None:
                return ValueSource((self.now,))
            case Access(base=Name(name="args"), field=name) if name in self.spec.params:
                return _given(name, self.spec.params[name])
        return ANYTHING


def _given(name: str, param: ParamSpec) -> ValueSource:
    left_out = (param.default,) if param.optional else ()
    match param.type:
        case "enum":
            return ValueSource((*param.values, *left_out), param=name)
        case "boolean":
            return ValueSource((True, False, *left_out), param=name)
        case "integer" | "number" if not param.optional:
            return ValueSource(None, param.min, param.max, name)
    return ValueSource(param=name)


def _guards(spec: ToolSpec) -> list[tuple[str, FieldCondition]]:
    """(binding, guard) of the conditions that are looked at before anything is changed."""
    single: set[str] = set()
    found: list[tuple[str, FieldCondition]] = []
    for statement in spec.semantics:
        if statement.op in WRITING_OPS:
            break
        if statement.inside is not None:
            continue
        if isinstance(statement, Read) and statement.key is not None:
            single.add(statement.bind)
        if isinstance(statement, Require):
            pairs = (_guard(term) for term in terms_of(parse(statement.that)))
            found += [pair for pair in pairs if pair is not None and pair[0] in single]
    return found


def _guard(term: Node) -> tuple[str, FieldCondition] | None:
    match term:
        case Access(base=Name(name=name), field=field):
            return name, FieldCondition(field, "in", (True,))
        case Unary(operator="not", operand=Access(base=Name(name=name), field=field)):
            return name, FieldCondition(field, "in", (False, None))
        case Binary(
            operator="==" | "!=" as sign,
            left=Access(base=Name(name=name), field=field),
            right=Literal(value=value),
        ):
            return name, FieldCondition(field, "in" if sign == "==" else sign, (value,))
        case Binary(
            operator="in",
            left=Access(base=Name(name=name), field=field),
            right=ListOf(items=items),
        ) if all(isinstance(item, Literal) for item in items):
            values = tuple(item.value for item in items if isinstance(item, Literal))
            return name, FieldCondition(field, "in", values)
    return None
