"""Numbers as they are written: in digits with the marks of any language, and in words."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from synth.rubrics.reading.locales import LETTER, Locale

_GROUPED = r"\d{1,3}(?:([.,' ])\d{3})(?:\1\d{3})*(?:[.,]\d+)?(?!\d)"
_DIGITS = re.compile(
    rf"(?<![{LETTER}\d_])(?<!\d[.,])(?:{_GROUPED}|\d+(?:[.,]\d+)?)(?![{LETTER}_]+[-_]?\d|_?\d|[.,]\d)"
)
_CONTINUED = 1000
"""From this multiplier on what was said before is a number of its own: two hundred thousand."""


class WrittenNumber(NamedTuple):
    start: int
    end: int
    value: float
    other: float | None = None
    """What it is in another language's marks: 1.240 is 1240, or 1.24."""
    is_article: bool = False
    """A word that is a number only perhaps: a, one, un."""
    decimals: int = 0
    """Digits after the decimal mark, as they are written."""


def numbers_in(text: str, table: Locale) -> list[WrittenNumber]:
    """The numbers of a text that is cleaned and in lower case, in their order."""
    found = [*_digits(text, table), *_in_words(text, table)]
    return sorted(found)


def _digits(text: str, table: Locale) -> Iterator[WrittenNumber]:
    for match in _DIGITS.finditer(text):
        if match[1] == " " and table.decimal == ".":  # "at C7 340 left" are two
            for part in re.finditer(r"\d+(?:[.,]\d+)?", match[0]):
                begin = match.start() + part.start()
                value, other, decimals = _read(part[0], table.decimal)
                yield WrittenNumber(begin, begin + len(part[0]), value, other, decimals=decimals)
            continue
        value, other, decimals = _read(match[0], table.decimal)
        yield WrittenNumber(match.start(), match.end(), value, other, decimals=decimals)


def _read(digits: str, decimal: str) -> tuple[float, float | None, int]:
    """(value, what it could be too, decimals)."""
    digits = digits.replace(" ", "").replace("'", "")
    marks = [c for c in digits if c in ".,"]
    if not marks:
        return float(digits), None, 0
    last = marks[-1]
    whole, _, rest = digits.rpartition(last)
    as_decimal = float(whole.replace(".", "").replace(",", "") + "." + rest)
    as_group = float(digits.replace(".", "").replace(",", ""))
    if len(set(marks)) == 2 or len(rest) != 3 or not 1 <= len(whole) <= 3 or whole == "0":
        grouped = len(marks) > 1 and len(set(marks)) == 1
        return (as_group, None, 0) if grouped else (as_decimal, None, len(rest))
    return (as_decimal, as_group, 3) if last == decimal else (as_group, as_decimal, 0)


def _in_words(text: str, table: Locale) -> Iterator[WrittenNumber]:
    for match in table.patterns["written"].finditer(text):
        yield from _runs(match[0], match.start(), table)


def value_of(words: str, table: Locale) -> float | None:
    """A number in digits or in words, alone in its text; None where it is none."""
    if words.isdecimal():
        return float(words)
    for known in (table.number_words, table.articles, table.ordinals):
        if words in known:
            return float(known[words])
    return None


def _runs(words: str, place: int, table: Locale) -> Iterator[WrittenNumber]:
    """One number or several: "two hundred and six" is one, "five six" are two."""
    run = _Run()
    known = {**table.number_words, **table.multipliers, **table.articles}
    pattern, end = table.patterns["number_word"], 0
    while token := pattern.match(words, end):
        joint, word = token[1] or "", token[2]
        if word in table.multipliers:
            ok = run.multiply(table.multipliers[word])
        else:
            ok = run.add(known[word], joint, spaced=table.code != "zh")
        if not ok:
            yield run.number(place, table)
            run = _Run()
            run.add(known[word], "", spaced=True)
        run.took(word, token.start(2), token.end())
        end = token.end()
    yield run.number(place, table)


class _Run:
    """A number that is being read word by word."""

    def __init__(self) -> None:
        self._total = self._part = self._last = 0
        self._words: list[str] = []
        self._start = self._end = 0

    def took(self, word: str, start: int, end: int) -> None:
        if not self._words:
            self._start = start
        self._words.append(word)
        self._end = end

    def add(self, value: int, joint: str, *, spaced: bool) -> bool:
        last = self._last
        if last == 0 and not (self._words and self._part == self._total == 0):
            self._last = value
            return True
        fits = (
            (last % 10 == 0 and last % 100 >= 20 and 0 < value < 10)
            or (last % 100 in (60, 80) and 10 <= value < 20)
            or (last % 100 == 0 and last >= 100 and 0 < value < 100)
            or (0 < last < 10 and "und" in joint and value % 10 == 0 and 20 <= value < 100)
        )
        if fits and spaced:
            self._last += value
        return fits and spaced

    def multiply(self, by: int) -> bool:
        if by < _CONTINUED:
            self._part += max(1, self._last) * by
        else:
            self._total += max(1, self._part + self._last) * by
            self._part = 0
        self._last = 0
        return True

    def number(self, place: int, table: Locale) -> WrittenNumber:
        value = float(self._total + self._part + self._last)
        lone = len(self._words) == 1 and self._words[0] in table.articles
        return WrittenNumber(place + self._start, place + self._end, value, is_article=lone)
