"""A generic walk over expression trees: every place of a tree, and the tree with one replaced.

Nothing here names a class of node. Children are the fields of the dataclass that hold nodes, or
tuples of nodes, so that a form that the grammar learns later is walked like the others.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import lru_cache
from typing import NamedTuple

from tool_specs.language.syntax.nodes import Node

TreeStep = tuple[str, int | None]
"""A field, and the place in it where it holds several nodes."""

TreePath = tuple[TreeStep, ...]


class Site(NamedTuple):
    """One node where it stands."""

    path: TreePath
    node: Node
    above: tuple[Node, ...]
    """The nodes over it, the nearest first."""


@lru_cache(maxsize=64)
def _field_names(kind: type[Node]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name != "position")


def steps_of(node: Node) -> Iterator[tuple[TreeStep, Node]]:
    """The children, each with the step that leads to it."""
    for name in _field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield (name, None), value
        elif isinstance(value, tuple):
            yield from (((name, i), v) for i, v in enumerate(value) if isinstance(v, Node))


def sites_of(tree: Node) -> Iterator[Site]:
    """Every node, parents first."""
    waiting: list[Site] = [Site((), tree, ())]
    while waiting:
        site = waiting.pop()
        yield site
        below = [
            Site((*site.path, step), child, (site.node, *site.above))
            for step, child in steps_of(site.node)
        ]
        waiting += reversed(below)


def with_node(tree: Node, path: TreePath, new: Node) -> Node:
    """The tree with `new` where `path` leads."""
    if not path:
        return new
    (name, place), rest = path[0], path[1:]
    value = getattr(tree, name)
    if place is None:
        return replace(tree, **{name: with_node(value, rest, new)})
    items = list(value)
    items[place] = with_node(items[place], rest, new)
    return replace(tree, **{name: tuple(items)})
