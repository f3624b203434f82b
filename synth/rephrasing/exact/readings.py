"""A part and its rewrite, read once and in one way for all exact checks.

A value counts as held in any notation that a text may give it: figures with either separator,
words, fractions, parts of dates and times, what stands in formulas and code. A value that is
demanded has to be firm: no number of a list, no label such as "Step 2", no small number in words.
"""

import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from synth.rephrasing.facts.dates import Moment, dates_of
from synth.rephrasing.facts.quantities import Quantity, quantities_of
from synth.rephrasing.facts.text import ReadText
from synth.rephrasing.facts.units import MULTIPLIERS
from synth.rephrasing.fidelity.language import UNTOLD, language_of

MAX_DIGITS = 30
"""Longer runs of digits are no numbers that anybody compares."""

LISTED_UP_TO = 40
"""Numbers up to here at the beginning of a line count a list."""

_FIGURES = re.compile(r"\d+(?:[.,]\d+)*")
_GROUPED = re.compile(r"\d{1,3}(?:[ \u00a0\u202f\u2009'_]\d{3})+")
_FRACTION = re.compile(r"\\[dt]?frac\{(\d{1,9})\}\{(\d{1,9})\}|(?<![\d.,])(\d{1,9})/(\d{1,9})")
_RANGE = re.compile(
    r"(?<![\d.,])(\d[\d.,]*)[ \u00a0]?(?:-|\u2013|\u2014|to|and|or|bis|und|\u00e0|et|y)[ \u00a0]?"
    r"[$\u20ac\u00a3]?\d[\d.,]*[ \u00a0]?([A-Za-z]+)"
)
_SHORT = re.compile(r"(?<![\d.,])(\d[\d.,]*)[ \u00a0]?(k|m|M|mn|bn|tn|Mio|Mrd)\b\.?")
_SHORT_FOR = {"k": 10**3, "m": 10**6, "mn": 10**6, "mio": 10**6, "bn": 10**9, "mrd": 10**9}
_SHORT_FOR |= {"tn": 10**12}
_VULGAR = re.compile(r"(\d{0,30})[ \u00a0]?([\u00bc-\u00be\u2150-\u215e])")
_AND_A_HALF = re.compile(r"\b([a-z]{1,20}(?:[- ][a-z]{1,20})?) and a half\b", re.IGNORECASE)
_HALF_OF = re.compile(r"\bhalf an? (dozen|minute|hour|day|year)\b", re.IGNORECASE)
_HALVES = {"dozen": 6, "minute": 30, "hour": 30, "day": 12, "year": 6}
_LISTED = re.compile(r"(?m)^[ \t>*_#|-]{0,40}\(?(?:\w{1,20} )?\d{1,3}[a-z]?[.):]")
_LABEL = re.compile(
    r"\b(?:step|part|question|q|example|section|note|item|stage|phase|rule|exercise|chapter|case"
    r"|figure|table|task|move|entry|point|line|answer|no\.|schritt|frage|aufgabe|teil|nr\."
    r"|\u00e9tape|question|paso|pregunta|n\u00ba)[ .#]?$",
    re.IGNORECASE,
)
_TIMES = {"doubl": 2, "twice": 2, "tripl": 3, "treble": 3, "threefold": 3, "quadrupl": 4, "half": 2}
"""Beginnings of words that say a number without naming it."""


