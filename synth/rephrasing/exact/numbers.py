"""Numbers, units and dates that stand in the place of others."""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from synth.rephrasing.exact.calendar import days_in, months_in
from synth.rephrasing.exact.readings import PartPair, PartReading
from synth.rephrasing.facts.dates import dates_of
from synth.rephrasing.facts.quantities import Quantity, QuantityValue
from synth.rephrasing.facts.units import UNITS

LARGE = 40
"""What is added to a number above comes to a sum that a text may give in its place."""

HALF = Fraction(1, 2)
"""Stands in too many idioms to be in anything's place."""

_VERSION = re.compile(r"(?<![\w.])\d{1,6}(?:\.\d{1,6}){2,5}(?![\w.]\d)")
"""Dates in figures and versions of programs: several dots, and no number."""

_RATE = re.compile(
    r"(?: (?!(?:for|in|within|after|over|of|f\u00fcr|nach|pendant|durante)\b)[^\W\d]{1,20}){0,2}"
    r" (?:per|a|an|each|every|pro|par|por|al) "
    r"(second|minute|hour|day|week|month|year|Sekunde|Minute|Stunde|Tag|Woche|Monat|Jahr|seconde"
    r"|heure|jour|semaine|mois|segundo|minuto|hora|d\u00eda|semana|mes|a\u00f1o)\b",
    re.IGNORECASE,
)

_DIGITS = re.compile(r"[-\u2212$\u20ac\u00a3]?[\d.,\u00a0'\u202f]*\d")
_UNIT = re.compile(
    r"[ \u00a0\u202f-]?([A-Za-z\u00b5\u03bc\u03a9\u00b0%]{1,12}"
    r"(?:[ ]?/[ ]?[A-Za-z]{1,6}[23\u00b2\u00b3]?)?)"
)


def changed_numbers(pair: PartPair) -> Iterator[str]:
    """A number that is new alone may be worked out, in ways that no rule foresees: it is no fault
    unless another one is gone."""
    source, rewrite = pair
    added = [q for q in rewrite.firm if not source.holds(q, implied=True)]
    lost = [q for q in source.firm if not rewrite.holds(q, implied=not added)]
    soft = [q for q in rewrite.quantities if q.soft and Fraction(q.value) not in source.known]
    soft = [q for q in soft if q.value != HALF and not pair.is_translation]
    gone = {Fraction(quantity.value) for quantity in lost}
    large = {value for value in source.known if value > LARGE}
    swapped = [q for q in added if not _is_sum(Fraction(q.value), gone, large)]
    if lost and (swapped or soft):
        yield f"the part has {_told(lost)}; the rewrite has {_told(swapped or soft)} instead"
    ours, theirs = (set(_VERSION.findall(reading.text.text)) for reading in pair)
    if ours - theirs and theirs - ours:
        yield f"the part has {_listed(ours - theirs)}; the rewrite has {_listed(theirs - ours)}"


def _listed(texts: set[str]) -> str:
    return ", ".join(sorted(texts))


def _is_sum(value: Fraction, gone: set[Fraction], large: set[Fraction]) -> bool:
    """Whether it is a sum or difference of a number that is gone and a large one: "two years
    later", after 1876, is 1878."""
    return any(large & {value - lost, value + lost, lost - value} for lost in gone)


def changed_units(pair: PartPair) -> Iterator[str]:
    """Values that the source has with another unit only. Equal quantities in other units count as
    the same."""
    source, rewrite = pair
    ours = _measures(source)
    for value, measures in _measures(rewrite).items():
        same = ours.get(value)
        if not same:
            continue
        told = " or ".join(dict.fromkeys(one.quantity.text for one in same))
        known, rates = {one.unit for one in same}, [one.rate for one in same]
        for quantity, written, rate in measures:
            if rate and all(rates) and rate not in rates:
                yield f"the part has {told} a {rates[0]}; the rewrite has {quantity.text} a {rate}"
            elif written and "/" in written:
                if written not in known and all(unit and "/" in unit for unit in known):
                    yield f"the part has {told}; the rewrite has {quantity.text}{written}"
            elif _has_own_unit(quantity) and quantity.measured not in source.measured:
                units = [one.quantity.unit for one in same]
                if all(units) or any(_alike(unit, quantity.unit) for unit in units):
                    yield f"the part has {told}; the rewrite has {quantity.text}"


class _Measure(NamedTuple):
    quantity: Quantity
    unit: str | None
    """What stands right after the figures, as it is written."""
    rate: str | None
    """The time for which the quantity is told: "a day" of "40 litres a day"."""


def _measures(reading: PartReading) -> dict[QuantityValue, list[_Measure]]:
    """By value; what is written twice in the same way stands there once."""
    found: dict[QuantityValue, dict[tuple[str | None, ...], _Measure]] = {}
    for quantity in reading.quantities:
        measure = _Measure(quantity, _unit_at(reading, quantity), _rate_at(reading, quantity))
        key = (quantity.text, quantity.unit, measure.unit, measure.rate)
        found.setdefault(quantity.value, {}).setdefault(key, measure)
    return {value: list(measures.values()) for value, measures in found.items()}


def _rate_at(reading: PartReading, quantity: Quantity) -> str | None:
    found = _RATE.match(reading.stated, quantity.end)
    return found[1].lower() if found else None


def _has_own_unit(quantity: Quantity) -> bool:
    """Whether its unit stands beside it: the first number of a range takes that of the second."""
    text = quantity.text
    is_beside = not text[-1:].isdigit() and (text[0].isdigit() or " " in text or "-" in text)
    return quantity.unit is not None and not quantity.soft and is_beside


def _alike(one: str | None, other: str | None) -> bool:
    """Whether both units measure the same, such as a length."""
    return one is not None and other is not None and UNITS[one][0] == UNITS[other][0]


def changed_dates(pair: PartPair) -> Iterator[str]:
    # each once: the pairs are the work
    source, rewrite = ({date[:4]: date for date in r.dates}.values() for r in pair)
    lost = [date for date in source if not any(map(date.agrees, rewrite))]
    added = [date for date in rewrite if not any(map(date.agrees, source))]
    if lost and added:
        ours, theirs = (", ".join(dict.fromkeys(d.text for d in of)) for of in (lost, added))
        yield f"the part has {ours}; the rewrite has {theirs} instead"
    for what, named in (("month", _months), ("weekday", days_in)):
        before, after = (named(r.stated, r.language) for r in pair)
        if before - after and after - before:
            yield f"the rewrite names another {what} than the part"


def _months(text: str, language: str) -> set[int]:
    """Those that are named, and those of dates in figures."""
    return months_in(text, language) | {d.month for d in dates_of(text) if d.month is not None}


def _unit_at(reading: PartReading, quantity: Quantity) -> str | None:
    digits = _DIGITS.match(reading.stated, quantity.start)
    found = digits and _UNIT.match(reading.stated, digits.end())
    return found[1].replace(" ", "") if found else None


def _told(quantities: list[Quantity]) -> str:
    return ", ".join(dict.fromkeys(quantity.text for quantity in quantities))
