"""Every number that a text holds or implies, in every way to read it.

What is asked of a rewrite is read strictly (`facts/quantities.py`); what may answer for it is read
generously, here: figures with either sign for decimals, multipliers, powers, fractions, ordinals as
centuries and as parts, Roman numerals, decades by name, prices and lengths in two parts.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from synth.rephrasing.facts.quantities import Quantity, unit_after
from synth.rephrasing.facts.units import LETTER_MULTIPLIERS, MULTIPLIERS

ReadValue = int | Fraction

MAX_DIGITS = 30
"""Longer runs of digits are no numbers that anybody compares."""

MOST_PARTS = 1000
"""An ordinal up to here may be a part: a thousandth."""

_FIGURES = re.compile(r"\d+(?:[.,]\d+)*")
_GROUPS = re.compile(r"[1-9]\d{0,2}(?:[.,]\d{3})+")
_GROUPED = re.compile(r"\d{1,3}(?:[ \u00a0\u202f\u2009'_]\d{3})+")
_FRACTION = re.compile(r"\\[dt]?frac\{(\d{1,9})\}\{(\d{1,9})\}|(?<![\d.,])(\d{1,9})/(\d{1,9})")
_MULTIPLIED = re.compile(
    r"(?<![\d.,])(\d[\d.,]{0,40})"
    r"(?:[ \u00a0]?(?:-|\u2013|\u2014|to|and|or|bis|und|\u00e0|et|y)[ \u00a0]?"
    r"[$\u20ac\u00a3]?\d[\d.,]{0,40})?[ \u00a0-]?([^\W\d_]{1,12})\b"
)
_POWER = re.compile(
    r"(?<![\d.,])(\d{1,30}(?:[.,]\d{1,30})?)"
    r"(?:[eE]|[ ]?(?:x|\u00d7|\\times|\\cdot)[ ]?10\^?\{?)([-\u2212]?\d{1,3})(?!\d)"
)
_VULGAR = re.compile(r"(\d{0,30})[ \u00a0]?([\u00bc-\u00be\u2150-\u215e])")
_ROMAN = re.compile(r"\b([IVXL]{2,7})(?:e|er|\u00e8me)?\b")
_DECADES = {"twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60}
_DECADES |= {"seventies": 70, "eighties": 80, "nineties": 90}
_HALF = re.compile(
    r"[ ](?:and a half|et demie?|y medi[oa]|e mezz[oa]|e mei[oa]|en een half|og en halv)\b"
)
_ONE_AND_A_HALF = re.compile(
    r"\b(?:an?[ ]([^\W\d_]{2,12})[ ]and a half"
    r"|([^\W\d_]{2,12})[ ](?:et demie?|y medi[oa]|e mezz[oa]|e mei[oa]))\b"
)
_QUARTER = re.compile(
    r"[ ](?:(?P<three>and three quarters|et trois quarts|y tres cuartos)"
    r"|and a quarter|et (?:un )?quart|y (?:un )?cuarto|e un quarto|en een kwart)\b"
)
_ONE_AND_A_QUARTER = re.compile(r"\b(?:an?|une?|una|um) (?=[^\W\d_]{2,12} (?:and|et|y|e) )")
_QUARTERS = ("quarter", "quart", "cuarto", "kwart")
_HALVES = ("a half", "demi", "y medi", "e mezz", "e mei", "en half", "en halv")
_TIMES = {"doubl": 2, "twice": 2, "tripl": 3, "treble": 3, "threefold": 3, "quadrupl": 4, "half": 2}
_TIMES |= {"halv": 2, "halbier": 2, "doppel": 2, "verdopp": 2, "moiti\u00e9": 2, "mitad": 2}
"""Parts of words that say a number without naming it."""


def values_in(text: str, quantities: Iterable[Quantity]) -> set[ReadValue]:
    """Those that stand in it. `quantities`: of what is said in it."""
    found: set[ReadValue] = set(_in_figures(text))
    for quantity in quantities:
        value = quantity.value
        assert not isinstance(value, str)
        found.add(value)
        if quantity.is_ordinal and 1 < value <= MOST_PARTS:
            found |= {Fraction(1, int(value)), 100 * (int(value) - 1)}
    if "ties" in text:
        found |= {tens for decade, tens in _DECADES.items() if decade in text}
    for numeral in set(_ROMAN.findall(text)):
        number = _roman(numeral)
        found |= {number, 100 * (number - 1)}
    return found


def implied_in(text: str) -> set[ReadValue]:
    """Those that a word says without naming them: "doubled"."""
    lower = text.lower()
    return {number for part, number in _TIMES.items() if part in lower}


def joined(quantities: Iterable[Quantity], text: str) -> Iterator[tuple[Fraction, str]]:
    """(value, unit) of what is told in two parts, "4 metres 25" and "six metres and a half", and of
    one and a half or a quarter."""
    listed = list(quantities)
    for before, quantity in pairwise(listed):
        value, is_next = Fraction(quantity.value), before.end <= quantity.start <= before.end + 1
        if is_next and before.unit and quantity.unit is None and 0 < value < 100:
            yield Fraction(before.value) + value / 100, before.unit
    if any(quarter in text for quarter in _QUARTERS):
        yield from _with_quarters(listed, text)
    if not any(half in text for half in _HALVES):
        return
    for quantity in listed:
        if quantity.unit and _HALF.match(text, quantity.end):
            yield Fraction(quantity.value) + Fraction(1, 2), quantity.unit
    for match in _ONE_AND_A_HALF.finditer(text):
        if (unit := unit_after(match[1] or match[2], 0)[0]) is not None:
            yield Fraction(3, 2), unit


def _with_quarters(listed: list[Quantity], text: str) -> Iterator[tuple[Fraction, str]]:
    """Of "two hours and a quarter" and "an hour and three quarters"."""
    units = [(Fraction(q.value), q.unit, q.end) for q in listed if q.unit]
    for match in _ONE_AND_A_QUARTER.finditer(text):
        unit, _, end = unit_after(text, match.end() - 1)
        if unit is not None:
            units.append((Fraction(1), unit, end))
    for value, unit, end in units:
        if after := _QUARTER.match(text, end):
            yield value + Fraction(3 if after["three"] else 1, 4), unit


def _in_figures(text: str) -> Iterator[ReadValue]:
    for token in set(_FIGURES.findall(text)):
        yield from _readings(token)
    for token in _GROUPED.findall(text):
        if len(digits := re.sub(r"\D", "", token)) <= MAX_DIGITS:
            yield int(digits)
    if "/" in text or "frac" in text:
        for ours, of_ours, plain, of_plain in _FRACTION.findall(text):
            if int(of_ours or of_plain):
                yield _whole(Fraction(int(ours or plain), int(of_ours or of_plain)))
    for figures, word in _MULTIPLIED.findall(text):
        lower = word.lower()
        factor = MULTIPLIERS.get(lower) or LETTER_MULTIPLIERS.get(lower)
        if factor is not None:
            yield from (_whole(value * factor) for value in _readings(figures.rstrip(".,")))
    for figures, power in _POWER.findall(text):
        factor = Fraction(10) ** int(power.replace("\u2212", "-"))
        yield from (_whole(value * factor) for value in _readings(figures))
    if not text.isascii():
        for whole, sign in _VULGAR.findall(text):
            part = Fraction(unicodedata.numeric(sign)).limit_denominator(10)
            yield int(whole[:MAX_DIGITS] or 0) + part


@lru_cache(maxsize=65_536)
def _readings(token: str) -> frozenset[ReadValue]:
    """Of figures with dots and commas: what they may mean, whichever sign is the decimal's."""
    parts = re.findall(r"\d+", token)
    if sum(map(len, parts)) > MAX_DIGITS:
        return frozenset()
    whole = int("".join(parts))
    found: set[ReadValue] = {whole}
    if _GROUPS.fullmatch(token):
        if len(parts) == 2 and parts[1] != "000":
            found.add(_whole(Fraction(whole, 1000)))
    elif len(parts) > 1:
        found.add(_whole(Fraction(whole, 10 ** len(parts[-1]))))
        found |= {int(part) for part in parts}
    return frozenset(found)


def _whole(value: ReadValue) -> ReadValue:
    """As an int where it is one, since those are compared in less time."""
    return int(value) if value.denominator == 1 else value


def _roman(numeral: str) -> int:
    sizes = [{"I": 1, "V": 5, "X": 10, "L": 50}[sign] for sign in numeral]
    pairs = pairwise([*sizes, 0])
    return sum(-size if size < after else size for size, after in pairs)
