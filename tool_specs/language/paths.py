"""Reference paths: `ticket.showing.film.title` goes from row to row along references.

The rule, by the type of what stands before a dot and the name after it:

1. A field of that name is that field, always.
2. Otherwise the name may be that of a reference without its ending `_id`: of a ticket with the
   field `showing_id` (a ref to showing), `ticket.showing` is the row of that showing.
3. After an id itself, such as `pet.owner` where `owner` is a ref, the dot goes on to its row.

So a path means what the same `lookup` means, and `expanded` writes it as that, for whoever reads
semantics without compiling them. The rows of a list, and the ids of one, are followed one by one.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tool_specs.language.expressions import children_of, rebuilt
from tool_specs.language.syntax.nodes import Access, Call, Each, Literal, Name, Node
from tool_specs.language.types import ANY, Type, list_of

TypeOf = Callable[[str], Type | None]
"""The type of a name that is bound, None for one that is not."""


def referred(type_: Type) -> str | None:
    """The entity whose rows the ids of this type, one or a list of them, point at."""
    inner = type_.of if type_.kind == "list" else type_
    return inner.entity if inner is not None and inner.kind == "ref" else None


def reference(type_: Type, name: str) -> str | None:
    """The ref field that a name without its `_id` stands for, where there is no field `name`."""
    inner = type_.of if type_.kind == "list" else type_
    fields = inner.fields if inner is not None else None
    if fields is None or name in fields:
        return None
    found = fields.get(f"{name}_id")
    return f"{name}_id" if found is not None and referred(found) else None


def references(type_: Type) -> list[str]:
    """The names that `reference` knows of a type, for messages."""
    inner = type_.of if type_.kind == "list" else type_
    names = [n.removesuffix("_id") for n in (inner.fields if inner and inner.fields else ())]
    return [name for name in names if reference(type_, name)]


class TypedNode(NamedTuple):
    node: Node
    type: Type
    """As far as paths ask: `any` for what is no name, field, row or list of rows."""


def expanded(node: Node, type_of: TypeOf, entities: Mapping[str, Type]) -> TypedNode:
    """The tree with each step of a path as the lookup that it means."""
    match node:
        case Name(name=name):
            return TypedNode(node, type_of(name) or ANY)
        case Access(base=base, field=field):
            return _stepped(expanded(base, type_of, entities), field, node, entities)
        case Each():
            return _each(node, type_of, entities)
    parts = [expanded(child, type_of, entities) for child in children_of(node)]
    whole = rebuilt(node, [part.node for part in parts])
    match node:
        case Call(function="lookup", arguments=(Literal(value=str(entity)), _)):
            row = entities.get(entity, ANY)
            return TypedNode(whole, list_of(row) if parts[1].type.kind == "list" else row)
        case Call(function="first"):
            return TypedNode(whole, parts[0].type.of or ANY)
        case Call(function="coalesce" | "distinct"):
            return TypedNode(whole, parts[0].type)
        case Call(function="if"):
            return TypedNode(whole, parts[1].type)
    return TypedNode(whole, ANY)


def _each(node: Each, type_of: TypeOf, entities: Mapping[str, Type]) -> TypedNode:
    source = expanded(node.source, type_of, entities)
    element = source.type.of if source.type.kind == "list" else source.type

    def inside(name: str) -> Type | None:
        return element if name == node.name else type_of(name)

    parts = [expanded(child, inside, entities) for child in children_of(node)[1:]]
    whole = rebuilt(node, [source.node, *(part.node for part in parts)])
    return TypedNode(whole, list_of(parts[0].type))


def _stepped(base: TypedNode, field: str, node: Access, entities: Mapping[str, Type]) -> TypedNode:
    """One dot further."""
    if entity := referred(base.type):
        return _stepped(_rows(entity, base, node, entities), field, node, entities)
    if name := reference(base.type, field):
        key = _field(base, name, node)
        return _rows(referred(key.type) or "", key, node, entities)
    return _field(base, field, node)


def _rows(entity: str, key: TypedNode, node: Node, entities: Mapping[str, Type]) -> TypedNode:
    found = Call("lookup", (Literal(entity), key.node), position=node.position)
    row = entities.get(entity, ANY)
    return TypedNode(found, list_of(row) if key.type.kind == "list" else row)


def _field(base: TypedNode, name: str, node: Access) -> TypedNode:
    """A field as it is; the same tree where nothing in it changed."""
    inner = base.type.of if base.type.kind == "list" else base.type
    type_ = ((inner.fields if inner is not None else None) or {}).get(name, ANY)
    same = base.node is node.base and name == node.field
    return TypedNode(
        node if same else Access(base.node, name, position=node.position),
        list_of(type_) if base.type.kind == "list" else type_,
    )
