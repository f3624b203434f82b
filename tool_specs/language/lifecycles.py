"""How rows of an entity may live, as a domain file writes it: lifecycles and invariants.

Tools are written, by hand or by evolution, so that they keep to these. Nothing here runs.
"""

from typing import Annotated

from pydantic import Field, field_validator

from tool_specs.language.statements import ErrorCode, Expr, Identifier, Spec


class Need(Spec):
    """A precondition of a move beyond the status of its row."""

    that: Expr
    error: ErrorCode
    message: str = Field(min_length=5)


class Effect(Spec):
    """A change to the row that a ref field of the moved row points at."""

    ref: Identifier
    set: dict[Identifier, Expr] = Field(min_length=1)


class Move(Spec):
    """One step of a lifecycle, such as `check_in`: from some statuses to another."""

    name: Identifier
    text: str = Field(min_length=10)
    """One imperative sentence."""
    from_: tuple[str, ...] = Field(alias="from", min_length=1)
    to: str
    stamp: Identifier | None = None
    """Date or datetime field that takes the episode's clock."""
    takes: tuple[Identifier, ...] = ()
    """Fields that the caller gives with the move."""
    needs: tuple[Need, ...] = ()
    effects: tuple[Effect, ...] = ()


class Lifecycle(Spec):
    """Of a status field. A new row starts with the first value of the field's enum."""

    field: Identifier
    moves: Annotated[tuple[Move, ...], Field(min_length=1)]

    @field_validator("moves")
    @classmethod
    def _named_once(cls, moves: tuple[Move, ...]) -> tuple[Move, ...]:
        names = [move.name for move in moves]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"moves repeat {', '.join(twice)}")
        return moves


class Invariant(Spec):
    """What holds for every row of an entity, always: the seed conforms, and tools keep to it."""

    id: Identifier
    entity: Identifier
    that: Expr
    text: str = Field(min_length=10)
