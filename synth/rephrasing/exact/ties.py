"""What ties a number that is gone to a new one, so that one may stand in the other's place."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property

from synth.rephrasing.exact.derived import (
    GivenNumber,
    follows_from,
    follows_from_two,
    forms_of,
    is_multiple,
    operands_of,
)
from synth.rephrasing.exact.places import WordsAround, place_of
from synth.rephrasing.exact.readings import DEGREES, PartPair, PartReading
from synth.rephrasing.facts.quantities import Quantity
from synth.rephrasing.facts.units import LETTER_MULTIPLIERS, UNITS

MOST_TIED = 24
"""Numbers of either text that are compared each with each."""

SURELY = 2
"""Words that two places share from which on it is the same place."""

LONG_SLIP = 3
"""Figures from which on two numbers are hardly alike by chance."""

_LARGE = "large"
"""The kind of numbers from a million on. "2m" may be two of them or a length."""


def dimension_of(quantity: Quantity) -> str | None:
    """Of its unit. A degree is one of any kind, and a part of one is so many per cent.

    Years and large numbers are of their own kind."""
    if quantity.unit is None:
        if _is_part(quantity):
            return "ratio"
        if Fraction(quantity.value) >= LETTER_MULTIPLIERS["m"]:
            return _LARGE
        return forms_of(quantity)[0].kind or None
    dimension = UNITS[quantity.unit][0]
    if dimension == "months":
        return "time"
    return "degree" if dimension in DEGREES else dimension


class Ties:
    """Between the numbers of a part and those of its rewrite."""

    def __init__(self, pair: PartPair) -> None:
        self._pair = pair
        self._places: dict[tuple[int, int], WordsAround] = {}

    @cached_property
    def _operands(self) -> list[GivenNumber]:
        source, rewrite = self._pair
        return operands_of([*source.quantities, *rewrite.quantities])

    def between(
        self, lost: Sequence[Quantity], added: Sequence[Quantity]
    ) -> tuple[list[Quantity], list[Quantity]]:
        """Those of both that stand in each other's place. One that alone is new, where one alone is
        gone, is hardly worked out from two others."""
        is_alone = len(lost) == len(added) == 1
        gone: dict[int, Quantity] = {}
        new: dict[int, Quantity] = {}
        for quantity in added[:MOST_TIED]:
            if self._follows_from_two(quantity, of_years=is_alone):
                slips = [q for q in lost[:MOST_TIED] if self._is_sure_slip(quantity, q)]
            else:
                slips = [
                    q for q in lost[:MOST_TIED] if self.stands_for(quantity, q, is_alone=is_alone)
                ]
            for other in slips:
                gone[other.start], new[quantity.start] = other, quantity
        return list(gone.values()), list(new.values())

    def stands_for(
        self,
        quantity: Quantity,
        other: Quantity,
        *,
        counted: bool = False,
        is_alone: bool = False,
    ) -> bool:
        """Whether a number of the rewrite stands where one of the source stood, and is not worked
        out from it. `counted`: both count the same. `is_alone`: no other is gone, none is new."""
        if self._is_sure_slip(quantity, other):
            return True
        is_tied = counted or self._is_tied(quantity, other, 1 if is_alone else SURELY)
        return is_tied and not self._follows(quantity, other)

    def _is_sure_slip(self, quantity: Quantity, other: Quantity) -> bool:
        kind = dimension_of(quantity)
        if kind != dimension_of(other) or not _is_slip(quantity, other):
            return False
        if any(is_multiple(*forms, self._operands) for forms in _alike(quantity, other)):
            return False
        if len(_figures(other)) >= LONG_SLIP:
            return True
        is_turned = sorted(_figures(quantity)) == sorted(_figures(other))
        return self._shared(quantity, other) >= (SURELY if kind is None else 1 - is_turned)

    def _follows_from_two(self, quantity: Quantity, *, of_years: bool) -> bool:
        """`of_years`: only ages, years and times between two years."""
        return any(
            follows_from_two(form, self._operands)
            for form in forms_of(quantity)
            if form.kind == "year" or not of_years
        )

    def _is_tied(self, quantity: Quantity, other: Quantity, needed: int) -> bool:
        """`needed`: words around them that tie a share to a number without a unit."""
        kind, other_kind = dimension_of(quantity), dimension_of(other)
        shared = self._shared(quantity, other)
        if kind == other_kind:
            is_one_part = _is_part(quantity) is not _is_part(other)
            return shared > 0 or (kind is not None and not is_one_part)
        may_be_millions = _LARGE in (kind, other_kind) and "m" in (quantity.unit, other.unit)
        if "ratio" not in (kind, other_kind):
            needed = SURELY
        return may_be_millions or (None in (kind, other_kind) and shared >= needed)

    def _follows(self, quantity: Quantity, other: Quantity) -> bool:
        """Whether it is worked out from the other one."""
        if quantity.is_ordinal or other.is_ordinal:  # in the eighty-fourth year, at eighty-three
            return quantity.is_ordinal is not other.is_ordinal and _apart(quantity, other) == 1
        return any(follows_from(*forms, self._operands) for forms in _alike(quantity, other))

    def _shared(self, quantity: Quantity, other: Quantity) -> int:
        source, rewrite = self._pair
        return len(self._place(source, other, 0) & self._place(rewrite, quantity, 1))

    def _place(self, reading: PartReading, quantity: Quantity, side: int) -> WordsAround:
        key = side, quantity.start
        if key not in self._places:
            self._places[key] = place_of(reading.stated, quantity.start, quantity.end)
        return self._places[key]


def _apart(quantity: Quantity, other: Quantity) -> object:
    return abs(forms_of(quantity)[-1].value - forms_of(other)[-1].value)


def _alike(quantity: Quantity, other: Quantity) -> Iterator[tuple[GivenNumber, GivenNumber]]:
    """Both in their base units where they measure the same, and as they are written."""
    form, before = forms_of(quantity), forms_of(other)
    yield form[0], before[0]
    yield form[-1], before[-1]


def _is_part(quantity: Quantity) -> bool:
    """Of one."""
    return quantity.unit is None and 0 < Fraction(quantity.value) < 1


def _is_slip(quantity: Quantity, other: Quantity) -> bool:
    """Whether one figure is another, two are turned, or the point stands elsewhere."""
    if quantity.is_ordinal is not other.is_ordinal:
        return False
    figures, others = _figures(quantity), _figures(other)
    if figures.strip("0") == others.strip("0"):
        return quantity.unit is not None or other.unit is not None
    if len(figures) != len(others) or len(figures) < 2:
        return False
    apart = [at for at, pair in enumerate(zip(figures, others, strict=True)) if pair[0] != pair[1]]
    return len(apart) == 1 or (len(apart) == 2 and sorted(figures) == sorted(others))


def _figures(quantity: Quantity) -> str:
    """Of its value, without a point."""
    value = quantity.value
    if isinstance(value, int):
        return str(abs(value))
    return f"{float(value):f}".replace(".", "").strip("-0")
