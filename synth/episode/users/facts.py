"""Facts in a user's words that come from nowhere: names, numbers, dates and ids that nothing the
user could know holds.

Numbers are compared in every usual spelling, and parts of known values may stand alone: "the
fourth at half past" is no invention where 2026-03-04T10:30 is known. Names are looked at only in an
answer to a question, where an invented one does harm, and only inside a sentence, since many words
begin one with a capital.
"""

import re
from collections.abc import Iterable
from functools import cached_property

from synth.rubrics.values import dates_in, number_words

SMALL_NUMBER = 12
"""Up to here a number may be a figure of speech, unless it answers a question."""

ID_DIGITS = 3
"""Digits that make a word an id outside an answer: MP3 and B2B are words."""

WORKED_OUT = 100
"""From here on a product of two known numbers is taken for arithmetic: smaller ones are too easy to
hit by chance."""

SHOUTING = 0.8
"""Share of words with a capital above which capitals say nothing."""

_NUMBER = re.compile(r"(?<![\w])\d[\d,]*(?:\.\d+)?|\d+")
_DIGITS = re.compile(r"\d+")
_ID = re.compile(r"(?<![\w@.-])[A-Za-z]+[-_]?\d[\w-]*|\b[\w.+-]+@[\w-]+\.\w+\b")
_LISTED = re.compile(r"^\s*\d{1,2}[.)]\s", re.MULTILINE)
_START = re.compile(r"(?:^|[.!?:;\n\"(\u201c-])\s*$")
_CAPITAL = re.compile(r"\b[A-Z][a-z\u00df-\u00ff]{2,}(?:'s)?\b")
_DOTTED = re.compile(r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b")
_MONTHS = re.findall(
    r"\w+",
    "january february march april may june july august september october november december",
)
_DAYS = re.findall(r"\w+", "monday tuesday wednesday thursday friday saturday sunday")
_ABBREVIATED = frozenset(name[:3] for name in (*_MONTHS, *_DAYS)) | {"sept", "tues", "thurs"}
_OTHERS = re.findall(
    r"\w+",
    "christmas easter english french german spanish italian chinese internet google email dear "
    "mister missus madam miss sir yes thanks thank please hello sorry sure okay great good perfect "
    "best kind regards sincerely the and but that this",
)
_NO_NAMES = frozenset([*_MONTHS, *_DAYS, *_OTHERS]) | _ABBREVIATED
"""Words with a capital that name nobody."""


class Grounds:
    """Everything that the user could know, as what its words are held against."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = "\n".join(texts)

    @cached_property
    def _numbers(self) -> frozenset[float]:
        whole = {float(m.replace(",", "")) for m in _NUMBER.findall(self._text)}
        parts = {float(m) for m in _DIGITS.findall(self._text)}
        words = set(number_words(self._text))
        months = {float(m) for m, name in enumerate(_MONTHS, 1) if name[:3] in self._folded}
        hours = {n - 12 for n in parts if 12 < n <= 24}  # 15:00 is "3 pm"
        years = {n % 100 for n in parts if 1900 <= n < 2100}  # '84
        return frozenset(whole | parts | words | months | hours | years)

    @cached_property
    def _folded(self) -> str:
        return self._text.casefold()

    @cached_property
    def _joined(self) -> str:
        """Letters and digits only: however an id or a phone number is grouped."""
        return re.sub(r"[\W_]+", "", self._folded)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(re.findall(r"[^\W\d_]+", self._folded))

    @cached_property
    def _dates(self) -> frozenset[tuple[int, int]]:
        return frozenset((month, day) for _, month, day in dates_in(self._text))

    def has_number(self, text: str) -> bool:
        value = float(text.replace(",", ""))
        if value in self._numbers or {value * 100, value / 100} & self._numbers:
            return True
        if value >= WORKED_OUT and any(value / n in self._numbers for n in self._numbers if n > 1):
            return True  # 20 at 42.50 are 850
        digits = re.sub(r"\D", "", text)
        return len(digits) >= ID_DIGITS and digits in self._joined

    def has_id(self, text: str) -> bool:
        return re.sub(r"[\W_]+", "", text.casefold()) in self._joined

    def has_date(self, month: int, day: int) -> bool:
        return (month, day) in self._dates or {month, day} <= self._numbers

    def has_name(self, word: str) -> bool:
        word = word.removesuffix("'s").casefold()
        return word in self._words or any(known.startswith(word) for known in self._words)


def invented(message: str, grounds: Grounds, *, answering: bool) -> list[str]:
    """What the message states and nobody has given the user, in its own spelling."""
    found: list[str] = []
    rest = _LISTED.sub(" ", message.replace("\u2019", "'"))
    rest = _DOTTED.sub(r"\1/\2/\3", rest)
    for text in _ID.findall(rest):
        telling = answering or sum(c.isdigit() for c in text) >= ID_DIGITS
        if telling and not grounds.has_id(text):
            found.append(text)
    rest = _ID.sub(" ", rest)
    if any(c.isdigit() for c in rest):
        found += _invented_numbers(rest, grounds, answering=answering)
    if answering:
        found += _invented_names(rest, grounds)
    return found


def _invented_numbers(text: str, grounds: Grounds, *, answering: bool) -> list[str]:
    readings: dict[frozenset[int], list[tuple[int, int]]] = {}
    for _, month, day in dates_in(text):  # of a date in slashes both readings are there
        readings.setdefault(frozenset((month, day)), []).append((month, day))
    wrong = [r[0] for r in readings.values() if not any(grounds.has_date(*date) for date in r)]
    if wrong:
        return [f"{month:02d}-{day:02d}" for month, day in wrong]
    years = {str(year) for year, _, _ in dates_in(text) if year}
    least = 0 if answering else SMALL_NUMBER
    return [
        number
        for number in _NUMBER.findall(text)
        if number not in years
        and float(number.replace(",", "")) > least
        and not grounds.has_number(number)
    ]


def _invented_names(text: str, grounds: Grounds) -> list[str]:
    words = text.split()
    capitals = list(_CAPITAL.finditer(text))
    if len(capitals) > SHOUTING * len(words) and len(words) > 3:
        return []  # a text in capitals says nothing by them
    return [
        match[0]
        for match in capitals
        if not _START.search(text[: match.start()])
        and match[0].removesuffix("'s").casefold() not in _NO_NAMES
        and not grounds.has_name(match[0])
    ]
