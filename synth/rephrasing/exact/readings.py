"""A part and its rewrite, read once and in one way for all exact checks.

A value counts as held in any notation that a text may give it (`values.py`). A value that is
demanded has to be firm: no number of a list, no label such as "Step 2", no small number in words.
"""

import re
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from synth.rephrasing.exact.rates import Period, period_of, rate_after, times_in
from synth.rephrasing.exact.values import ReadValue, implied_in, joined, values_in
from synth.rephrasing.facts.calendar import NamedTimes, named_in
from synth.rephrasing.facts.clock import times_in_words
from synth.rephrasing.facts.dates import Moment, dates_of
from synth.rephrasing.facts.quantities import (
    Quantity,
    QuantityValue,
    is_inside,
    is_label,
    quantities_of,
)
from synth.rephrasing.facts.text import read_text
from synth.rephrasing.facts.units import LETTER_MULTIPLIERS, UNITS
from synth.rephrasing.fidelity.language import UNTOLD, language_of

LISTED_UP_TO = 40
"""Numbers up to here at the beginning of a line count a list."""

NEAR = Fraction(1, 2)
"""Per cent that a share may be rounded by: two thirds are 67%."""

_LISTED = re.compile(r"(?m)^[ \t>*_#|-]{0,40}\(?(?:\w{1,20} )?\d{1,3}[a-z]?[.):]")
_LETTER = re.compile(r"\d[ \u00a0]?([kKmM])\b\.?$")
SHARES = frozenset(unit for unit, (dimension, _) in UNITS.items() if dimension == "ratio")
"""Spellings of per cent."""

DEGREES = frozenset(("angle", "temperature", "fahrenheit"))
"""Dimensions of which a degree may be one."""

_REST = re.compile(r"\b(?:rest|resto|reste|remain\w*|others?|\u00fcbrigen?|left|less|only)\b", re.I)
_DECADE = re.compile(r"decade|d\u00e9cada|d\u00e9cennie|Jahrzehnt")
_CENTURY = re.compile(
    r"century|centuries|Jahrhundert|Jh\.|si\u00e8cle|siglo|secolo|s\u00e9culo|eeuw|\u00e5rhundrede",
    re.I,
)
_HOURS = re.compile(r"\b(?:Uhr|o'clock|heures?|horas?|le ore)\b|\d ?[ap]\.?m\b")
_SUMMED = re.compile(r",?[ ](?:and |et |und |y )?")
_WORD = re.compile(r"[^\W\d_]+(?:-feira)?")
_MONEY = frozenset(
    ("$", "\u20ac", "\u00a3", "dollar", "euro", "pound", "cent", "eur", "usd", "gbp")
)


