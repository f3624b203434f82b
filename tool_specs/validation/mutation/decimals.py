"""How many decimals a value can have, where its form tells: what has no more is rounded idly.

A field or a parameter that is a number has any; a whole number, a count and what is rounded have
few. A division is known where the divisor is a constant made of twos and fives.
"""

from collections.abc import Sequence
from typing import Any

from tool_specs.language.syntax.nodes import (
    Access,
    Binary,
    Call,
    Each,
    Literal,
    Name,
    Node,
    Record,
    Unary,
)
from tool_specs.validation.mutation.vocabulary import Vocabulary

_WHOLE = frozenset({"count", "days_between", "minutes_between", "length"})
_OF_ONE = frozenset({"sum", "min", "max", "coalesce", "first"})
"""Functions that give no more decimals than what they are given."""

_OF_AVERAGE = 2
"""Decimals to which an average is rounded."""

_MOST = 6


def is_rounded_idly(node: Call, known: Vocabulary) -> bool:
    """Whether the `round` is of a value that has so few decimals anyway."""
    value, *digits = node.arguments
    places = digits[0].value if digits and isinstance(digits[0], Literal) else 0
    found = num_decimals(value, known)
    return found is not None and type(places) is int and found <= places


def num_decimals(node: Node, known: Vocabulary) -> int | None:
    """At most so many; None where the form does not tell."""
    match node:
        case Literal(value=value):
            return (
                _of_number(value) if type(value) in (int, float) else 0 if value is None else None
            )
        case Name(name=name) if name in known.lets:
            return num_decimals(known.lets[name], known)
        case Access(base=base, field=field):
            member = _member(base, field, known)
            if member is not None:
                return num_decimals(member, known)
            return 0 if known.kind(node) == "integer" else None
        case Each(item=item):
            return num_decimals(item, known.within((node,)))
        case Unary(operator="-", operand=operand):
            return num_decimals(operand, known)
        case Binary(operator="+" | "-", left=left, right=right):
            return _most((left, right), known)
        case Binary(operator="*", left=left, right=right):
            one, other = num_decimals(left, known), num_decimals(right, known)
            return None if one is None or other is None else one + other
        case Binary(operator="/", left=left, right=Literal(value=int(divisor))):
            of_left, more = num_decimals(left, known), _of_division(divisor)
            return None if of_left is None or more is None else of_left + more
        case Call(function="if", arguments=(_, *cases)):
            return _most(cases, known)
        case Call(function="round", arguments=(_, Literal(value=int(places)))):
            return places
        case Call(function="round", arguments=(_,)):
            return 0
        case Call(function="average"):
            return _OF_AVERAGE
        case Call(function=function, arguments=items) if function in _OF_ONE:
            return _most(items, known)
        case Call(function=function) if function in _WHOLE:
            return 0
    return None


def _member(base: Node, field: str, known: Vocabulary) -> Node | None:
    """What a record that a `let` made has by this name; of a list of records, each of them."""
    made = known.lets.get(base.name) if isinstance(base, Name) else None
    if isinstance(made, Each):
        made = made.item
    if isinstance(made, Record) and field in made.names:
        return made.values[made.names.index(field)]
    return None


def _most(nodes: Sequence[Node], known: Vocabulary) -> int | None:
    found = [num_decimals(node, known) for node in nodes]
    return max((n for n in found if n is not None), default=0) if None not in found else None


def _of_number(value: Any) -> int | None:
    if type(value) not in (int, float):
        return None
    return next((n for n in range(_MOST) if round(value, n) == value), None)


def _of_division(divisor: int) -> int | None:
    return next((n for n in range(_MOST) if divisor and 10**n % divisor == 0), None)
