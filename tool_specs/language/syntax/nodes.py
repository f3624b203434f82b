"""The nodes of an expression's tree."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Node:
    position: int = field(compare=False, repr=False, kw_only=True, default=0)
    """Offset in the text, for messages; two trees are equal whatever it is."""


@dataclass(frozen=True, slots=True)
class Literal(Node):
    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Name(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Access(Node):
    base: Node
    field: str


@dataclass(frozen=True, slots=True)
class Call(Node):
    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ListOf(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Each(Node):
    """`[item for name in source if condition]`: a list made of another, in one pass."""

    item: Node
    name: str
    source: Node
    condition: Node | None


@dataclass(frozen=True, slots=True)
class Record(Node):
    """`{name: value, ...}`."""

    names: tuple[str, ...]
    values: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    operator: str
    left: Node
    right: Node
