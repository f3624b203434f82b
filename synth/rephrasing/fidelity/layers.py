"""Facts of the source that the rewrite keeps, loses or adds: numbers, units, dates, names,
quotations, and what stands apart from the prose (code, tables, headings)."""

import textwrap
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from synth.rephrasing.facts.dates import Moment, dates_of
from synth.rephrasing.facts.names import names_of, stands_in
from synth.rephrasing.facts.quantities import (
    Quantity,
    QuantityValue,
    digits_in,
    is_inside,
    quantities_of,
)
from synth.rephrasing.facts.quotations import is_quoted_in, quotations_of
from synth.rephrasing.facts.stems import stem
from synth.rephrasing.facts.stopwords import STOPWORDS
from synth.rephrasing.facts.text import ReadText, squeeze, words_of

Day = tuple[int | None, int | None]
"""Year and day of the month."""


class LayerCounts(NamedTuple):
    total: int
    """Facts of the source that were looked for."""
    lost: tuple[str, ...]
    """Those that the rewrite does not hold, as the source spells them."""
    added: tuple[str, ...]
    """Facts of the rewrite that the source does not hold."""

    @property
    def share(self) -> float:
        """Kept, of those looked for; 1 where there was nothing to keep."""
        return 1 - len(self.lost) / self.total if self.total else 1.0


NOT_COMPARED = LayerCounts(0, (), ())
"""Of what a translation says in words of its own: names, quotations, headings, cells."""


class MeasuredText:
    """The numbers of one text, and what may stand for a number of the other."""

    def __init__(self, text: ReadText, language: str) -> None:
        # all that is said is read by the exact checks, too; what is in headings is left out here
        end = len(text.stated)
        self.dates = [date for date in dates_of(text.said) if date.start < end]
        said = quantities_of(text.said, language=language)
        self.quantities = [quantity for quantity in said if quantity.start < end]
        spans = sorted((date.start, date.end) for date in self.dates)
        self.demanded = [q for q in self.quantities if not is_inside(q.start, spans)]
        self._dates: dict[tuple[int | None, int | None], dict[Day, Moment]] = {}
        for date in self.dates:
            same = self._dates.setdefault((date.month, date.minute), {})
            same.setdefault((date.year, date.day), date)
        apart = (*text.formulas, *text.code, *text.headings, *text.spans)
        self.values: set[QuantityValue] = {q.value for q in self.quantities}
        self.values |= digits_in("\n".join(apart))
        self.values |= {n for date in self.dates for n in date.numbers}
        self.pairs = {q.measured for q in self.quantities if q.measured}
        self.bare = {q.value for q in self.quantities if q.unit is None}
        self.dimensions = {pair[0] for pair in self.pairs}

    def holds(self, quantity: Quantity) -> bool:
        value = quantity.value
        if value in self.values or quantity.measured in self.pairs:
            return True
        return (
            quantity.unit == "%"
            and not isinstance(value, str)
            and (Fraction(value) / 100 in self.values)
        )

    def holds_with_unit(self, quantity: Quantity) -> bool:
        """A value without its unit will do where another one has the unit: "5 and 10 km"."""
        measured = quantity.measured
        return measured in self.pairs or (
            measured is not None and quantity.value in self.bare and measured[0] in self.dimensions
        )

    def holds_date(self, date: Moment) -> bool:
        others = self._dates.get((date.month, date.minute), {})
        return (date.year, date.day) in others or any(map(date.agrees, others.values()))


@lru_cache(maxsize=128)
def measured_text(text: ReadText, language: str) -> MeasuredText:
    """Kept a while, since a source is compared with several rewrites."""
    return MeasuredText(text, language)


def numbers_kept(source: MeasuredText, rewrite: MeasuredText, *, translated: bool) -> LayerCounts:
    """Numbers in words are read in English alone, so a translation may have more of them."""
    lost = [q for q in source.demanded if not rewrite.holds(q)]
    added = [q for q in rewrite.demanded if not source.holds(q)]
    if translated:
        added = [q for q in added if q.text[:1].isdigit()]
    firm_lost, firm_added = _firm(lost), _firm(added)
    soft_lost, soft_added = _soft(lost), _soft(added)
    if soft_lost and (soft_added or firm_added):  # another number took its place
        firm_lost += soft_lost
    if soft_added and (soft_lost or firm_lost):
        firm_added += soft_added
    return LayerCounts(len({q.value for q in source.demanded}), tuple(firm_lost), tuple(firm_added))


