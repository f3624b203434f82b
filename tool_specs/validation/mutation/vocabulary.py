"""What a tool of a domain names, and what it could have named instead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tool_specs.language.domain_file import DomainFile, ParamSpec, ToolSpec
from tool_specs.language.expressions import parse
from tool_specs.language.statements import Let
from tool_specs.language.syntax.nodes import Access, Call, Each, Literal, Name, Node


@dataclass(frozen=True)
class Vocabulary:
    """What a tool of a domain names, and what it could have named instead."""

    file: DomainFile
    params: Mapping[str, ParamSpec]
    entities: Mapping[str, str]
    """Name -> entity of the row, or the rows, that it holds: bindings, and candidates of reads."""
    members: Mapping[str, tuple[str, ...]]
    """Member of an enum -> the others of the enums that have it."""

    lets: Mapping[str, Node]
    """Name -> what it was computed by."""

    @classmethod
    def of(cls, spec: ToolSpec, file: DomainFile, bound: Mapping[str, str]) -> "Vocabulary":
        members: dict[str, dict[str, None]] = {}
        enums = [f.values for entity in file.entities.values() for f in entity.fields.values()]
        for values in (*enums, *(p.values for p in spec.params.values())):
            for value in values:
                members.setdefault(value, {}).update(dict.fromkeys(v for v in values if v != value))
        entities = {name: name for name in file.entities} | dict(bound)
        others = {name: tuple(found) for name, found in members.items()}
        lets = {s.bind: parse(s.be) for s in spec.semantics if isinstance(s, Let)}
        return cls(file, spec.params, entities, others, lets)

    def within(self, above: Sequence[Node]) -> "Vocabulary":
        """With the elements of the loops over a place, the nearest first."""
        known = self
        for loop in reversed(above):
            if isinstance(loop, Each) and (entity := known.entity(loop.source)):
                known = replace(known, entities={**known.entities, loop.name: entity})
        return known

    def entity(self, base: Node) -> str | None:
        """Of the row that the expression stands for, where its form tells."""
        match base:
            case Name(name=name):
                return self.entities.get(name)
            case Call(function="lookup", arguments=(Literal(value=str(name)), *_)):
                return name if name in self.file.entities else None
            case Access(base=inner, field=field):
                fields = self.file.entities[own].fields if (own := self.entity(inner)) else {}
                step = fields.get(field) or fields.get(f"{field}_id")
                return step.to if step is not None else None
        return None

    def kind(self, node: Node) -> str | None:
        """Type of the field or parameter that the expression reads, or of a day that it computes,
        where its form tells."""
        match node:
            case Name(name=name) if name in self.lets:
                return self.kind(self.lets[name])
            case Call(function="coalesce", arguments=items):
                kinds = set(map(self.kind, items))
                return kinds.pop() if len(kinds) == 1 else None
            case Call(function="add_days", arguments=(first, *_)):
                return self.kind(first)
            case Call(function="date"):
                return "date"
        if not isinstance(node, Access):
            return None
        if (given := self.given(node)) is not None:
            return given.type
        entity = self.entity(node.base)
        found = self.file.entities[entity].fields.get(node.field) if entity else None
        return found.type if found is not None else None

    def given(self, node: Node) -> ParamSpec | None:
        """The parameter, or the member of one, that the expression reads."""
        match node:
            case Access(base=Name(name="args"), field=field):
                return self.params.get(field)
            case Access(base=base, field=field) if (own := self.given(base)) is not None:
                return (own.properties or {}).get(field)
        return None

    def bounds(self, node: Node) -> tuple[float | None, float | None]:
        """The least and the largest value of the field or parameter that the expression reads, and
        of a count; None where there is no bound."""
        if isinstance(node, Call) and node.function == "count":
            return 0, None
        if not isinstance(node, Access):
            return None, None
        if node.base == Name("args"):
            found = self.params.get(node.field)
        else:
            entity = self.entity(node.base)
            found = self.file.entities[entity].fields.get(node.field) if entity else None
        if found is None or found.type not in ("integer", "number"):
            return None, None
        return found.min, found.max

    def is_there(self, node: Node) -> bool:
        """Whether it is never null, as far as its form tells."""
        match node:
            case Literal(value=value):
                return value is not None
            case Call(function="count"):
                return True
            case Access(base=Name(name="args"), field=field):
                spec = self.params.get(field)
                return spec is not None and not (spec.optional and spec.default is None)
            case Access(base=Name() as base, field=field) if entity := self.entity(base):
                own = self.file.entities[entity].fields.get(field)
                return own is not None and not own.optional
        return False

    def others(self, node: Access) -> tuple[str, ...]:
        """Names of the same kind that could stand in its place."""
        if node.base == Name("args"):
            own = self.params.get(node.field)
            kinds = {name: (p.type, p.ref, p.values) for name, p in self.params.items()}
        else:
            entity = self.entity(node.base)
            fields = self.file.entities[entity].fields if entity else {}
            own = fields.get(node.field)
            kinds = {name: (f.type, f.to, f.values) for name, f in fields.items()}
        if own is None:
            return ()
        return tuple(n for n in kinds if n != node.field and kinds[n] == kinds[node.field])
