"""What a tool does, with its names taken away: to count how many kinds of tools there are.

`skeleton_of` replaces entities, fields, parameters and bindings by their types, so that two
skeletons differ only where parameters, preconditions, effects or outputs have another shape.
`semantics_key` keeps entities and fields, and leaves out only what a tool's author is free to
word: two tools of one domain with the same key do the same thing.
"""

from collections.abc import Mapping
from typing import Any

from records.digest import digest
from tool_specs.execution.programs import args_type
from tool_specs.language.domain_file import DomainFile, ParamSpec, ToolSpec
from tool_specs.language.expressions import children_of, parse, show, terms
from tool_specs.language.paths import TypedNode, expanded
from tool_specs.language.statements import (
    AnyStatement,
    Create,
    Delete,
    ForEach,
    Let,
    Link,
    Read,
    Require,
    Return,
    Update,
    When,
    expression_text,
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
from tool_specs.language.types import ANY, BOOLEAN, Type


def skeleton_of(file: DomainFile, spec: ToolSpec) -> str:
    """Digest of the tool's shape, the same for any domain that has the same shape."""
    return digest("skeleton", _Shape(file, spec, named=False).shape())


def semantics_key(file: DomainFile, spec: ToolSpec) -> str:
    """Digest of what the tool does in its domain, however it is called and worded."""
    return digest("semantics", _Shape(file, spec, named=True).shape())


class _Shape:
    def __init__(self, file: DomainFile, spec: ToolSpec, *, named: bool) -> None:
        self.file, self.spec, self.named = file, spec, named
        self.entities: dict[str, str] = {}
        """Entity -> E0, E1, ... in the order of their first use."""
        self.bound: dict[str, tuple[str, str | None]] = {}
        """Binding -> (its word, entity of its rows)."""
        self.rows_of = {name: entity.as_type(name) for name, entity in file.entities.items()}
        self.types = {"args": args_type(spec)}
        """What the names stand for, as far as reference paths ask; rows and lists of them alike."""
        self.params: dict[str, int] = {}
        """Parameter -> its place in the order of first use."""

    def shape(self) -> Any:
        semantics = [self.statement(statement) for statement in self.spec.semantics]
        order = sorted(self.spec.params, key=lambda name: (self.params.get(name, 99), name))
        params = [self.param(self.spec.params[name]) for name in order]
        return [params if self.named else sorted(params, key=repr), semantics]

    def param(self, spec: ParamSpec) -> Any:
        own = [spec.type, spec.optional, spec.default is not None, self.entity(spec.ref)]
        if self.named:
            own += [list(spec.values), spec.min, spec.max]
        if spec.items is not None:
            return [*own, self.param(spec.items)]
        members = [self.param(p) for p in (spec.properties or {}).values()]
        return [*own, sorted(members, key=repr)]

    def entity(self, name: str | None) -> str | None:
        if name is None or self.named:
            return name
        return self.entities.setdefault(name, f"E{len(self.entities)}")

    def field(self, entity: str | None, name: str) -> str:
        if self.named or entity is None:
            return name if self.named else "member"
        spec = self.file.entities[entity]
        if name == spec.key:
            return "key"
        found = spec.fields.get(name)
        if found is None:
            return "member"
        role = "status" if name == spec.lifecycle_field else found.type
        return f"{role} of {found.of}" if found.type == "list" else role

    def bind(self, name: str | None, type_: Type) -> None:
        if name is not None:
            row = type_.of if type_.kind == "list" and type_.of is not None else type_
            entity = row.entity if row.kind == "row" else None
            self.bound[name], self.types[name] = (f"b{len(self.bound)}", entity), row

    def statement(self, s: AnyStatement) -> Any:
        inside = None if s.inside is None else self.bound.get(s.inside, ("?",))[0]
        return [s.op, inside, *self.parts(s)]

    def parts(self, s: AnyStatement) -> list[Any]:
        match s:
            case Read():
                return self.read(s)
            case Require():
                return [self.text(s.that)]
            case Create():
                made = [self.entity(s.entity), self.sets(s.entity, s.set)]
                self.bind(s.bind, self.rows_of[s.entity])
                return made
            case Update():
                return [self.name(s.target), self.sets(self.rows(s.target), s.set)]
            case Delete():
                return [self.name(s.target)]
            case Link():
                field = self.field(self.rows(s.target), s.field)
                return [self.name(s.target), field, self.text(s.to)]
            case ForEach():
                over = self.expanded(s.over)
                shown = self.node(over.node)
                self.bind(s.bind, over.type)
                return [shown]
            case Let():
                value = self.expanded(s.be)
                shown = self.node(value.node)
                self.bind(s.bind, value.type)
                return [shown]
            case When():
                shown = self.text(s.that)
                self.bind(s.bind, BOOLEAN)
                return [shown]
            case Return():
                return [self.returned(s.value)]

    def read(self, s: Read) -> list[Any]:
        entity = self.entity(s.entity)
        outer = self.bound, self.types
        self.bound = {**self.bound, s.entity: (f"row of {entity}", s.entity)}
        self.types = {**self.types, s.entity: self.rows_of[s.entity]}
        parts = terms(self.expanded(s.where).node) if s.where else []
        where = sorted(repr(self.node(t)) for t in parts) if s.where else None
        self.bound, self.types = outer
        order = [
            ("-" if o.startswith("-") else "") + self.field(s.entity, o.removeprefix("-"))
            for o in s.order_by
        ]
        paging = [self.text(e) if e is not None else None for e in (s.key, s.limit, s.cursor)]
        self.bind(s.bind, self.rows_of[s.entity])
        self.bind(f"{s.bind}_next" if s.key is None else None, ANY)
        return [entity, where, order, paging]

    def sets(self, entity: str | None, values: Mapping[str, str]) -> list[Any]:
        found = [[self.field(entity, name), self.text(text)] for name, text in values.items()]
        return sorted(found, key=repr)

    def returned(self, value: Any) -> Any:
        if isinstance(value, dict):
            return sorted((self.returned(member) for member in value.values()), key=repr)
        return self.text(expression_text(value))

    def text(self, text: str) -> Any:
        return self.node(self.expanded(text).node)

    def expanded(self, text: str) -> TypedNode:
        """A path and the lookup that it means have one shape."""
        return expanded(parse(text), self.types.get, self.rows_of)

    def name(self, name: str) -> str:
        return self.bound[name][0] if name in self.bound else "?"

    def rows(self, name: str) -> str | None:
        return self.bound[name][1] if name in self.bound else None

    def node(self, node: Node) -> Any:
        match node:
            case Literal(value=value):
                return self.literal(value)
            case Name(name=name):
                return self.name(name) if name != "args" else "args"
            case Access(base=Name(name="args"), field=field):
                return self.argument(field)
            case Access(base=base, field=field):
                return [self.node(base), self.field(self.entity_of(base), field)]
            case Call(function="lookup", arguments=(Literal(value=str(entity)), key)):
                return ["lookup", self.entity(entity), self.node(key)]
            case Call(function=function, arguments=arguments):
                return [function, *(self.node(argument) for argument in arguments)]
            case ListOf(items=items):
                return ["list", *(self.node(item) for item in items)]
            case Each(name=name):
                return self.each(node, name)
            case Record(names=names, values=values):
                members = zip(names, values, strict=True)
                shown = [[name if self.named else "member", self.node(v)] for name, v in members]
                return ["record", *sorted(shown, key=repr)]
            case Unary(operator=operator, operand=operand):
                return [operator, self.node(operand)]
            case Binary(operator=operator, left=left, right=right):
                return [operator, self.node(left), self.node(right)]
        raise TypeError(f"no expression: {node!r}")

    def each(self, node: Each, name: str) -> Any:
        source = self.expanded(show(node.source))
        outer = self.bound, self.types
        self.bound, self.types = dict(self.bound), dict(self.types)
        self.bind(name, source.type.of or ANY if source.type.kind == "list" else source.type)
        parts = [self.node(child) for child in children_of(node)[1:]]
        self.bound, self.types = outer
        return ["each", self.node(source.node), *parts]

    def literal(self, value: Any) -> Any:
        if self.named or value is None or isinstance(value, bool):
            return ["literal", value]
        return "text" if isinstance(value, str) else "number"

    def argument(self, name: str) -> Any:
        place = self.params.setdefault(name, len(self.params))
        param = self.spec.params.get(name)
        return ["arg", place if self.named else (param.type if param else "?")]

    def entity_of(self, base: Node) -> str | None:
        match base:
            case Name(name=name):
                return self.rows(name)
            case Call(function="lookup", arguments=(Literal(value=str(entity)), _)):
                return entity if entity in self.file.entities else None
        return None