class PartReading:
    """One of the two texts."""

    def __init__(self, text: str, *, untold: str = UNTOLD) -> None:
        """`untold`: the language to read it in where its own cannot be told, as of a few words."""
        self.text = read_text(text)
        told = language_of(self.text.prose)
        self.language = untold if told == UNTOLD else told

    @cached_property
    def stated(self) -> str:
        return self.text.said

    @cached_property
    def words(self) -> frozenset[str]:
        """Of what is said, in small letters."""
        return frozenset(_WORD.findall(self.stated.lower()))

    @cached_property
    def quantities(self) -> list[Quantity]:
        """Of what is said, those whose value is a number."""
        found = quantities_of(self.stated, language=self.language)
        return [quantity for quantity in found if not isinstance(quantity.value, str)]

    @cached_property
    def dates(self) -> tuple[Moment, ...]:
        return dates_of(self.stated)

    @cached_property
    def spelt_times(self) -> set[int]:
        """Minutes of half a day."""
        return set(times_in_words(self.stated, self.language))

    @cached_property
    def named(self) -> NamedTimes:
        """Months and weekdays that are named, and months of dates."""
        named = named_in(self.stated, self.words, self.language)
        for date in self.dates:
            named.months.update(date.months)
        return named

    @cached_property
    def _joined(self) -> list[tuple[Fraction, str]]:
        return list(joined(self.quantities, self.stated))

    @cached_property
    def bare(self) -> set[QuantityValue]:
        """Values of quantities without a unit, which may leave out that of their neighbours."""
        return {q.value for q in self.quantities if q.unit is None}

    @cached_property
    def measured(self) -> set[tuple[str, object]]:
        """(dimension, value in its base unit) of all quantities with a unit."""
        found: set[tuple[str, object]] = {q.measured for q in self.quantities if q.measured}
        for quantity in self.quantities:
            if (speed := self.speed(quantity)) is not None:
                found.add(speed)
        for value, unit in self._joined:
            dimension, size = UNITS[unit]
            found.add((dimension, value * size))
        return found

    def rate(self, quantity: Quantity) -> Period | None:
        """The time for which a quantity is told."""
        _, slash, per = quantity.text.rpartition("/")
        return period_of(per) if slash else rate_after(self.stated, quantity.end)

    def speed(self, quantity: Quantity) -> tuple[str, Fraction] | None:
        """Of a length that is told for a time."""
        measured = quantity.measured
        if measured is None or measured[0] != "length" or isinstance(measured[1], str):
            return None
        rate = self.rate(quantity)
        return ("speed", measured[1] / Fraction(rate[1])) if rate and rate[0] == "time" else None

    def tells(self, quantity: Quantity) -> bool:
        """Whether a quantity with a unit stands here in some unit, or without any."""
        if self.tells_again(quantity) or quantity.value in self.bare:
            return True
        return quantity.measured in self.sums.values()

    @cached_property
    def degrees(self) -> set[ReadValue]:
        """Without their signs, which a text may say in a word."""
        units = (q.unit and UNITS[q.unit][0] for q in self.quantities)
        pairs = zip(self.quantities, units, strict=True)
        return {
            abs(q.value) for q, unit in pairs if unit in DEGREES and not isinstance(q.value, str)
        }

    @cached_property
    def times(self) -> set[Period]:
        """The same of units of time that are named without a number, and of halves of them."""
        named: set[Period] = set(times_in(self.words))
        return named | {(dimension, Fraction(size) / 2) for dimension, size in named}

    @cached_property
    def _told(self) -> set[QuantityValue]:
        return {quantity.value for quantity in self.quantities}

    @cached_property
    def values(self) -> set[ReadValue]:
        """Every number that stands anywhere, in every way to read it."""
        text = self.text.text.replace("{,}", ",").replace("\\,", " ")
        found = values_in(text, self.quantities)
        for date in self.dates:
            found |= _numbers_of(date)
        for minute in self.spelt_times:
            found |= {minute // 60, minute % 60, minute // 60 + 12}
        return found | {value for value, _ in self._joined}

    @cached_property
    def known(self) -> set[ReadValue]:
        """Numbers that stand here, and those that a word only implies."""
        return self.values | implied_in(self.text.text)

    @cached_property
    def firm(self) -> list[Quantity]:
        """Quantities that the other text has to hold. Dates are compared as such."""
        dates = sorted((date.start, date.end) for date in self.dates)
        return [
            q
            for q in self.quantities
            if not (q.soft or self.only_counts(q) or is_inside(q.start, dates))
        ]

    @cached_property
    def _tells_rest(self) -> bool:
        return _REST.search(self.stated) is not None

    @cached_property
    def _tells_hours(self) -> bool:
        return _HOURS.search(self.stated) is not None

    @cached_property
    def sums(self) -> dict[int, tuple[str, object]]:
        """By the place of a quantity what it comes to with the one before or after it: "14 feet, 6
        inches"."""
        found: dict[int, tuple[str, object]] = {}
        for one, other in pairwise(self.quantities):
            is_close = _SUMMED.fullmatch(self.stated, one.end, other.start)
            if not is_close or one.measured is None or other.measured is None:
                continue
            (kind, size), (other_kind, other_size) = one.measured, other.measured
            if kind == other_kind and Fraction(size) > Fraction(other_size):
                total = kind, Fraction(size) + Fraction(other_size)
                found |= {one.start: total, other.start: total}
        return found

    @property
    def measured_parts(self) -> list[Quantity]:
        """Parts of one with a unit: "half a metre"."""
        return [q for q in self.quantities if q.soft and q.unit and 0 < Fraction(q.value) < 1]

    @cached_property
    def _listed(self) -> set[int]:
        """Where marks of lists end."""
        return {match.end() for match in _LISTED.finditer(self.stated)}

    def only_counts(self, quantity: Quantity) -> bool:
        """Whether it is a label or a number of a list."""
        start, end = quantity.start, quantity.end
        if is_label(self.stated, start):
            return True
        value = quantity.value
        small = quantity.unit is None and not isinstance(value, str) and value <= LISTED_UP_TO
        return small and any(at in self._listed for at in range(start, min(end + 3, start + 8)))

    def holds(self, quantity: Quantity, *, implied: bool) -> bool:
        """Whether it stands here in any notation; `implied`: also where a word only implies it."""
        value = quantity.value
        assert not isinstance(value, str)
        if value in self._told:
            return True
        values = self.known if implied else self.values
        if value in values or -value in values:
            return True
        letter = _LETTER.search(quantity.text)
        if letter and value * LETTER_MULTIPLIERS[letter[1].lower()] in values:
            return True
        if isinstance(value, int) and self._holds_whole(value, quantity, values):
            return True
        if quantity.unit in SHARES and self._holds_share(Fraction(value) / 100, values):
            return True
        if quantity.unit in _MONEY and values & {value * 100, Fraction(value) / 100}:
            return True
        measured = quantity.measured
        return measured is not None and (measured in self.measured or measured in self.times)

    def _holds_whole(self, value: int, quantity: Quantity, values: set[ReadValue]) -> bool:
        if quantity.text.endswith("0s") and not values.isdisjoint(range(value, value + 10)):
            return True  # the 1870s
        if _is_decade(value):
            of_century = value - value % 100 in values and _DECADE.search(self.stated)
            if value % 100 in values or of_century:
                return True
        if 12 < value <= 24 and value - 12 in values and self._tells_hours:
            return True
        if quantity.is_ordinal and value >= 10 and 100 * (value - 1) in values:
            return True
        if value % 100 != 0 or not 1000 <= value <= 2000:
            return False
        # the 1800s, the 19th century
        return value // 100 + 1 in values and _CENTURY.search(self.text.text) is not None

    def tells_again(self, quantity: Quantity) -> bool:
        """Whether its measure stands here, in its unit or another one, or as a share."""
        if quantity.measured in self.measured or quantity.measured in self.times:
            return True
        if quantity.unit in _MONEY and self.holds(quantity, implied=True):
            return True
        if (
            quantity.unit
            and UNITS[quantity.unit][0] in DEGREES
            and abs(Fraction(quantity.value)) in self.degrees
        ):
            return True
        is_share = quantity.unit in SHARES
        return is_share and self._holds_share(Fraction(quantity.value) / 100, self.known)

    def tells_part(self, part: Quantity) -> bool:
        """Whether a part of one stands here, or so many per cent."""
        share = Fraction(part.value)
        return ("ratio", 100 * share) in self.measured or self._holds_share(share, self.known)

    def _holds_share(self, share: Fraction, values: set[ReadValue]) -> bool:
        if share in values or (self._tells_rest and 1 - share in values):
            return True
        if share.numerator == 1 and share.denominator <= 10 and {1, share.denominator} <= values:
            return True  # one in five
        return any(0 < value < 1 and abs(value - share) * 100 < NEAR for value in values)


class PartPair(NamedTuple):
    """A part and its rewrite."""

    source: PartReading
    rewrite: PartReading

    @property
    def is_translation(self) -> bool:
        languages = self.source.language, self.rewrite.language
        return languages[0] != languages[1] and UNTOLD not in languages


def _is_decade(value: int) -> bool:
    return value % 10 == 0 and value % 100 != 0 and 1000 < value < 2100


def _numbers_of(date: Moment) -> set[int]:
    found = set(date.numbers)
    if date.month is not None:
        found.add(date.month)
    if date.minute is not None:
        found |= {date.minute // 60, date.minute % 60, date.minute // 60 % 12}
    return found
