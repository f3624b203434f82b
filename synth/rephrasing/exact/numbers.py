"""Numbers, units and dates that stand in the place of others."""

import re
from collections.abc import Collection, Iterator
from fractions import Fraction
from typing import NamedTuple

from synth.rephrasing.exact.rates import Period, periods_in, times_in
from synth.rephrasing.exact.readings import DEGREES, SHARES, PartPair, PartReading
from synth.rephrasing.exact.ties import Ties, dimension_of
from synth.rephrasing.facts.clock import HALF_DAY
from synth.rephrasing.facts.dates import Moment
from synth.rephrasing.facts.quantities import Quantity, QuantityValue
from synth.rephrasing.facts.units import UNITS

_VERSION = re.compile(r"(?<![\w.])\d{1,6}(?:\.\d{1,6}){2,5}(?![\w.]\d)")
"""Dates in figures and versions of programs: several dots, and no number."""

_DIGITS = re.compile(r"[-\u2212$\u20ac\u00a3]?[\d.,\u00a0'\u202f]*\d")
_UNIT = re.compile(
    r"[ \u00a0\u202f-]?([A-Za-z\u00b5\u03bc\u03a9\u00b0%]{1,12}"
    r"(?:[ ]?/[ ]?[A-Za-z]{1,6}[23\u00b2\u00b3]?)?)"
)


def changed_numbers(pair: PartPair, ties: Ties) -> Iterator[str]:
    """A number that is new alone may be worked out, in ways that no rule foresees: it is no fault
    unless another one is gone."""
    source, rewrite = pair
    added = [q for q in rewrite.firm if not source.holds(q, implied=True)]
    lost = [q for q in source.firm if not rewrite.holds(q, implied=not added)]
    gone, new = ties.between(lost, added)
    if gone:
        yield f"the part has {_told(gone)}; the rewrite has {_told(new)} instead"
    yield from _changed_shares(pair, ties)
    yield from _changed_measures(pair, ties)
    ours, theirs = (set(_VERSION.findall(reading.text.text)) for reading in pair)
    if ours - theirs and theirs - ours:
        yield f"the part has {_listed(ours - theirs)}; the rewrite has {_listed(theirs - ours)}"


def _changed_shares(pair: PartPair, ties: Ties) -> Iterator[str]:
    """Per cents and parts of one, of which one side at least is per cents."""
    parts, parts_there = (
        [q for q in reading.quantities if q.soft and 0 < Fraction(q.value) < 1] for reading in pair
    )
    gone = [q for q in parts if not pair.rewrite.tells_part(q)]
    new = [q for q in parts_there if not pair.source.tells_part(q)]
    lost = [q for q in pair.source.firm if q.unit in SHARES and not pair.rewrite.tells_again(q)]
    added = [q for q in pair.rewrite.firm if q.unit in SHARES and not pair.source.tells_again(q)]
    for before, after in (ties.between(lost, new), ties.between(gone, added)):
        if before:
            yield f"the part has {_told(before)}; the rewrite has {_told(after)} instead"
            return


def _changed_measures(pair: PartPair, ties: Ties) -> Iterator[str]:
    """Quantities of one dimension: one is gone in every unit, and one is new in every unit."""
    source, rewrite = pair
    gone = _not_told(source, rewrite)
    new = _not_told(rewrite, source) if gone else []
    for dimension in dict.fromkeys(dimension_of(q) for q in gone):
        ours, theirs = ([q for q in of if dimension_of(q) == dimension] for of in (gone, new))
        if all(q.soft for q in (*ours, *theirs)):
            continue
        before, after = ties.between(ours, theirs)
        if before:
            yield f"the part has {_told(before)}; the rewrite has {_told(after)} instead"
    sizes = {q.measured[1]: q for q in gone if q.measured}
    for quantity in new:  # 6.6 kV and 6,600 watts
        other = sizes.get(quantity.measured[1]) if quantity.measured else None
        if other is not None and dimension_of(other) != dimension_of(quantity):
            yield f"the part has {other.text}; the rewrite has {quantity.text} instead"


