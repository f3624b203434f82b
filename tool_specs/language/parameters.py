"""How a tool's semantics use its parameters: what good values are, and what nothing reads.

`bike.kind == args.kind` says that kinds of existing bikes are worth asking for, and
`set: {note: args.note}` that the text becomes the note of a row. Read off the syntax trees once
per program; drawing arguments and wording tasks use it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tool_specs.language.domain_file import ParamSpec, ToolSpec
from tool_specs.language.expressions import children_of, terms
from tool_specs.language.statements import Create, ForEach, Let, Link, Read, Statement, Update
from tool_specs.language.syntax.nodes import (
    Access,
    Binary,
    Call,
    Each,
    ListOf,
    Literal,
    Name,
    Node,
    Unary,
)

Path = tuple[str, ...]
"""Of a parameter: ("extras", "items", "amount") is the amount of each element of extras."""


class Hint(NamedTuple):
    path: Path
    entity: str
    field: str
    relation: str
    """The sign between them (==, in, contains, starts_with, <, <=, >, >=, !=), or `set` where the
    value is stored in the field."""


class Hints(NamedTuple):
    fields: tuple[Hint, ...]
    cursors: frozenset[str]
    """Parameters that hold the cursor of an earlier page: nothing to draw."""
    unused: frozenset[Path]
    """Parameters whose value no row may have yet, by a precondition: names to be given."""


PlacedNode = tuple[int, str, Node]
"""(statement index, where in the statement, tree)."""

_LOOKED_THROUGH = frozenset({"coalesce", "date", "lower", "upper", "title", "trim"})
"""Functions whose first argument is what is compared: `lower(row.name) == lower(args.name)`."""

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def hints_of(
    statements: Sequence[Statement],
    nodes: Sequence[PlacedNode],
    entities: Mapping[str, str],
    keys: Mapping[str, str],
) -> Hints:
    """Every pairing of a parameter with a field, in the order of the semantics.

    `entities` says which entity's rows a binding holds, `keys` the key field of each entity.
    """
    found: list[Hint] = []
    cursors: set[str] = set()
    unused: set[Path] = set()
    absent = _absent(nodes)
    for statement, where, tree, paths in _with_paths(statements, nodes):
        if where == "where" and isinstance(statement, Read):
            scope = {**entities, statement.entity: statement.entity}
        else:
            scope = entities
        if where == "cursor" and (path := path_of(tree, paths)):
            cursors.add(path[0])
        if where == "key" and isinstance(statement, Read) and (path := path_of(tree, paths)):
            found.append(Hint(path, statement.entity, keys[statement.entity], "=="))
        if (stored := _stored(statement, where, entities)) and (path := path_of(tree, paths)):
            found.append(Hint(path, *stored, "set"))
        pairings = [
            hint
            for node, known in _with_elements(tree, paths)
            if isinstance(node, Binary)
            for hint in _pairings(node, known, scope)
        ]
        found += pairings
        if where == "where" and isinstance(statement, Read) and statement.bind in absent:
            unused.update(hint.path for hint in pairings if hint.relation == "==")
        for condition, scoped in _absent_elements(tree, entities) if where == "that" else ():
            own = [
                hint
                for node, known in _with_elements(condition, paths)
                if isinstance(node, Binary)
                for hint in _pairings(node, known, scoped)
            ]
            found += own
            unused.update(hint.path for hint in own if hint.relation == "==")
    return Hints(tuple(dict.fromkeys(found)), frozenset(cursors), frozenset(unused))


def _absent(nodes: Sequence[PlacedNode]) -> set[str]:
    """Names of reads of which a precondition requires that they find nothing."""
    found: set[str] = set()
    for _, where, tree in nodes:
        for term in terms(tree) if where == "that" else ():
            match term:
                case Unary(
                    operator="not", operand=Call(function="exists", arguments=(Name(name),))
                ):
                    found.add(name)
                case Binary(
                    operator="==",
                    left=Call(function="count", arguments=(Name(name),)),
                    right=Literal(value=0),
                ):
                    found.add(name)
    return found


def _absent_elements(
    tree: Node, entities: Mapping[str, str]
) -> Iterator[tuple[Node, Mapping[str, str]]]:
    """Conditions of lists of rows that a precondition requires to be empty, as in
    `not exists([t for t in tenders if t.title == args.title])`, with what names stand for there."""
    for term in terms(tree):
        match term:
            case Unary(
                operator="not",
                operand=Call(
                    function="exists",
                    arguments=(Each(name=name, source=Name(rows), condition=Node() as condition),),
                ),
            ) if rows in entities:
                yield condition, {**entities, name: entities[rows]}


def unread(spec: ToolSpec, nodes: Sequence[PlacedNode]) -> list[Path]:
    """Parameters, down to members of objects and of array elements, that no expression reads."""
    read: set[Path] = set()
    for statement, _, tree, paths in _with_paths(spec.semantics, nodes):
        if not (
            isinstance(statement, ForEach | Let) and path_of(tree, paths)
        ):  # what reads the name counts
            read.update(_reads(tree, paths))
    leaves = [leaf for name, param in spec.params.items() for leaf in _leaves((name,), param)]
    spelt = {_spelt_out(path, spec.params) for path in read}
    return [leaf for leaf in leaves if not any(leaf[: len(path)] == path for path in spelt)]


def _spelt_out(path: Path, params: Mapping[str, ParamSpec]) -> Path:
    """The path with `items` where it goes on from an array to a member: `args.parts.amount`."""
    found: list[str] = []
    members, elements = params, None
    for name in path:
        if elements is not None and name != "items":
            found.append("items")
            members, elements = elements.properties or {}, elements.items
        found.append(name)
        param = elements if name == "items" and elements is not None else members.get(name)
        members, elements = (param.properties or {}, param.items) if param else ({}, None)
    return tuple(found)


def _leaves(path: Path, param: ParamSpec) -> list[Path]:
    if param.items is not None:
        return _leaves((*path, "items"), param.items)
    if param.properties:
        return [leaf for n, p in param.properties.items() for leaf in _leaves((*path, n), p)]
    return [path]


def _reads(node: Node, paths: Mapping[str, Path]) -> set[Path]:
    """Paths that the expression reads, the longest that it spells out; () reads everything."""
    if isinstance(node, Name):
        return {paths[node.name]} if node.name in paths else set()
    if isinstance(node, Access) and (path := path_of(node, paths)):
        return {path}
    if isinstance(node, Each):  # what is read of the elements counts
        of_source = set() if path_of(node.source, paths) else _reads(node.source, paths)
        inner = _element_paths(node, paths)
        return of_source | {p for c in children_of(node)[1:] for p in _reads(c, inner)}
    return {path for child in children_of(node) for path in _reads(child, paths)}


def _with_paths(
    statements: Sequence[Statement], nodes: Sequence[PlacedNode]
) -> Iterator[tuple[Statement, str, Node, Mapping[str, Path]]]:
    """(statement, where, tree, parameter that each name stands for), in order."""
    paths: dict[str, Path] = {"args": ()}
    for index, where, tree in nodes:
        statement = statements[index]
        if isinstance(statement, ForEach) and (over := path_of(tree, paths)):
            paths[statement.bind] = (*over, "items")
        if isinstance(statement, Let) and (path := path_of(tree, paths)):
            paths[statement.bind] = path
        yield statement, where, tree, paths


def _with_elements(
    node: Node, paths: Mapping[str, Path]
) -> Iterator[tuple[Node, Mapping[str, Path]]]:
    """The nodes of a tree, each with the parameter that each name stands for there."""
    yield node, paths
    own = _element_paths(node, paths) if isinstance(node, Each) else paths
    for place, child in enumerate(children_of(node)):
        yield from _with_elements(child, own if place else paths)  # the source stands first


def _element_paths(each: Each, paths: Mapping[str, Path]) -> Mapping[str, Path]:
    source = path_of(each.source, paths)
    return {**paths, each.name: (*source, "items")} if source else paths


def _stored(
    statement: Statement, where: str, entities: Mapping[str, str]
) -> tuple[str, str] | None:
    """(entity, field) that an expression of a `set`, or of a link, is stored in."""
    field = where.removeprefix("set.")
    if isinstance(statement, Create) and field != where:
        return statement.entity, field
    if isinstance(statement, Update) and field != where and statement.target in entities:
        return entities[statement.target], field
    if isinstance(statement, Link) and where == "to" and statement.target in entities:
        return entities[statement.target], statement.field
    return None


def _pairings(node: Binary, paths: Mapping[str, Path], scope: Mapping[str, str]) -> list[Hint]:
    if node.operator in ("and", "or", "+", "-", "*", "/"):
        return []
    pairs = []
    for mine, other, relation in (
        (node.left, node.right, _MIRRORED.get(node.operator, node.operator)),
        (node.right, node.left, node.operator),
    ):
        # the sign as it stands with the field on the left: `field >= args.x`
        path, field = path_of(mine, paths), _field(other, scope)
        if path and field:
            pairs.append(Hint(path, *field, relation))
    return pairs


def path_of(node: Node, paths: Mapping[str, Path]) -> Path:
    """The parameter that the expression stands for, empty if none; looks through coalesce and what
    leaves the letters of a text."""
    match node:
        case Name(name=name):
            return paths.get(name, ())
        case Access(base=Name(name=name), field=field) if name in paths:
            return (*paths[name], field)
        case Access(base=Access() as base, field=field) if inner := path_of(base, paths):
            return (*inner, field)
        case Call(function=function, arguments=(first, *_)) if function in _LOOKED_THROUGH:
            return path_of(first, paths)
        case ListOf(items=(only,)):
            return path_of(only, paths)
    return ()


def _field(node: Node, scope: Mapping[str, str]) -> tuple[str, str] | None:
    """(entity, field) that the expression reads; looks through date(), and through lower() and the
    like."""
    match node:
        case Access(base=Name(name=name), field=field) if name in scope:
            return scope[name], field
        case Access(base=Call(function="lookup", arguments=(Literal(value=str(entity)), _))):
            return entity, node.field
        case Call(function=function, arguments=(inner,)) if function in _LOOKED_THROUGH:
            return _field(inner, scope)
    return None
