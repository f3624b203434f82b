"""The numbers of a text with their units: in figures, in words, with separators and exponents.

"1,200", "1200", "twelve hundred" and "1.2 thousand" are one number; "5 km", "5 kilometres" and
"5000 m" one quantity. Small numbers in words and ordinals are soft: they answer for a number of the
other text, and are themselves asked for only where another one took their place.
"""

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from synth.rephrasing.facts.number_words import numbers_in_words
from synth.rephrasing.facts.units import FIRST_WORDS, MULTIPLIERS, UNITS

QuantityValue = int | Fraction | str
"""A number, or the spelling of what has several dots or too many digits, such as "3.11.2"."""

MAX_DIGITS = 30
"""Longer runs of digits are compared as they are written."""

MOST_FACTOR = 10**6
"""Of multipliers that follow each other, before the last one."""

SOFT_UP_TO = 12
"""Numbers in words up to here may be left out: "there are two kinds, A and B"."""

_NUMBER = re.compile(
    r"(?<![\w.])([-\u2212](?=[\d$\u20ac\u00a3]))?(?:(US\$|[$\u20ac\u00a3\u00a5])[ \u00a0]?)?"
    r"(\d{1,3}(?:[, \u00a0\u202f\u2009_']\d{3})+(?!\d)|\d+)((?:[.,]\d+)*)"
    r"(?:[eE]([-+]?\d{1,3})(?!\w)|[ ]?[x\u00d7][ ]?10\^?\{?([-\u2212]?\d{1,3})\}?)?"
)
_AFTER = re.compile(
    r"[ \u00a0\u202f-]?(%|\u2030|\u00b0[CF]?"
    r"|[^\W\d_]{1,24}(?:/[a-z]{1,9}|[\u00b2\u00b3]|\^?[23](?!\w))?)"
)
_OF = re.compile(r"[ ](?:of[ ])?an?(?=[ ])|[ ]d['\u2019]|[ ]d[ei](?=[ ])|[ ]eine[rs]?(?=[ ])")
_IS_PART = re.compile(r"[ ](?:of|de|du|des|del|der|des|von)\b")
_ARTICLE = re.compile(r"(?<!\w)(?:an?|une?|ein)[ ]$", re.IGNORECASE)

_GERMAN_ORDINAL = re.compile(r"\.[ ][A-Z\u00c4\u00d6\u00dc][a-z\u00e4\u00f6\u00fc\u00df]")
_MINUS = re.compile(r"(?<!\bor)(?<!\boder)[ ]minus[ ]$")
_MORE_WORDS = re.compile(r"[ \u00a0-][^\W\d_]{1,20}")
_VULGAR = re.compile(r"[ \u00a0]?([\u00bc-\u00be\u2150-\u215e])")
_VULGAR_ALONE = re.compile(r"(?<!\d)(?<!\d )([\u00bc-\u00be\u2150-\u215e])")
_RANGE = re.compile(r"[ ]?(?:-|\u2013|\u2014|to|and|or|by|x|\u00d7)[ ]?")
_LABEL = (
    "step part question q example section note item stage phase rule exercise chapter case figure"
    " table task move entry point line answer no. schritt frage aufgabe teil nr. \u00e9tape paso"
    " pregunta n\u00ba"
)
_LABELS = frozenset(_LABEL.split())
"""What a number counts that only tells parts of the text apart."""

_LAST_WORD = re.compile(r"(?<!\w)\w{1,10}\.?$")
_COMMA_LANGUAGES = frozenset(["de", "fr", "es", "it", "pt", "nl", "da", "pl", "ru"])


class Quantity(NamedTuple):
    value: QuantityValue
    unit: str | None
    """Canonical; the value stays as written. See `units.UNITS`."""
    soft: bool
    text: str
    start: int
    end: int
    is_ordinal: bool = False

    @property
    def measured(self) -> tuple[str, QuantityValue] | None:
        """(dimension, value in its base unit), None without a unit."""
        if self.unit is None:
            return None
        dimension, factor = UNITS[self.unit]
        return dimension, self.value if isinstance(self.value, str) else _plain(self.value * factor)