def _not_told(reading: PartReading, other: PartReading) -> list[Quantity]:
    """Per cents are left out: notes work out new ones."""
    return [
        q
        for q in (*reading.firm, *reading.measured_parts)
        if _has_own_unit(q)
        and q.unit not in SHARES
        and not other.tells(q)
        and reading.sums.get(q.start) not in other.measured
    ]


def _listed(texts: set[str]) -> str:
    return ", ".join(sorted(texts))


def changed_units(pair: PartPair) -> Iterator[str]:
    """Values that the source has with another unit only. Equal quantities in other units count as
    the same."""
    source, rewrite = pair
    ours, theirs = _by_value(source), _by_value(rewrite)
    for value in theirs.keys() & ours.keys():
        written = {source.stated[q.start : q.end + MOST_AFTER] for q in ours[value]}
        new = [
            q for q in theirs[value] if rewrite.stated[q.start : q.end + MOST_AFTER] not in written
        ]
        if not new:
            continue
        same = _measures(source, ours[value])
        told = " or ".join(dict.fromkeys(one.quantity.text for one in same))
        known, rates = {one.unit for one in same}, [one.rate for one in same]
        for quantity, written, rate in _measures(rewrite, new):
            if rate and all(rates) and rate not in rates:
                yield f"{quantity.text} is told for another time than in the part"
            elif written and "/" in written:
                if written not in known and all(unit and "/" in unit for unit in known):
                    yield f"the part has {told}; the rewrite has {quantity.text}{written}"
            elif (
                _has_own_unit(quantity)
                and quantity.measured not in source.measured
                and any(_stands_for(quantity, one.quantity, rewrite) for one in same)
            ):
                yield f"the part has {told}; the rewrite has {quantity.text}"


def changed_rates(pair: PartPair) -> Iterator[str]:
    """One quantity, in any notation, is told for another time: "3.6 kWh a day" and "3,600 Wh a
    week"."""
    source, rewrite = pair
    known: dict[object, set[Period | None]] = {}
    for quantity in source.quantities:
        if quantity.measured is not None:
            known.setdefault(quantity.measured, set()).add(source.rate(quantity))
    for quantity in rewrite.quantities:
        rates = known.get(quantity.measured, set()) if quantity.measured else set()
        rate = rewrite.rate(quantity) if rates and None not in rates else None
        if rate is not None and rate not in rates:
            yield f"{quantity.text} is told for another time than in the part"


def _stands_for(quantity: Quantity, other: Quantity, rewrite: PartReading) -> bool:
    """Whether its unit is another one of the same kind; of another kind only where the rewrite does
    not tell the measure of the source at all."""
    if other.unit is None or quantity.unit is None or other.unit == quantity.unit:
        return False
    kinds = {UNITS[other.unit][0], UNITS[quantity.unit][0]}
    if kinds == _TEMPERATURES:
        return True
    if kinds <= DEGREES or kinds == _SPEEDS or "pound" in (other.unit, quantity.unit):
        return False
    if len(kinds) == 1 and not quantity.soft and not _is_in_words(quantity):
        return True
    return not (other.soft and len(kinds) > 1) and not rewrite.tells_again(other)


def _is_in_words(quantity: Quantity) -> bool:
    return not any(map(str.isdigit, quantity.text))


def changed_periods(pair: PartPair) -> Iterator[str]:
    """Something comes again after another time: every week in place of every day. A unit of time
    that the other text names in any way answers for it."""
    ours, theirs = (periods_in(reading.stated, reading.words) for reading in pair)
    if not ours - theirs or not theirs - ours:
        return
    named, named_there = (times_in(reading.words) for reading in pair)
    if ours - named_there and theirs - named:
        yield "something comes again after another time than in the part"


