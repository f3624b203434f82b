"""How often something happens and for what time it is told: "every week", "40 litres an hour"."""

import re
from fractions import Fraction
from functools import lru_cache

from synth.rephrasing.facts.units import UNITS

Period = tuple[str, Fraction | int]
"""(dimension, size) of a unit of time."""

_ADVERBS = {
    "second": "",
    "minute": "",
    "hour": "hourly st\u00fcndlich",
    "day": "daily t\u00e4glich quotidien diario diaria",
    "week": "weekly w\u00f6chentlich hebdomadaire semanal",
    "month": "monthly monatlich mensuel mensual",
    "year": "yearly annual annually j\u00e4hrlich annuel anual",
}
_PERIOD_OF = {adverb: UNITS[unit] for unit, words in _ADVERBS.items() for adverb in words.split()}
_ENDINGS = re.compile(r"(?:lement|mente|les?|e[nrms]?|s)$")

_EVERY_WORD = "per every each pro je jede jeden jeder jedem jedes par chaque por cada ogni"
_EACH = frozenset(_EVERY_WORD.split())
_EVERY = re.compile(rf"\b(?:{'|'.join(_EACH)}) ([^\W\d_]{{2,12}})\b", re.IGNORECASE)
_AFTER = re.compile(
    r"(?: (?!(?:for|in|within|after|over|of|f\u00fcr|nach|pendant|durante)\b)[^\W\d]{1,20}){0,2}"
    r"(?: (?:per|a|an|each|every|pro|je|par|por|al|\u00e0|chaque|cada|in der|im) |/"
    r"| \u00e0 l['\u2019])"
    r"(?:la )?([^\W\d_]{1,12})\b",
    re.IGNORECASE,
)


def rate_after(text: str, end: int) -> Period | None:
    """The time for which a quantity that ends here is told."""
    found = _AFTER.match(text, end)
    return period_of(found[1].lower()) if found else None


@lru_cache(maxsize=256)
def periods_in(text: str, words: frozenset[str]) -> frozenset[Period]:
    """After which something is said to come again. `words`: its words in small letters."""
    found = {_of_adverb(word) for word in words}
    if not _EACH.isdisjoint(words):
        found |= {period_of(word.lower()) for word in _EVERY.findall(text)}
    return frozenset(period for period in found if period is not None)


@lru_cache(maxsize=256)
def times_in(words: frozenset[str]) -> frozenset[Period]:
    """Units of time that are named in any way."""
    found = (period_of(word) or _of_adverb(word) for word in words if len(word) > 2)
    return frozenset(period for period in found if period is not None)


@lru_cache(maxsize=65_536)
def period_of(word: str) -> Period | None:
    """Of the name of a unit of time."""
    found = UNITS.get(word) or UNITS.get(word.removesuffix("s"))
    return found if found and found[0] in ("time", "months") else None


@lru_cache(maxsize=65_536)
def _of_adverb(word: str) -> Period | None:
    return _PERIOD_OF.get(word) or _PERIOD_OF.get(_ENDINGS.sub("", word))