@lru_cache(maxsize=256)
def quantities_of(text: str, *, language: str = "en") -> tuple[Quantity, ...]:
    """In figures first, then in words. `language` decides what a comma between digits is."""
    found: list[Quantity] = []
    commas = language in _COMMA_LANGUAGES
    for match in _NUMBER.finditer(text):
        for quantity in _in_figures(match, text, commas=commas):
            _append(found, quantity, text)
    if not text.isascii() and (alone := list(_alone(text))):
        found = sorted((*found, *alone), key=lambda quantity: quantity.start)
    read = [(quantity.start, quantity.end) for quantity in found]
    spelt: list[Quantity] = []
    for quantity in _spelt(text, language):
        if not is_inside(quantity.start, read):
            _append(spelt, quantity, text)
    return (*found, *spelt)


def _alone(text: str) -> Iterator[Quantity]:
    """Signs of parts without a number before them."""
    for match in _VULGAR_ALONE.finditer(text):
        unit, factor, after = unit_after(text, match.end())
        value = _plain(_vulgar(match[1]) * factor)
        yield Quantity(value, unit, True, match[0], match.start(), after)


def _append(found: list[Quantity], quantity: Quantity, text: str) -> None:
    """The first number of a range takes the unit of the second."""
    if found and quantity.unit and found[-1].unit is None:
        between = text[found[-1].end : quantity.start]
        if _RANGE.fullmatch(between) and not _is_year(found[-1].value):
            found[-1] = found[-1]._replace(unit=quantity.unit)
    found.append(quantity)


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
    sign = -1 if minus or _MINUS.search(text, max(0, start - 12), start) else 1
    power = exponent or power
    scale = Fraction(10) ** int(power.replace("\u2212", "-")) if power else 1
    for value in values[:-1]:
        yield Quantity(value, None, False, match[0], start, end)
    value = values[-1]
    if (vulgar := _VULGAR.match(text, end)) and isinstance(value, int):
        value, end = value + _vulgar(vulgar[1]), vulgar.end()
    if not isinstance(value, str):
        value = _plain(sign * value * scale) if sign < 0 or scale != 1 else value
    unit, factor, after = unit_after(text, end)
    if factor != 1 and not isinstance(value, str):
        value = _plain(value * factor)
    unit = "$" if currency == "US$" else currency or unit
    soft = not isinstance(value, str) and 0 <= value <= 20 and is_label(text, start)
    ordinal = _is_ordinal(text, end)
    soft = soft or (isinstance(value, int) and value <= SOFT_UP_TO and ordinal)
    if unit == "s" and text[end : end + 1] == "s" and _is_year(value):
        unit, after = None, end + 1  # the 1990s
    yield Quantity(value, unit, soft, text[start:after].strip(), start, after, ordinal)


def unit_after(text: str, end: int) -> tuple[str | None, int, int]:
    """(unit or None, multiplier such as that of "million", where what was read ends)."""
    factor = 1
    after = _AFTER.match(text, end)
    while after and (times := MULTIPLIERS.get(after[1].lower())) and factor < MOST_FACTOR:
        factor, end = factor * times, after.end()
        after = _AFTER.match(text, end)
    if not after:
        return None, factor, end
    word, at = after[1], after.end()
    if word.lower() in FIRST_WORDS:  # "square metres", "kilometres per hour"
        ends = [at]
        while len(ends) < 3 and (more := _MORE_WORDS.match(text, ends[-1])):
            ends.append(more.end())
        for at in reversed(ends[1:]):
            if unit := _unit(re.sub(r"[\u00a0-]", " ", text[after.start(1) : at])):
                return unit, factor, at
        at = after.end()
    unit = _unit(word)
    return unit, factor, at if unit else end