_TEMPERATURES = frozenset(("temperature", "fahrenheit"))
_SPEEDS = frozenset(("length", "speed"))
"""A speed may be told as a length for a time."""


class _Measure(NamedTuple):
    quantity: Quantity
    unit: str | None
    """What stands right after the figures, as it is written."""
    rate: Period | None
    """The time for which the quantity is told: "a day" of "40 litres a day"."""


MOST_AFTER = 24
"""Characters after a quantity; where they are the same, so is its unit."""


def _by_value(reading: PartReading) -> dict[QuantityValue, list[Quantity]]:
    found: dict[QuantityValue, list[Quantity]] = {}
    for quantity in reading.quantities:
        found.setdefault(quantity.value, []).append(quantity)
    return found


def _measures(reading: PartReading, quantities: list[Quantity]) -> list[_Measure]:
    """What is written twice in the same way stands there once."""
    found: dict[tuple[object, ...], _Measure] = {}
    for quantity in quantities:
        measure = _Measure(quantity, _unit_at(reading, quantity), reading.rate(quantity))
        found.setdefault((quantity.text, quantity.unit, measure.unit, measure.rate), measure)
    return list(found.values())


def _has_own_unit(quantity: Quantity) -> bool:
    """Whether its unit stands beside it: the first number of a range takes that of the second."""
    is_spelt = quantity.end - quantity.start > len(quantity.text)
    return quantity.unit is not None and (is_spelt or quantity.text[-1] not in "0123456789")


def changed_dates(pair: PartPair) -> Iterator[str]:
    ours, theirs = (_dates(reading) for reading in pair)
    lost = [date for date in ours if not any(map(date.agrees, theirs))]
    added = [date for date in theirs if not any(map(date.agrees, ours))]
    if lost and added:
        told = (", ".join(dict.fromkeys(d.text for d in of)) for of in (lost, added))
        yield "the part has {}; the rewrite has {} instead".format(*told)
    yield from _changed_times(pair)
    for what, before, after in zip(("month", "weekday"), *(r.named for r in pair), strict=True):
        if before - after and after - before:
            yield f"the rewrite names another {what} than the part"


def _dates(reading: PartReading) -> Collection[Moment]:
    """Each once, since the pairs are the work."""
    return {date[:4]: date for date in reading.dates if date.minute is None}.values()


def _changed_times(pair: PartPair) -> Iterator[str]:
    """Times of day, in figures or in words, of which one side at least is in figures."""
    ours, theirs = ([date for date in r.dates if date.minute is not None] for r in pair)
    if not ours and not theirs:
        return
    spelt, spelt_there = (reading.spelt_times for reading in pair)
    lost = [t for t in ours if not _is_told(t, theirs, spelt_there)]
    added = [t for t in theirs if not _is_told(t, ours, spelt)]
    figures = {t.minute % HALF_DAY for t in theirs if t.minute is not None}
    own_figures = {t.minute % HALF_DAY for t in ours if t.minute is not None}
    lost_spelt, added_spelt = spelt - spelt_there - figures, spelt_there - spelt - own_figures
    if (lost and (added or added_spelt)) or (lost_spelt and added):
        told = ", ".join(t.text for t in (added or lost))
        yield f"the rewrite tells another time of day than the part: {told}"


def _is_told(time: Moment, others: Collection[Moment], spelt: set[int]) -> bool:
    is_spelt = time.minute is not None and time.minute % HALF_DAY in spelt
    return is_spelt or any(map(time.agrees, others))


def _unit_at(reading: PartReading, quantity: Quantity) -> str | None:
    digits = _DIGITS.match(reading.stated, quantity.start)
    found = digits and _UNIT.match(reading.stated, digits.end())
    return found[1].replace(" ", "") if found else None


def _told(quantities: list[Quantity]) -> str:
    return ", ".join(dict.fromkeys(quantity.text for quantity in quantities))
