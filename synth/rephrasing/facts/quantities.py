"""The numbers of a text with their units: in figures, in words, with separators and exponents.

"1,200", "1200", "twelve hundred" and "1.2 thousand" are one number; "5 km", "5 kilometres" and
"5000 m" one quantity. Small numbers in words and ordinals are soft: they answer for a number of the
other text, and are themselves asked for only where another one took their place.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from synth.rephrasing.facts.units import MULTIPLIERS, UNITS

QuantityValue = int | Fraction | str
"""A number, or the spelling of what has several dots or too many digits, such as "3.11.2"."""

MAX_DIGITS = 30
"""Longer runs of digits are compared as they are written."""

SOFT_UP_TO = 12
"""Numbers in words up to here may be left out: "there are two kinds, A and B"."""

_NUMBER = re.compile(
    r"(?<![\w.])([-\u2212](?=[\d$\u20ac\u00a3]))?(?:(US\$|[$\u20ac\u00a3\u00a5])[ \u00a0]?)?"
    r"(\d{1,3}(?:[,\u00a0\u202f\u2009_']\d{3})+(?!\d)|\d+)((?:[.,]\d+)*)"
    r"(?:[eE]([-+]?\d{1,3})(?!\w)|[ ]?[x\u00d7][ ]?10\^?\{?([-\u2212]?\d{1,3})\}?)?"
)
_AFTER = re.compile(
    r"[ \u00a0\u202f-]?(%|\u2030|\u00b0[CF]?|(?:per[ ]cent|percentage[ ]points?)\b"
    r"|(?:degrees?|square|cubic)[ ][A-Za-z]+|[A-Za-z]{1,20}[ ]per[ ](?:second|hour)\b"
    r"|[A-Za-z\u00b5\u03bc\u03a9]+(?:/[a-z]+|[\u00b2\u00b3]|\^[23])?)"
)
_RANGE = re.compile(r"[ ]?(?:-|\u2013|\u2014|to|and|or|by|x|\u00d7)[ ]?")
_LABEL = re.compile(
    r"\b(?:step|part|question|q|example|section|note|item|stage|phase|rule|exercise|chapter|case"
    r"|figure|table)[ .#]?$",
    re.IGNORECASE,
)
_COMMA_LANGUAGES = frozenset(["de", "fr", "es", "it", "pt", "pl", "ru"])

_COUNT = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
_TEN = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINAL = "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_COUNTS = {word: n for n, word in enumerate(_COUNT.split())}
_TENS = {word: 10 * n for n, word in enumerate(_TEN.split(), 2)}
_ORDINALS = {"first": 1} | {word: n for n, word in enumerate(_ORDINAL.split(), 3)}
"""Without "second", which is a unit more often than not."""

_OTHERS = {"once": 1, "twice": 2, "single": 1, "double": 2, "both": 2, "pair": 2, "triple": 3}
_PARTS = {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4}
_PARTS |= {"fifths": 5, "sixths": 6, "eighths": 8, "tenths": 10}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_SPELT = _COUNTS | _TENS | _SCALES | {"dozen": 12}
_IN_WORDS = re.compile(
    r"\b(?:{0})(?:(?:[ -]|[ ]and[ ])(?:{0}))*\b".format(
        "|".join(sorted({*_SPELT, *_ORDINALS, *_OTHERS, *_PARTS}, key=len, reverse=True))
    )
)


class Quantity(NamedTuple):
    value: QuantityValue
    unit: str | None
    """Canonical; the value stays as written. See `units.UNITS`."""
    soft: bool
    text: str
    start: int
    end: int

    @property
    def measured(self) -> tuple[str, QuantityValue] | None:
        """(dimension, value in its base unit), None without a unit."""
        if self.unit is None:
            return None
        dimension, factor = UNITS[self.unit]
        return dimension, self.value if isinstance(self.value, str) else _plain(self.value * factor)


def quantities_of(text: str, *, language: str = "en") -> list[Quantity]:
    """In figures first, then in words. `language` decides what a comma between digits is."""
    found: list[Quantity] = []
    commas = language in _COMMA_LANGUAGES
    for match in _NUMBER.finditer(text):
        for quantity in _in_figures(match, text, commas=commas):
            if found and quantity.unit and found[-1].unit is None:
                between = text[found[-1].end : quantity.start]
                if _RANGE.fullmatch(between) and not _is_year(found[-1].value):
                    found[-1] = found[-1]._replace(unit=quantity.unit)
            found.append(quantity)
    read = [(quantity.start, quantity.end) for quantity in found]
    return found + [q for q in _spelt(text) if not is_inside(q.start, read)]


def digits_in(text: str) -> set[QuantityValue]:
    """Every run of digits as a number: what identifiers, code and formulas hold of numbers."""
    return {int(run) if len(run) <= MAX_DIGITS else run for run in re.findall(r"\d+", text) if run}


def is_inside(start: int, spans: list[tuple[int, int]]) -> bool:
    """Whether the place is in one of these spans, which are in order: "5 million" is one number."""
    at = bisect_right(spans, (start, math.inf)) - 1
    return at >= 0 and start < spans[at][1]


def _in_figures(match: re.Match[str], text: str, *, commas: bool) -> Iterator[Quantity]:
    minus, currency, head, tail, exponent, power = match.groups()
    start, end = match.span()
    values = _values(head, tail, commas=commas)
    sign = -1 if minus else 1
    scale = Fraction(10) ** int((exponent or power or "0").replace("\u2212", "-"))
    for value in values[:-1]:
        yield Quantity(value, None, False, match[0], start, end)
    value = values[-1]
    if not isinstance(value, str):
        value = _plain(sign * value * scale) if minus or scale != 1 else value
    unit, factor, after = unit_after(text, end)
    if factor != 1 and not isinstance(value, str):
        value = _plain(value * factor)
    unit = "$" if currency == "US$" else currency or unit
    soft = not isinstance(value, str) and 0 <= value <= 20 and is_label(text, start)
    soft = soft or (isinstance(value, int) and value <= SOFT_UP_TO and _ordinal(text, end))
    if unit == "s" and text[end : end + 1] == "s" and _is_year(value):
        unit, after = None, end + 1  # the 1990s
    yield Quantity(value, unit, soft, text[start:after].strip(), start, after)


def unit_after(text: str, end: int) -> tuple[str | None, int, int]:
    """(unit or None, multiplier such as that of "million", where what was read ends)."""
    factor = 1
    after = _AFTER.match(text, end)
    if after and after[1].lower() in MULTIPLIERS:
        factor, end = MULTIPLIERS[after[1].lower()], after.end()
        after = _AFTER.match(text, end)
    if not after:
        return None, factor, end
    word = after[1]
    lower = word.lower() if len(word) > 1 else word
    for form in (word, lower, lower.removesuffix("s").replace("s per ", " per ")):
        if form in UNITS:
            return form, factor, after.end()
    return None, factor, end


def is_label(text: str, start: int) -> bool:
    """Whether the number only counts parts of the text, as in "Step 2"."""
    return _LABEL.search(text, max(0, start - 12), start) is not None


def _ordinal(text: str, end: int) -> bool:
    return text[end : end + 2] in ("st", "nd", "rd", "th")


def _is_year(value: QuantityValue) -> bool:
    return isinstance(value, int) and 1000 <= value <= 2100


def _values(head: str, tail: str, *, commas: bool) -> list[QuantityValue]:
    whole = re.sub(r"\D", "", head)
    if len(whole) > MAX_DIGITS or len(tail) > MAX_DIGITS:
        return [head + tail]
    if not tail:
        return [int(whole)]
    pieces = re.findall(r"[.,]\d+", tail)
    if len(pieces) == 1 and (pieces[0][0] == "." or commas):
        return [_decimal(whole, pieces[0][1:])]
    if all(piece[0] == "," for piece in pieces):
        return [int(n) for n in (whole, *(piece[1:] for piece in pieces))]
    if commas and len(pieces) > 1 and all(len(p) == 4 for p in pieces[:-1]):
        grouped = whole + "".join(p[1:] for p in pieces[:-1])  # 1.234.567,8
        return [_decimal(grouped, pieces[-1][1:])]
    return [head + tail]


def _decimal(whole: str, digits: str) -> int | Fraction:
    return _plain(Fraction(int(whole + digits), 10 ** len(digits)))


def _plain(value: int | Fraction) -> int | Fraction:
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def _spelt(text: str) -> Iterator[Quantity]:
    lower = text.lower()
    for match in _IN_WORDS.finditer(lower if len(lower) == len(text) else text):
        words = [word for word in re.split(r"[ -]+", match[0]) if word != "and"]
        for value in _values_of_words(words):
            unit, factor, after = unit_after(text, match.end())
            if words[-1] in _OTHERS:  # "both m and n"
                unit, factor, after = None, 1, match.end()
            value = _plain(value * factor)
            soft = value <= SOFT_UP_TO and (unit is None or value <= 1) and factor == 1
            yield Quantity(value, unit, soft, match[0], match.start(), after)


def _values_of_words(words: list[str]) -> list[int | Fraction]:
    """The numbers that a run of number words stands for, left to right."""
    values: list[int | Fraction] = []
    total, current, open_ = 0, 0, False
    for word in words:
        if word in _PARTS and (word not in _ORDINALS or total + current == 1):
            values.append(Fraction(total + current or 1, _PARTS[word]))
            total, current, open_ = 0, 0, False
        elif word in _ORDINALS or word in _OTHERS:
            values.append(total + current + (_ORDINALS | _OTHERS)[word])
            total, current, open_ = 0, 0, False
        elif word in _SCALES:
            scale = _SCALES[word]
            if scale == 100:
                current = (current or 1) * 100
            else:
                total, current = total + (current or 1) * scale, 0
            open_ = True
        else:
            value = _SPELT[word]
            room = 100 if current % 100 == 0 else 10 if current % 10 == 0 and value < 10 else 0
            if open_ and (value >= room or (current % 100 in range(10, 20))):
                values.append(total + current)
                total = current = 0
            current, open_ = current + value, True
    if open_:
        values.append(total + current)
    return values
