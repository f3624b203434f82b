"""What a tool gives and what it asks for, read off its row: the ends of the dependency graph.

Ids live in one system, values travel. An id type is local to a domain or server: for a synthetic
tool it is an entity, typed by the references in its semantics; for an MCP tool it is the noun of
its name, of a parameter, or of a field of its output schema where it states one (see `nouns`). A
value type (a city, a ticker) is a text with a name and joins tools of different sources.
What an answer merely repeats of the arguments is not given.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from records.tables.schemas import Row
from tool_specs.language.expressions import parse, walk
from tool_specs.language.parameters import Path, hints_of, path_of
from tool_specs.language.paths import TypedNode, expanded
from tool_specs.language.statements import (
    AnyStatement,
    Create,
    ForEach,
    Let,
    Link,
    Read,
    Require,
    Return,
    Statement,
    Update,
    When,
)
from tool_specs.language.syntax.nodes import Access, Call, Each, Literal, Name, Node, Record
from tool_specs.language.syntax.tokens import ExpressionError
from tool_specs.language.types import ANY, Type
from tool_specs.toolsets.nouns import (
    AskedNoun,
    asked_by,
    generic,
    heads,
    phrase,
    subject_of,
    words_of,
)

_MAX_DEPTH = 4
"""Objects inside objects that io types are looked for in."""

_Statements = TypeAdapter(list[AnyStatement])
_parsed = lru_cache(maxsize=50_000)(parse)


class IoType(NamedTuple):
    source: str
    """Key of the domain or server whose id it is; empty for a value, which is at home anywhere."""
    name: str


class IoTypes(NamedTuple):
    gives: frozenset[IoType]
    needs: frozenset[IoType]
    """Of required parameters."""
    takes: frozenset[IoType]
    """Of optional ones."""


def source_of(tool: Row) -> str:
    """Key of the domain or server that a tool belongs to."""
    return f"server:{tool['server']}" if tool["server"] else tool["domain_id"] or ""


def io_types_of(tool: Row, entities: Mapping[str, Any] | None) -> IoTypes:
    """`entities` of the tool's domain, as in the table `domains`; None for an MCP tool."""
    if tool["semantics_json"] and entities:
        return _Semantics(tool, entities).io_types()
    return _by_names(tool)


def scalar_of(schema: Any) -> str | None:
    """text or number where a JSON schema takes such values, or arrays of them. None otherwise; a
    choice of fixed words, too, means something to its own tool alone."""
    if not isinstance(schema, Mapping) or "enum" in schema or "const" in schema:
        return None
    types = schema.get("type")
    name = next((t for t in types if t != "null"), None) if isinstance(types, list) else types
    if name == "array":
        return scalar_of(schema.get("items"))
    if name in ("integer", "number"):
        return "number"
    dated = "format" in schema or "T" in schema.get("pattern", "")
    return "text" if name == "string" and not dated else None


def _leaves(schema: Any, path: Path = ()) -> Iterator[tuple[Path, Any, bool]]:
    """(path, schema, required) of the members of an object, down to those that hold no others."""
    if not isinstance(schema, Mapping) or len(path) > _MAX_DEPTH:
        return
    members, required = schema.get("properties"), schema.get("required")
    for name, member in members.items() if isinstance(members, Mapping) else ():
        own = (*path, name)
        needed = isinstance(required, list) and name in required
        below = member
        if isinstance(member, Mapping) and isinstance(member.get("items"), Mapping):
            below, own = member["items"], (*own, "items")
        inner = list(_leaves(below, own))
        if inner:
            yield from ((p, s, r and needed) for p, s, r in inner)
        else:
            yield own, member, needed


def _by_names(tool: Row) -> IoTypes:
    """For tools that state no semantics: MCP tools, and synthetic ones that a model imagines."""
    source = source_of(tool)
    subject = subject_of(tool["name"], tool["server"] or "")
    needs, takes, gives = set[IoType](), set[IoType](), set[IoType]()
    for path, schema, required in _leaves(tool["input_schema"]):
        asked = asked_by(_last(path), "" if subject.makes else subject.noun)
        (needs if required else takes).update(_named(source, asked, scalar_of(schema)))
    if subject.gives and subject.noun:
        gives |= {IoType(source, noun) for noun in heads(subject.noun)}
        gives.add(IoType("", subject.noun))
    for path, schema, _ in _leaves(tool["output_schema"]):
        above = phrase(words_of(_last(path[:-1])) if len(path) > 1 else ())
        asked = asked_by(_last(path), above or subject.noun)
        gives.update(_named(source, asked, scalar_of(schema)))
    return IoTypes(frozenset(gives - needs), frozenset(needs), frozenset(takes - needs))