def units_kept(source: MeasuredText, rewrite: MeasuredText, *, translated: bool) -> LayerCounts:
    """A value that is missing altogether is the numbers' matter; units in words are English."""
    asked = [q for q in source.demanded if q.unit and not q.soft]
    lost = [q for q in asked if q.value in rewrite.values and not rewrite.holds_with_unit(q)]
    added = [
        q
        for q in rewrite.demanded
        if q.unit and not q.soft and q.value in source.values and not source.holds_with_unit(q)
    ]
    if translated:
        added = []
    return LayerCounts(len({q.measured for q in asked}), _texts(lost), _texts(added))


def dates_kept(source: MeasuredText, rewrite: MeasuredText, *, translated: bool) -> LayerCounts:
    """Names of months are read in English alone."""
    ours, theirs = ({date[:4]: date for date in text.dates} for text in (source, rewrite))
    lost = [date for date in ours.values() if not rewrite.holds_date(date)]
    added = [date for date in theirs.values() if not translated and not source.holds_date(date)]
    return LayerCounts(len(ours), _texts(lost), _texts(added))


def names_kept(source: ReadText, rewrite: ReadText, language: str) -> LayerCounts:
    named = names_of(source, language)
    lost = [name for key, name in named.items() if not stands_in(key, rewrite)]
    added = [
        name for key, name in names_of(rewrite, language).items() if not stands_in(key, source)
    ]
    return LayerCounts(len(named), tuple(lost), tuple(added))


def quotations_kept(source: ReadText, rewrite: ReadText) -> LayerCounts:
    quoted = quotations_of(source)
    lost = [words for words in quoted if not is_quoted_in(words, rewrite)]
    added = [words for words in quotations_of(rewrite) if not is_quoted_in(words, source)]
    return LayerCounts(len(quoted), tuple(lost), tuple(added))


def code_kept(source: ReadText, rewrite: ReadText) -> LayerCounts:
    """Line for line, whatever the whole block is indented by."""
    before, after = "\n\0".join(map(_form, source.code)), "\n\0".join(map(_form, rewrite.code))
    lost = [
        block
        for block in source.code
        if _form(block) not in after and f"\n{block}" not in f"\n{rewrite.text}"
    ]
    added = [
        block
        for block in rewrite.code
        if _form(block) not in before and squeeze(block) not in source.squeezed
    ]
    return LayerCounts(len(source.code), tuple(map(_short, lost)), tuple(map(_short, added)))


def tables_kept(source: ReadText, rewrite: ReadText) -> LayerCounts:
    """Cell by cell, wherever the rewrite says it."""
    lost = [cell for cell in source.cells if squeeze(cell) not in rewrite.squeezed]
    return LayerCounts(len(source.cells), tuple(map(_short, lost)), ())


def headings_kept(source: ReadText, rewrite: ReadText, language: str) -> LayerCounts:
    """A heading is kept where half of its telling words stand in the rewrite."""
    if not source.headings:
        return LayerCounts(0, (), ())
    known = {stem(word, language) for word in words_of(rewrite.text)}
    lost = [heading for heading in source.headings if not _is_told(heading, known, language)]
    return LayerCounts(len(source.headings), tuple(map(_short, lost)), ())


def _is_told(heading: str, known: set[str], language: str) -> bool:
    words = words_of(heading)
    telling = [word for word in words if word not in STOPWORDS] or words
    return 2 * sum(stem(word, language) in known for word in telling) >= len(telling)


def _firm(quantities: Iterable[Quantity]) -> list[str]:
    return _once(q for q in quantities if not q.soft)


def _soft(quantities: Iterable[Quantity]) -> list[str]:
    return _once(q for q in quantities if q.soft)


def _once(quantities: Iterable[Quantity]) -> list[str]:
    """The first spelling of each value."""
    first: dict[QuantityValue, str] = {}
    for quantity in quantities:
        first.setdefault(quantity.value, quantity.text)
    return list(first.values())


def _texts(found: Iterable[Quantity] | Iterable[Moment]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(fact.text for fact in found))


def _form(block: str) -> str:
    lines = textwrap.dedent(block.expandtabs()).strip("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + " ..."