class PartReading:
    """One of the two texts."""

    def __init__(self, text: str) -> None:
        self.text = ReadText(text)
        self.language = language_of(self.text.prose)

    @cached_property
    def stated(self) -> str:
        return "\n".join((self.text.stated, *self.text.headings))

    @cached_property
    def quantities(self) -> list[Quantity]:
        """Of what is said, those whose value is a number."""
        found = quantities_of(self.stated, language=self.language)
        return [quantity for quantity in found if not isinstance(quantity.value, str)]

    @cached_property
    def dates(self) -> list[Moment]:
        return dates_of(self.stated)

    @cached_property
    def measured(self) -> set[tuple[str, object]]:
        return {quantity.measured for quantity in self.quantities if quantity.measured}

    @cached_property
    def values(self) -> set[Fraction]:
        """Every number that stands anywhere, in every way to read it."""
        text = self.text.text.replace("{,}", ",").replace("\\,", " ")
        found = {value for token in _FIGURES.findall(text) for value in _values_of(token)}
        grouped = (re.sub(r"\D", "", token) for token in _GROUPED.findall(text))
        found |= {Fraction(int(digits)) for digits in grouped if len(digits) <= MAX_DIGITS}
        for ours, of_ours, plain, of_plain in _FRACTION.findall(text):
            if int(of_ours or of_plain):
                found.add(Fraction(int(ours or plain), int(of_ours or of_plain)))
        for language in ("en", "de"):  # either sign may part the decimals
            for quantity in quantities_of(text, language=language):
                if not isinstance(quantity.value, str):
                    found.add(Fraction(quantity.value))
        for date in dates_of(text):
            found |= {Fraction(number) for number in _numbers_of(date)}
        return found | set(_in_short(text))

    @cached_property
    def implied(self) -> set[Fraction]:
        """Numbers that words say without naming them: "doubled"."""
        lower = self.text.text.lower()
        return {Fraction(number) for word, number in _TIMES.items() if word in lower}

    @cached_property
    def known(self) -> set[Fraction]:
        """Numbers that stand here, and those that a word only implies."""
        return self.values | self.implied

    @cached_property
    def firm(self) -> list[Quantity]:
        """Quantities that the other text has to hold."""
        listed = {match.end() for match in _LISTED.finditer(self.stated)}
        return [q for q in self.quantities if not (q.soft or self._only_counts(q, listed))]

    def _only_counts(self, quantity: Quantity, listed: set[int]) -> bool:
        start, end = quantity.start, quantity.end
        if _LABEL.search(self.stated[max(0, start - 14) : start]):
            return True
        small = quantity.unit is None and Fraction(quantity.value) <= LISTED_UP_TO
        return small and any(at in listed for at in range(start, min(end + 3, start + 8)))

    def holds(self, quantity: Quantity, *, implied: bool) -> bool:
        """Whether it stands here in any notation; `implied`: also where a word only implies it."""
        value = Fraction(quantity.value)
        values = self.known if implied else self.values
        if quantity.text.endswith("0s") and value % 10 == 0:  # the 1870s
            return any(value + more in values for more in range(10))
        in_short = _SHORT.search(quantity.text)
        factor = _SHORT_FOR[in_short[2].lower()] if in_short else 1
        if values & {value, -value, value * factor}:
            return True
        if quantity.unit in ("%", "percent") and (
            value / 100 in values or 1 - value / 100 in values
        ):
            return True
        return quantity.measured is not None and quantity.measured in self.measured


class PartPair(NamedTuple):
    """A part and its rewrite."""

    source: PartReading
    rewrite: PartReading

    @property
    def is_translation(self) -> bool:
        languages = self.source.language, self.rewrite.language
        return languages[0] != languages[1] and UNTOLD not in languages


def _in_short(text: str) -> Iterator[Fraction]:
    """Numbers whose parts stand apart, or that are written in short: "25 to 30 million", "540m",
    "31\u00bd", "half a dozen"."""
    for figures, word in _RANGE.findall(text):
        if (factor := MULTIPLIERS.get(word.lower())) is not None:
            yield from (value * factor for value in _values_of(figures.rstrip(".,")))
    for figures, short in _SHORT.findall(text):
        factor = _SHORT_FOR[short.lower()]
        yield from (value * factor for value in _values_of(figures.rstrip(".,")))
    for whole, sign in _VULGAR.findall(text):
        part = Fraction(unicodedata.numeric(sign)).limit_denominator(10)
        yield int(whole[:MAX_DIGITS] or 0) + part
    for words in _AND_A_HALF.findall(text):
        for quantity in quantities_of(words):
            if not isinstance(quantity.value, str):
                yield Fraction(quantity.value) + Fraction(1, 2)
    yield from (Fraction(_HALVES[what.lower()]) for what in _HALF_OF.findall(text))


def _values_of(token: str) -> set[Fraction]:
    """Of figures with dots and commas: what they may mean, whichever sign is the decimal's."""
    parts = re.findall(r"\d+", token)
    if sum(map(len, parts)) > MAX_DIGITS:
        return set()
    whole = int("".join(parts))
    found = {Fraction(whole)}
    if len(parts) > 1:
        found.add(Fraction(whole, 10 ** len(parts[-1])))
        found |= {Fraction(int(part)) for part in parts}
    return found


def _numbers_of(date: Moment) -> set[int]:
    found = set(date.numbers)
    if date.month is not None:
        found.add(date.month)
    if date.minute is not None:
        found |= {date.minute // 60, date.minute % 60, date.minute // 60 % 12}
    return found