def _named(source: str, asked: AskedNoun, scalar: str | None) -> Iterator[IoType]:
    if scalar and asked.noun:
        yield IoType(source, asked.noun)
        if scalar == "text" and not asked.is_id:
            yield IoType("", asked.noun)


def _last(path: Path) -> str:
    """The name that a path ends in; the elements of a list go by the list's."""
    return next((name for name in reversed(path) if name != "items"), "")


def _texts(statement: Statement) -> Iterator[tuple[str, str]]:
    """(where, expression) of what may pair a parameter with an entity."""
    match statement:
        case Read(key=str(key)):
            yield "key", key
        case Read(where=str(where)):
            yield "where", where
        case Require(that=that):
            yield "that", that
        case Create(set=sets) | Update(set=sets):
            yield from ((f"set.{field}", text) for field, text in sets.items())
        case Link(to=to):
            yield "to", to
        case ForEach(over=over):
            yield "over", over
        case Let(be=be):
            yield "be", be
        case When(that=that):
            yield "that", that


class _Semantics:
    """The io types of one tool with semantics, where references are typed."""

    def __init__(self, tool: Row, entities: Mapping[str, Any]) -> None:
        self.tool, self.entities = tool, entities
        self.source = source_of(tool)
        self.statements: Sequence[Statement] = _Statements.validate_python(tool["semantics_json"])
        self.bound: dict[str, str] = {}
        """Entity whose rows a name stands for."""
        self.made: set[Node] = set()
        """Names of rows that the tool creates, one or a list of them."""
        self.new = set[IoType]()
        """Ids of those: no repetition, though an id of the same entity was asked for."""
        self.types = {"args": _args_type(tool.get("params") or {})}
        self.rows = {name: _row_type(name, spec) for name, spec in entities.items()}
        """What names stand for, and the rows of each entity, as far as reference paths ask."""
        self.named: dict[str, Node] = {}
        """What a `let` gave names to."""

    def io_types(self) -> IoTypes:
        placed = list(self.placed())
        keys = {name: entity["key"] for name, entity in self.entities.items()}
        asked: dict[Path, str] = {}
        for hint in hints_of(self.statements, placed, self.bound, keys).fields:
            if (entity := self.refers(hint.entity, hint.field)) and hint.relation in _MEANING:
                asked.setdefault(hint.path, entity)
        asked |= {path: entity for path, entity in self.looked_up(placed) if path not in asked}
        needs, takes = set[IoType](), set[IoType]()
        for path, schema, required in _leaves(self.tool["input_schema"]):
            io_types = needs if required else takes
            entity = asked.get(path) or asked.get(path[:-1] if path[-1] == "items" else path)
            if entity:
                io_types.add(IoType(self.source, entity))
            elif scalar_of(schema) == "text":
                io_types |= value_types(_last(path))
        given = self.given() - needs  # fills `new`
        return IoTypes(frozenset(given | self.new), frozenset(needs), frozenset(takes - needs))

    def placed(self) -> Iterator[tuple[int, str, Node]]:
        """Trees of what may pair a parameter with a field, and what names stand for on the way."""
        given = ["args"]
        for index, statement in enumerate(self.statements):
            if isinstance(statement, Read | Create) and statement.bind:
                self.stands_for(statement.bind, self.rows.get(statement.entity, ANY))
                if isinstance(statement, Create):
                    self.made |= {Name(statement.bind), Call("first", (Name(statement.bind),))}
            if isinstance(statement, ForEach):
                given.append(statement.bind)
                self.stands_for(statement.bind, self.typed(statement.over).type)
            if isinstance(statement, Let):
                given.append(statement.bind)
                self.named[statement.bind], type_ = self.typed(statement.be)
                self.stands_for(statement.bind, type_)
            for where, text in _texts(statement):
                # most expressions name no parameter, and parsing them would be half of the work
                if any(name in text for name in given) and (tree := self.tree(text)) is not None:
                    yield index, where, tree

    def tree(self, text: str) -> Node | None:
        try:
            tree = _parsed(text)
        except ExpressionError:
            return None  # nothing that runs; a row of an older grammar
        return expanded(tree, self.type_of, self.rows).node if "." in text else tree

    def typed(self, text: str) -> TypedNode:
        tree = self.tree(text) or Literal(None)
        return expanded(tree, self.type_of, self.rows)

    def type_of(self, name: str) -> Type | None:
        """Of a name; a row that a `where` looks at stands under its entity's."""
        return self.types.get(name) or self.rows.get(name)

    def stands_for(self, name: str, type_: Type) -> None:
        row = type_.of if type_.kind == "list" and type_.of is not None else type_
        self.types[name] = row
        if row.kind == "row" and row.entity is not None:
            self.bound[name] = row.entity

    def looked_up(self, placed: list[tuple[int, str, Node]]) -> Iterator[tuple[Path, str]]:
        paths: dict[str, Path] = {"args": ()}
        for index, _, tree in placed:
            statement = self.statements[index]
            if isinstance(statement, ForEach) and (over := path_of(tree, paths)):
                paths[statement.bind] = (*over, "items")
            for node in walk(tree):
                match node:
                    case Call(function="lookup", arguments=(Literal(value=str(entity)), key)):
                        if path := path_of(key, paths):
                            yield path, entity

    def refers(self, entity: str, field: str) -> str | None:
        """The entity whose id the field holds: its own for the key."""
        spec = self.entities.get(entity)
        if spec is None:
            return None
        return entity if field == spec["key"] else (spec["fields"].get(field) or {}).get("to")

    def given(self) -> set[IoType]:
        last = self.statements[-1]
        return set(self.of_value(last.value)) if isinstance(last, Return) else set()

    def of_value(self, value: Any) -> Iterator[IoType]:
        if isinstance(value, Mapping):
            for member in value.values():
                yield from self.of_value(member)
        elif isinstance(value, str) and (tree := self.tree(value)) is not None:
            yield from self.of_tree(tree)

    def of_tree(self, tree: Node) -> Iterator[IoType]:
        """What the value of an expression holds: of rows, or of one of their fields."""
        match tree:
            case Name(name=name) if name in self.named and name not in self.bound:
                yield from self.of_tree(self.named[name])
            case Access(base=base, field=field) if entity := self.rows_of(base):
                if base in self.made and field == self.entities[entity]["key"]:
                    self.new.add(IoType(self.source, entity))
                yield from self.of_field(entity, field)
            case Call(function="pick", arguments=(rows, *fields)) if entity := self.rows_of(rows):
                for field in fields:
                    if isinstance(field, Literal):
                        yield from self.of_tree(Access(rows, str(field.value)))
            case Call(function="coalesce" | "distinct" | "tally" | "if", arguments=arguments):
                for argument in arguments:
                    yield from self.of_tree(argument)
            case Each(item=item, name=name, source=source):
                self.named[name] = source
                yield from self.of_tree(item)
            case Record(values=values):
                for value in values:
                    yield from self.of_tree(value)
            case _ if entity := self.rows_of(tree):
                for field in self.entities[entity]["fields"]:
                    yield from self.of_tree(Access(tree, field))

    def rows_of(self, tree: Node) -> str | None:
        """The entity whose row, or rows, an expression gives."""
        match tree:
            case Name(name=name) if name in self.bound:
                return self.bound[name]
            case Name(name=name) if name in self.named:
                return self.rows_of(self.named[name])
            case Call(function="lookup", arguments=(Literal(value=str(entity)), _)):
                return entity if entity in self.entities else None
            case Call(function="first", arguments=(rows,)):
                return self.rows_of(rows)
        return None

    def of_field(self, entity: str, field: str) -> Iterator[IoType]:
        if target := self.refers(entity, field):
            yield IoType(self.source, target)
            return
        spec = self.entities[entity]["fields"].get(field) or {}
        kind = spec.get("of", "string") if spec.get("type") == "list" else spec.get("type")
        if kind == "string":
            yield from value_types(field)


def _row_type(entity: str, spec: Mapping[str, Any]) -> Type:
    fields = {name: _ref_type(field.get("to")) for name, field in spec["fields"].items()}
    return Type("row", entity=entity, fields=fields)


@lru_cache(maxsize=1000)
def _ref_type(entity: str | None) -> Type:
    return Type("ref", entity=entity) if entity else ANY


def _args_type(params: Mapping[str, Any]) -> Type:
    fields = {name: _ref_type(param.get("ref")) for name, param in params.items()}
    return Type("object", fields=fields)


_MEANING = ("==", "in", "set")
"""Relations that make a parameter an id where the field is one."""


def value_types(name: str) -> set[IoType]:
    """The io type of a text that travels, none for names that mean something to their tool
    alone."""
    noun = phrase(words_of(name))
    return set() if generic(noun) else {IoType("", noun)}