@lru_cache(maxsize=65_536)
def _unit(word: str) -> str | None:
    if "/" in word and word.lower() not in UNITS:
        word = word.partition("/")[0]
    lower = word.lower() if len(word) > 1 else word
    forms = word, lower, lower.removesuffix("s"), lower.replace("s per ", " per ").replace("^", "")
    return next((form for form in forms if form in UNITS), None)


def is_label(text: str, start: int) -> bool:
    """Whether the number only counts parts of the text, as in "Step 2"."""
    before = text[max(0, start - 14) : start].rstrip(" #")
    word = _LAST_WORD.search(before)
    return word is not None and word[0].lower() in _LABELS


def _is_ordinal(text: str, end: int) -> bool:
    if text[end : end + 2] in ("st", "nd", "rd", "th"):
        return True
    # "2. Schiene": German writes a noun with a capital after an ordinal
    return _GERMAN_ORDINAL.match(text, end) is not None


def _is_year(value: QuantityValue) -> bool:
    return isinstance(value, int) and 1000 <= value <= 2100


@lru_cache(maxsize=65_536)
def _values(head: str, tail: str, *, commas: bool) -> list[QuantityValue]:
    whole = re.sub(r"\D", "", head)
    if len(whole) > MAX_DIGITS or len(tail) > MAX_DIGITS:
        return [head + tail]
    if not tail:
        return [int(whole)]
    pieces = re.findall(r"[.,]\d+", tail)
    if commas and pieces[0][0] == "." and len(pieces) == 1 and _is_grouped(whole, pieces[0][1:]):
        return [int(whole + pieces[0][1:])]
    if len(pieces) == 1 and (pieces[0][0] == "." or commas):
        return [_decimal(whole, pieces[0][1:])]
    if commas and all(piece[0] == "." and len(piece) == 4 for piece in pieces):
        return [int(whole + "".join(piece[1:] for piece in pieces))]  # 1.234.567
    if all(piece[0] == "," for piece in pieces):
        return [int(n) for n in (whole, *(piece[1:] for piece in pieces))]
    if commas and len(pieces) > 1 and all(len(p) == 4 for p in pieces[:-1]):
        grouped = whole + "".join(p[1:] for p in pieces[:-1])  # 1.234.567,8
        return [_decimal(grouped, pieces[-1][1:])]
    return [head + tail]


def _vulgar(sign: str) -> Fraction:
    return Fraction(unicodedata.numeric(sign)).limit_denominator(10)


def _is_grouped(whole: str, digits: str) -> bool:
    """Whether the dot parts thousands: "23.400" where a comma parts the decimals."""
    return len(digits) == 3 and 0 < len(whole) <= 3 and whole[0] != "0"


def _decimal(whole: str, digits: str) -> int | Fraction:
    return _plain(Fraction(int(whole + digits), 10 ** len(digits)))


def _plain(value: int | Fraction) -> int | Fraction:
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def _spelt(text: str, language: str) -> Iterator[Quantity]:
    read = 0
    for value, kind, start, end in numbers_in_words(text, language):
        if start < read:
            continue  # the thousand of "two and a half thousand"
        of = _OF.match(text, end) if kind == "part" else None  # "half an hour"
        unit, factor, after = unit_after(text, of.end() if of else end)
        if kind == "other" and factor == 1:  # "both m and n"
            unit, after = None, end
        if of and unit is None and factor == 1:
            after = end
        if kind == "part" and text[end : end + 1] == "-" and value.numerator == 1:
            continue  # "half-life"
        if (
            kind == "ordinal"
            and _IS_PART.match(text, end)
            and _ARTICLE.search(text, max(0, start - 5), start)
        ):
            value = Fraction(1, int(value))  # "a tenth of it"
        value, read = _plain(value * factor), after
        soft = value <= SOFT_UP_TO and (unit is None or value <= 1) and factor == 1
        ordinal = kind == "ordinal"
        yield Quantity(value, unit, soft, text[start:end], start, after, ordinal)
