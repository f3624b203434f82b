"""Months and weekdays by name, in the languages of `units.LANGUAGES`, from Babel's locale data."""

import re
from typing import NamedTuple

from babel.dates import get_day_names, get_month_names

from synth.rephrasing.facts.units import LANGUAGES

ALSO_WORDS = frozenset(("may", "march", "mars"))
"""Names of months that are words as well: they count in a date alone, as short forms do."""

_SHORT_DAY = re.compile(
    r"\b(?:[Mm]on|[Tt]ue|[Tt]hu|[Ff]ri)\b|\b(?:Wed|Sat|Sun)\b(?=\.?,? ?\d|[-\u2013/])"
    r"|(?<=[-\u2013/])(?:Wed|Sat|Sun)\b"
)
"""Those that are words as well ("the cat sat in the sun") count beside a figure or a dash alone."""


def _months(language: str) -> dict[str, int]:
    names = get_month_names("wide", locale=language).items()
    return {str(name).lower(): number for number, name in names}


def _days(language: str) -> dict[str, int]:
    names = {str(name).lower(): n for n, name in get_day_names("wide", locale=language).items()}
    return names | {f"{name}s": number for name, number in names.items()}


_MONTHS = {language: _months(language) for language in LANGUAGES}
_DAYS = {language: _days(language) for language in LANGUAGES}
_SHORT_DAYS = {str(name): n for n, name in get_day_names("abbreviated", locale="en").items()}
_SHORT_LOWER = frozenset(name.lower() for name in _SHORT_DAYS)
SHORT_MONTHS = {str(name): n for n, name in get_month_names("abbreviated", locale="en").items()}
"""Of English, with a capital."""

MONTHS = {name: number for names in _MONTHS.values() for name, number in names.items()}
"""Full name of a month in any language, in lower case -> its number from 1."""

_ALL_DAYS = {name: number for names in _DAYS.values() for name, number in names.items()}


class NamedTimes(NamedTuple):
    months: set[int]
    """From 1."""
    days: set[int]
    """From 0 for Monday."""


def named_in(text: str, words: frozenset[str], language: str) -> NamedTimes:
    """Months and weekdays that stand by their name, among the text's `words` in small letters; in
    any of the languages where its own is none of them."""
    months, days = _MONTHS.get(language, MONTHS), _DAYS.get(language, _ALL_DAYS)
    named = NamedTimes(
        {months[word] for word in (months.keys() & words) - ALSO_WORDS},
        {days[word] for word in days.keys() & words},
    )
    if language == "en" and not _SHORT_LOWER.isdisjoint(words):
        named.days.update(_SHORT_DAYS[name.title()] for name in _SHORT_DAY.findall(text))
    return named
