"""Facts in a user's words that come from nowhere: ids, dates, times, amounts and names that nothing
the user could know holds, and that do not follow from it by simple reckoning.

Only what goes into a call, or is exact and answers a question, is certain: an id, another surname
behind a known first name, and a date, a time or an amount in place of the one that the user was
given and does not tell. Everything else that is new is doubtful at most, and what people say in
passing (durations, shares, small numbers, ages below a dozen, years, single names) is nothing at
all.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from synth.rubrics.reading.clock import DAY
from synth.rubrics.reading.days import CalendarDay
from synth.rubrics.reading.locales import cleaned, language_of, locale
from synth.rubrics.reading.readings import READ_IN, ValueReading, read
from synth.rubrics.values import close, mentions, squeezed

SMALL_NUMBER = 12
"""Up to here a number may be a figure of speech."""

ID_DIGITS = 3
"""Digits that make a word an id: MP3 and B2B are words."""

LARGE_NUMBER = 100
"""From here on a plain number in an answer is no age and no count of people."""

LONG_NUMBER = 5
"""Digits from which a plain number is an id: a code, an account, a telephone."""

YEARS = range(1900, 2101)

WEEK = 7
"""Days: so near to a day that the assistant spoke of a user may choose another."""

MOST_RECKONED = 40
"""Known numbers whose sums, differences and products are looked at, the last ones first."""

EVERYDAY = (2.0, 12.0)
"""Numbers by which anybody multiplies and divides: halves, months."""

_DIGITS = re.compile(r"\d+")
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.\w+)+\b")
_LISTED = re.compile(r"^\s*\d{1,2}[.)]\s", re.MULTILINE)
_ORDINARY = re.compile(r"[A-Za-z]?[a-z\u00df-\u00ff]{2,}")
"""A part of a hyphenated word that makes it a word: 100-Euro-Gutschein."""
_CAPITAL = r"[A-Z\u00c0-\u00de]\w[\w'-]*[a-z\u00df-\u024f][\w-]*"
_NAME = re.compile(rf"\b{_CAPITAL}(?: {_CAPITAL})*")
_START = re.compile(r"(?:^|[.!?:;\n\"(\u201c-])\s*$")


class Invention(NamedTuple):
    words: str
    """As the message puts it."""
    is_sure: bool
    """Whether there is no other way to see it."""


class Grounds:
    """Everything that the user could know, as what its words are held against."""

    def __init__(self, texts: Iterable[str], *, last: str = "", unsaid: Iterable[Any] = ()) -> None:
        """`last`: what was said to the user last. `unsaid`: values of its facts that it has not
        told yet."""
        self._texts = list(texts)
        self._last = last
        self.unsaid = list(unsaid)

    @cached_property
    def _readings(self) -> list[ValueReading]:
        return [r for text in self._texts for r in read(text, language_of(text)).readings]

    @cached_property
    def _last_readings(self) -> tuple[ValueReading, ...]:
        return read(self._last, language_of(self._last)).readings

    @cached_property
    def _joined(self) -> str:
        """Letters and digits only: however an id or a telephone number is grouped."""
        return squeezed(" ".join(self._texts))

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(re.findall(r"[^\W\d_]+", " ".join(self._texts).casefold()))

    @cached_property
    def _numbers(self) -> list[float]:
        """The likeliest to be reckoned with first: those with a unit, then the last ones."""
        said = [n for r in reversed(self._readings) for n in r.numbers]
        return list(dict.fromkeys(said))

    @cached_property
    def _loose(self) -> frozenset[float]:
        """Every run of digits, and parts of dates and times."""
        digits = {float(d) for text in self._texts for d in _DIGITS.findall(text)}
        parts = {float(p) for r in self._readings for day in r.days for p in day if p}
        hours = {float(m // 60) for r in self._readings for m in r.minutes}
        return frozenset({*digits, *parts, *hours, *self._numbers})

    @cached_property
    def _spans(self) -> list[ValueReading]:
        return [r for r in self._readings if r.unit in ("minutes", "hours", "days", "weeks")]

    def has_id(self, words: str) -> bool:
        known = squeezed(words)
        digits = re.sub(r"\D", "", known)
        prefixed = len(digits) >= ID_DIGITS >= len(known) - len(digits)  # no SUMMER2026 of a year
        return known in self._joined or (prefixed and digits in self._joined)

    def has_number(self, reading: ValueReading) -> bool:
        parts = [int(part) for part in _DIGITS.findall(reading.words)]
        if len(parts) == 2 and not reading.unit and parts[0] <= 31 and parts[1] <= 59:
            return self._loose.issuperset(parts)  # 12.3 is a day, 11.30 a time
        return any(self._follows(n) or self._rounds(n, reading.decimals) for n in reading.numbers)

    def _rounds(self, value: float, decimals: int) -> bool:
        """Whether it is a known number, rounded as it is written: 35 for 34.90, 1200 for 1180."""
        digits = str(int(abs(value)))
        step = 10.0 ** (-decimals or len(digits) - len(digits.rstrip("0")))
        return any(abs(value - n) < step and n != value for n in self._numbers if n % step)

    def number_is_open(self, text: str) -> bool:
        """Whether the user was given a number that it has told nowhere yet, and not in this."""
        return any(
            isinstance(value, int | float) and not mentions(text, value) for value in self.unsaid
        )

    def name_is_open(self, text: str) -> bool:
        """As `number_is_open`, of a name of two words or more."""
        return bool(self._open_names) and not any(mentions(text, n) for n in self._open_names)

    def is_open_first_name(self, word: str) -> bool:
        return any(name.split()[0] == word for name in self._open_names)

    @cached_property
    def _open_names(self) -> list[str]:
        return [v for v in self._open_texts if " " in v and _NAME.fullmatch(v)]

    def date_is_open(self, text: str) -> bool:
        """As `number_is_open`, of a date."""
        dates = [value for value in self._open_texts if any(read(value).of("date"))]
        return bool(dates) and not any(mentions(text, value) for value in dates)

    def amount_is_open(self, text: str) -> bool:
        """As `number_is_open`, also of amounts that the user was given with their unit."""
        amounts = [
            value
            for value in self._open_texts
            if any(r.unit or r.decimals for r in read(value).of("number"))
        ]
        return self.number_is_open(text) or any(not mentions(text, value) for value in amounts)

    @cached_property
    def open_times(self) -> list[int]:
        """Minutes since midnight of the times that the user was given and has not told yet."""
        said = [r for value in self._open_texts for r in read(value).of("time")]
        return [r.minutes[0] for r in said]

    @cached_property
    def _open_texts(self) -> list[str]:
        return [value for value in self.unsaid if isinstance(value, str)]

    def _follows(self, value: float) -> bool:
        if value in self._loose or {value * 100, value / 100} & self._loose:
            return True
        if value.is_integer() and value >= 100 and str(int(value)) in self._joined:
            return True
        numbers = self._numbers[:MOST_RECKONED]
        if close(sum(numbers), value):
            return True
        return any(
            any(close(abs(value), abs(result)) for result in _reckoned(a, b))
            for a, b in itertools.combinations([*numbers, *EVERYDAY], 2)
        )

    def has_day(self, reading: ValueReading) -> bool:
        return not reading.days or any(map(self._has_day, reading.days))

    def _has_day(self, day: CalendarDay) -> bool:
        year, month, number = day
        if month is None or number is None:
            return True
        known = [other for r in self._readings for other in r.days]
        if any(_same_day(day, other) for other in known):
            return True
        if year is None and {month, number} <= self._loose and not any(o[1] for o in known):
            return True
        return any(_same_day(day, near) for near in self._near_days(known))

    def _near_days(self, known: Sequence[CalendarDay]) -> Iterator[CalendarDay]:
        """Days of the week after one that was spoken of last, and days that are a known span from
        a known one."""
        spoken = [day for r in self._last_readings for day in r.days]
        steps = {"days": 1, "weeks": WEEK}
        spans = {int(r.numbers[0]) * steps[r.unit] for r in self._spans if r.unit in steps}
        for day in spoken:
            yield from _moved(day, range(-1, WEEK + 1))
        for day in known:
            yield from _moved(day, [s for span in spans if span < 400 for s in (span, -span)])

    def has_time(self, reading: ValueReading) -> bool:
        known = {m for r in self._readings for m in r.minutes}
        halves = {(m + 12 * 60) % DAY for m in known}
        if any(m in known or m in halves for m in reading.minutes):
            return True
        length = {"minutes": 1, "hours": 60}
        spans = {r.numbers[0] * length[r.unit] for r in self._spans if r.unit in length}
        if any(abs(a - b) in spans for a in reading.minutes for b in known):
            return True
        spoken = [m for r in self._last_readings for m in r.minutes]
        return any(min(spoken) <= m <= max(spoken) for m in reading.minutes if len(spoken) > 1)

    def has_word(self, word: str) -> bool:
        word = re.sub(r"['\u2019]s$", "", word).casefold()
        return word in self._words or any(known.startswith(word) for known in self._words)


def invented(
    message: str, grounds: Grounds, *, answering: bool, acting: bool = False
) -> list[Invention]:
    """What the message states and nobody has given the user, in its own spelling. `answering`:
    whether a question was asked. `acting`: whether the words go into a call."""
    answering = answering or acting
    text = _LISTED.sub(" ", cleaned(message))
    emails = _EMAIL.findall(text)
    found = [Invention(words, answering) for words in emails if not grounds.has_id(words)]
    rest = _EMAIL.sub(" ", text)
    for reading in read(rest, language_of(rest)).readings:
        sure = _is_invented(reading, rest, grounds, answering)
        if sure and not acting:
            sure = _answers(reading, rest, grounds)
        if sure is not None:
            found.append(Invention(reading.words, sure))
    if answering:
        found += _names(rest, grounds)
    return found


def _is_invented(
    reading: ValueReading, text: str, grounds: Grounds, answering: bool
) -> bool | None:
    """Whether it surely is; None where it is not, or not worth a word."""
    if reading.kind == "id":
        return _is_invented_id(reading.words, grounds, answering)
    if reading.kind == "date":
        return None if not reading.is_sure or grounds.has_day(reading) else answering
    if reading.kind == "time":
        if not answering or grounds.has_time(reading):
            return None
        return _replaces_time(text, grounds)
    if not reading.is_sure or reading.unit not in ("", "money") or grounds.has_number(reading):
        return None
    return _is_invented_number(reading, text, grounds, answering)


def _answers(reading: ValueReading, text: str, grounds: Grounds) -> bool:
    """Whether it may be what was asked for. Beside an answer people speak of other days and prices
    (a birthday, the price of the call), so a date or an amount must stand in place of the answer:
    the user tells nothing of what it was given, or not the one of its kind."""
    if grounds.unsaid and not any(mentions(text, value) for value in grounds.unsaid):
        return True
    if reading.kind == "date":
        return grounds.date_is_open(text)
    digits = len(re.sub(r"\D", "", reading.words))
    if reading.kind == "number" and (reading.unit or reading.decimals or digits < LONG_NUMBER):
        return grounds.amount_is_open(text)
    return True


def _is_invented_id(words: str, grounds: Grounds, answering: bool) -> bool | None:
    digits = sum(map(str.isdigit, words))
    if digits < ID_DIGITS or grounds.has_id(words):
        return None
    if any(_ORDINARY.fullmatch(part) for part in re.split(r"[-_]", words)):
        return None
    return answering and (digits > ID_DIGITS or any(mark in words for mark in "-_"))


def _is_invented_number(
    reading: ValueReading, text: str, grounds: Grounds, answering: bool
) -> bool | None:
    value = abs(reading.numbers[0])
    digits = len(re.sub(r"\D", "", reading.words))
    if value.is_integer() and (value <= SMALL_NUMBER or value in YEARS):
        return None
    if not reading.unit and not reading.decimals and digits >= LONG_NUMBER:
        return answering
    if reading.decimals >= 2 or (reading.unit and value % 10):
        return answering
    doubtful = answering and (reading.unit or value >= LARGE_NUMBER)
    return False if doubtful or grounds.number_is_open(text) else None


def _replaces_time(text: str, grounds: Grounds) -> bool:
    """Whether a time stands where the user was given another one that it has not told yet."""
    said = {m for r in read(text, language_of(text)).of("time") for m in r.minutes}
    given = grounds.open_times
    return bool(given) and not any(minutes in said for minutes in given)


def _names(text: str, grounds: Grounds) -> Iterator[Invention]:
    """Names of which nobody has spoken: sure where a first name that the user was given goes on
    with another surname, doubtful where one stands in place of a name that it was given. A single
    name counts only in a message that tells nothing else that was asked for."""
    if not grounds.name_is_open(text):
        return
    language = language_of(text)
    table = locale(language or READ_IN)
    lone = 1 if any(mentions(text, value) for value in grounds.unsaid) else 0
    for match in _NAME.finditer(text):
        words = match[0].split()
        if _START.search(text[: match.start()]) and not grounds.is_open_first_name(words[0]):
            words = words[1:]  # its capital says nothing
        named = [w for w in words if w.lower() not in {*table.months, *table.weekdays}]
        new = [word for word in named if not grounds.has_word(word)]
        if new and new == words[1:2] and grounds.is_open_first_name(words[0]):
            yield Invention(match[0], True)
        elif len(new) > lone and language != "de":  # which has capital nouns
            yield Invention(match[0], False)


def _reckoned(a: float, b: float) -> Iterator[float]:
    yield from (a + b, a - b, a * b, a * b / 100)
    if b:
        yield a / b
    if a:
        yield b / a


def _same_day(a: CalendarDay, b: CalendarDay) -> bool:
    """Whether no part that both say differs, the month and the day among them."""
    if not (a[1] and a[2] and b[1] and b[2]):
        return False
    return all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))


def _moved(day: CalendarDay, steps: Iterable[int]) -> Iterator[CalendarDay]:
    year, month, number = day
    if month is None or number is None:
        return
    try:
        first = date(year or 2000, month, number)
    except ValueError:
        return
    for step in steps:
        moved = first + timedelta(step)
        yield (moved.year if year else None), moved.month, moved.day
