"""Numbers that follow from others: a rest, a total, an age, an amount of several, a share.

What is worked out from the source is no value in the place of another. The operations are the plain
ones, and results are exact: so many quotients are near any number that a rounded one tells nothing.
"""

from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import NamedTuple

from synth.rephrasing.exact.values import ReadValue
from synth.rephrasing.facts.quantities import SOFT_UP_TO, Quantity
from synth.rephrasing.facts.units import UNITS

MOST_OPERANDS = 40
"""Numbers of both texts from which others may follow."""

_FACTORS = (7, 12, 24, 60)
"""Of units of time: days of a week, months, hours, minutes."""

_POWERS = (0, 1, 10, 100, 1000)
"""By which a product says nothing: a point may have slipped as well."""

MOST_PARTS = 10
"""An ordinal up to here may be a part: "a third"."""

_YEARS = range(1000, 2101)
"""Whole numbers without a unit that are most often years."""


class GivenNumber(NamedTuple):
    value: ReadValue
    kind: str
    """Numbers of one kind have a sum: those with the same unit, years, and those without a unit."""
    is_share: bool


def operands_of(quantities: Iterable[Quantity]) -> list[GivenNumber]:
    """Those of each quantity, every one once."""
    found: dict[GivenNumber, None] = {}
    for quantity in quantities:
        found |= dict.fromkeys(forms_of(quantity))
        if quantity.is_ordinal and 2 < forms_of(quantity)[-1].value <= MOST_PARTS:  # "a third"
            part = Fraction(1, int(forms_of(quantity)[-1].value))
            found[GivenNumber(part, "", is_share=False)] = None
        if len(found) >= MOST_OPERANDS:
            break
    return list(found)[:MOST_OPERANDS]


def forms_of(quantity: Quantity) -> list[GivenNumber]:
    """As it is written, then in its base unit, then without its unit where it may be a duration."""
    value = quantity.value
    assert not isinstance(value, str), "asked of quantities whose value is a number"
    unit = quantity.unit
    if unit is None:
        is_year = value in _YEARS and quantity.text.rstrip("s").isdigit()
        return [GivenNumber(value, "year" if is_year else "", is_share=False)]
    dimension, size = UNITS[unit]
    forms = [GivenNumber(value * size, dimension, is_share=dimension == "ratio")]
    if size != 1:
        forms.append(GivenNumber(value, "year" if dimension == "months" else "", is_share=False))
    return forms


def follows_from(result: GivenNumber, number: GivenNumber, others: Collection[GivenNumber]) -> bool:
    """Whether one operation makes the result of the number and one of the others."""
    value, own = result.value, number.value
    if not result.kind and any(own in (value * by, Fraction(value) / by) for by in _FACTORS):
        return True
    return any(_joins(result, number, other) for other in others if other.value != value)


def is_multiple(result: GivenNumber, number: GivenNumber, others: Collection[GivenNumber]) -> bool:
    """The same by a product, a quotient or a share alone."""
    return any(_multiplies(result, number, by) for by in others if by.value != result.value)


def _joins(result: GivenNumber, number: GivenNumber, other: GivenNumber) -> bool:
    value, own, by = result.value, number.value, other.value
    is_small = not result.kind and value <= SOFT_UP_TO and own <= SOFT_UP_TO
    if number.kind == other.kind and not is_small and value in (own + by, own - by, by - own):
        return True
    return _multiplies(result, number, other)


def _multiplies(result: GivenNumber, number: GivenNumber, other: GivenNumber) -> bool:
    value, own, by = result.value, number.value, other.value
    if value == own * by or own == value * by or by == value * own:
        return by not in _POWERS and own not in _POWERS
    return _is_share(value, own, other)


def _is_share(value: ReadValue, whole: ReadValue, part: GivenNumber) -> bool:
    if 0 < part.value < 1 and value == whole * (1 - part.value):
        return True
    per_cent = part.value
    return part.is_share and 100 * value in (
        whole * per_cent,
        whole * (100 - per_cent),
        whole * (100 + per_cent),
    )


def follows_from_two(result: GivenNumber, others: Collection[GivenNumber]) -> bool:
    """Whether one operation makes the result of two others, of which one is of its kind."""
    value = result.value
    operands = [other for other in others if other.value != value]
    same = {other.value for other in operands if other.kind == result.kind}
    if any(value - own in same or own - value in same for own in same):
        return True
    for other in operands:
        by = other.value
        if by not in _POWERS and (by * value in same or Fraction(value) / by in same):
            return True
        if (other.is_share or 0 < by < 1) and any(_is_share(value, own, other) for own in same):
            return True
    return False
