"""Statements of tool semantics as pydantic models: the data form that files and models write.

Expressions are kept as text here; `programs.py` parses and types them. A YAML number, boolean,
null or list in place of an expression is the literal it looks like.
"""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

NAME = r"^[a-z][a-z0-9_]{0,63}$"


class Spec(BaseModel):
    """Immutable and strict: a misspelt key is an error, not a lost setting."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


def expression_text(value: Any) -> Any:
    """YAML scalars and lists as expression text, so that `count: 0` need not be quoted."""
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{', '.join(str(expression_text(item)) for item in value)}]"
    return value


Expr = Annotated[str, BeforeValidator(expression_text)]
Identifier = Annotated[str, Field(pattern=NAME)]
ErrorCode = Annotated[str, Field(pattern=NAME)]


class Statement(Spec):
    inside: str | None = Field(default=None, alias="in")
    """Name of the for_each or when whose body this statement belongs to."""


class Read(Statement):
    """One row by `key`, or the rows for which `where` holds, in key order unless ordered."""

    op: Literal["read"]
    entity: str
    key: Expr | None = None
    where: Expr | None = None
    order_by: tuple[str, ...] = ()
    limit: Expr | None = None
    cursor: Expr | None = None
    bind: Identifier = Field(alias="as")
    error: ErrorCode = "not_found"
    message: str | None = None


class Require(Statement):
    op: Literal["require"]
    that: Expr
    error: ErrorCode
    message: str


class Create(Statement):
    op: Literal["create"]
    entity: str
    set: dict[str, Expr]
    bind: Identifier | None = Field(default=None, alias="as")


class Update(Statement):
    op: Literal["update"]
    target: str
    set: dict[str, Expr] = Field(min_length=1)


class Delete(Statement):
    op: Literal["delete"]
    target: str


class Link(Statement):
    """Add an id to a list field, once; `unlink` takes it out."""

    op: Literal["link", "unlink"]
    target: str
    field: str
    to: Expr


class ForEach(Statement):
    op: Literal["for_each"]
    over: Expr
    bind: Identifier = Field(alias="as")


class Let(Statement):
    """A name for a value, which is taken once, here: what follows may change what it was made of.
    A row stays the row, as updates leave it."""

    op: Literal["let"]
    bind: Identifier = Field(alias="as")
    be: Expr


class When(Statement):
    """The statements with its name in `in` run only if `that` holds; afterwards the name says
    whether it did, and what they bound is null if not."""

    op: Literal["when"]
    that: Expr
    bind: Identifier = Field(alias="as")


class Return(Statement):
    op: Literal["return"]
    value: Expr | dict[str, Any]
    """An expression, or an object of them, nested at most three deep."""


AnyStatement = Annotated[
    Read | Require | Create | Update | Delete | Link | ForEach | Let | When | Return,
    Field(discriminator="op"),
]

WRITING_OPS = frozenset({"create", "update", "delete", "link", "unlink"})


def body_of(
    block: ForEach | When, following: Sequence[tuple[int, AnyStatement]]
) -> Sequence[tuple[int, AnyStatement]]:
    """The (index, statement) pairs directly below that stand inside the block, or inside a block
    of its body."""
    names = {block.bind}
    for length, (_, statement) in enumerate(following):
        if statement.inside not in names:
            return following[:length]
        if isinstance(statement, ForEach | When):
            names.add(statement.bind)
    return following
