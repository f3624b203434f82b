"""Dates and times of day in their usual spellings, with months in any language of ours, as what
they mean."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from synth.rephrasing.facts.calendar import ALSO_WORDS, MONTHS, SHORT_MONTHS
from synth.rephrasing.facts.clock import HALF_DAY
from synth.rephrasing.facts.text import letter_runs

_SPELT_MONTHS = (
    {form: number for name, number in MONTHS.items() for form in (name, name.title())}
    | {name: number for name, number in SHORT_MONTHS.items()}
    | {"Sept": 9}
)
del _SPELT_MONTHS["may"], _SPELT_MONTHS["march"]  # words of English without a capital
_FIGURES = re.compile(r"\d[-/.:]\d|\d ?(?:[apAP]\.?[mM]\b|[hH] ?\d)")
"""Where none of this is, there is no date in figures, nor a time."""

_IN_FIGURES = re.compile(
    r"(?=\d)(?:(?<![\d-])(?P<y1>\d{4})-(?P<m1>\d{2})(?:-(?P<d1>\d{2}))?(?![\d-])"
    r"|(?<![\d/.-])(?P<a>\d{1,2})(?P<sep>[/.-])(?P<b>\d{1,2})(?P=sep)(?P<y2>\d{4})(?![\d/])"
    r"|(?<![\d/.])(?P<a2>\d{1,2})\.(?P<b2>\d{1,2})\.(?!\d)"
    r"|(?<=[a-z] )(?P<a3>\d{1,2})/(?P<b3>\d{1,2})(?![\d/]))"
)
_BEFORE_DATE = re.compile(r"\b(?:on|from|to|until|since|le|du|au|el|al|am|vom|bis) $")


@lru_cache(maxsize=1024)
def _named_dates(names: frozenset[str]) -> re.Pattern[str]:
    """Dates with one of these names of months."""
    month = "|".join(sorted(names, key=len, reverse=True))
    return re.compile(
        rf"\b(?P<n1>{month})\b\.?(?: (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?!\d))?"
        r"(?:(?:,| of| del?)? ?(?P<y3>[12]\d{3})(?!\d))?"
        r"|(?=\d)(?<!\d)(?P<d3>\d{1,2})(?:st|nd|rd|th|er|\.|\u00ba)?(?: of| de)? "
        rf"(?P<n2>{month})\b\.?(?:(?:,| del?)? (?P<y4>[12]\d{{3}})(?!\d))?"
    )


_TIME = re.compile(
    r"(?=\d)(?:(?<![\d:.])(?P<h>\d{1,2})(?::(?P<m>\d{2})(?::\d{2})?)? ?(?P<half>[ap])\.?m\b\.?"
    r"|(?<![\d:])(?P<h2>[01]?\d|2[0-4])(?::|[ ]?h[ ]?)(?P<m2>[0-5]\d)(?::[0-5]\d)?(?![\d:]))",
    re.IGNORECASE,
)


class Moment(NamedTuple):
    """A date, or a time of day (minutes after midnight)."""

    year: int | None
    month: int | None
    day: int | None
    minute: int | None
    text: str
    start: int
    end: int

    def agrees(self, other: "Moment") -> bool:
        """Whether both can be the same: what one leaves open does not part them."""
        if self.minute is not None and other.minute is not None:
            is_open = self.is_of_half_day or other.is_of_half_day
            apart = abs(self.minute - other.minute)
            return apart == 0 or (is_open and apart == HALF_DAY)
        if self.minute is not None or other.minute is not None:
            return False
        is_turned = (self.month, self.day) == (other.day, other.month)
        if is_turned and (self.is_in_any_order or other.is_in_any_order):
            return self.year is None or other.year is None or self.year == other.year
        pairs = (self.year, other.year), (self.month, other.month), (self.day, other.day)
        return all(a is None or b is None or a == b for a, b in pairs) and any(
            a is not None and a == b for a, b in pairs
        )

    @property
    def is_of_half_day(self) -> bool:
        """Whether a time leaves open if it is before noon."""
        return self.minute is not None and self.minute < HALF_DAY + 60 and "m" not in self.text

    @property
    def is_in_any_order(self) -> bool:
        """Whether day and month may stand the other way round: "3/4/2026"."""
        return "/" in self.text and self.day is not None and self.day <= 12

    @property
    def months(self) -> set[int]:
        """The month, and what it may be where day and month stand in any order."""
        return {n for n in (self.month, self.is_in_any_order and self.day) if n}

    @property
    def numbers(self) -> set[int]:
        """What of it a text may also say by itself."""
        return {n for n in (self.year, self.day) if n is not None}


@lru_cache(maxsize=256)
def dates_of(text: str) -> tuple[Moment, ...]:
    """Dates with a month's name, dates in figures, then times in figures."""
    dates: list[Moment] = []
    if names := _SPELT_MONTHS.keys() & letter_runs(text):
        named = _named_dates(frozenset(names))
        dates += [moment for match in named.finditer(text) for moment in _read_named(match)]
    if _FIGURES.search(text):
        dates += [moment for match in _IN_FIGURES.finditer(text) for moment in _read(match)]
        dates += [_time(match) for match in _TIME.finditer(text)]
    return tuple(dates)


def _read_named(match: re.Match[str]) -> Iterator[Moment]:
    part = match.groupdict()
    name = part["n1"] or part["n2"]
    year, day = part["y3"] or part["y4"], part["d2"] or part["d3"]
    if name.lower() in ALSO_WORDS and not (year or day):
        return  # more often the verb
    yield from _moments(match, year, _SPELT_MONTHS[name], day)


def _read(match: re.Match[str]) -> Iterator[Moment]:
    part = match.groupdict()
    if part["y1"]:
        year, month, day = part["y1"], int(part["m1"]), part["d1"]
    elif part["a3"] and not _BEFORE_DATE.search(
        match.string, max(0, match.start() - 8), match.start()
    ):
        return  # a fraction
    elif day := part["a2"] or part["a3"]:
        year, month = None, int(part["b2"] or part["b3"])
    else:
        year, month, day = part["y2"], int(part["b"]), part["a"]
        if month > 12:  # the month first
            month, day = int(day), part["b"]
    yield from _moments(match, year, month, day)


def _moments(
    match: re.Match[str], year: str | None, month: int, day: str | None
) -> Iterator[Moment]:
    """None where there is no such day."""
    if 1 <= month <= 12 and (day is None or 1 <= int(day) <= 31):
        yield Moment(
            int(year) if year else None,
            month,
            int(day) if day else None,
            None,
            match[0].strip(" ,"),
            *match.span(),
        )


def _time(match: re.Match[str]) -> Moment:
    part = match.groupdict()
    hour, minute = int(part["h"] or part["h2"]), int(part["m"] or part["m2"] or 0)
    if part["half"]:
        hour = hour % 12 + (12 if part["half"].lower() == "p" else 0)
    return Moment(None, None, None, 60 * hour + minute, match[0], *match.span())
