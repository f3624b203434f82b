"""What the expressions of one statement name: rows, values that may be changed, and what a `let`
computed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
    parse,
)
from tool_specs.language.statements import Create, Let, Read
from tool_specs.validation.mutation.trees import Site, sites_of, with_node
from tool_specs.validation.states.measuring import ValueProbe, flat

CANDIDATE = "candidate_row"
"""Name of the row that a filter looks at; the entity's own may be that of another row."""

_SETTLED_WRITINGS = frozenset({"lower", "upper", "title", "trim"})
"""Functions that leave what they made as it is: the text that the other side asks for is one."""


class NamedValue(NamedTuple):
    """A value that may be changed: a field of a row, or an argument (no entity)."""

    entity: str
    key: Node | None
    """Expression for the key of the row."""
    field: str
    spec: FieldSpec | ParamSpec


class Around:
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

    def leaf(self, node: Node, above: Sequence[Node]) -> NamedValue | None:
        """Of the expression, where it reads one value as it stands."""
        match node:
            case Call(function=function, arguments=(inner,)) if function in _SETTLED_WRITINGS:
                return self.leaf(inner, above)
            case Access(base=Name(name="args"), field=field) if field in self.program.spec.params:
                return NamedValue("", None, field, self.program.spec.params[field])
            case Access(base=base, field=field):
                owner = self.entity(base) or self._of_element(base, above)
                spec = self.domain.entities.get(owner) if owner is not None else None
                if owner is not None and spec is not None and field in spec.fields:
                    return NamedValue(owner, Access(base, spec.key), field, spec.fields[field])
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


def with_candidate(tree: Node, entity: str) -> Node:
    """A filter whose candidate has a name of its own: the entity's may be that of another row."""
    for site in sites_of(tree):
        if site.node == Name(entity):
            tree = with_node(tree, site.path, Name(CANDIDATE))
    return tree


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
