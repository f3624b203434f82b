"""Months and weekdays by name, in the languages in which texts are compared word by word."""

import re
from collections.abc import Iterator

from synth.rephrasing.fidelity.language import UNTOLD

_MONTHS = {
    "en": "january february march april may june july august september october november december",
    "de": "januar februar m\u00e4rz april mai juni juli august september oktober november dezember",
    "fr": "janvier f\u00e9vrier mars avril mai juin juillet ao\u00fbt septembre octobre novembre"
    " d\u00e9cembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre"
    " diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre"
    " dicembre",
    "pt": "janeiro fevereiro mar\u00e7o abril maio junho julho agosto setembro outubro novembro"
    " dezembro",
}
_DAYS = {
    "en": "monday tuesday wednesday thursday friday saturday sunday",
    "de": "montag dienstag mittwoch donnerstag freitag samstag sonntag",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
    "es": "lunes martes mi\u00e9rcoles jueves viernes s\u00e1bado domingo",
    "it": "luned\u00ec marted\u00ec mercoled\u00ec gioved\u00ec venerd\u00ec sabato domenica",
    "pt": "segunda-feira ter\u00e7a-feira quarta-feira quinta-feira sexta-feira s\u00e1bado"
    " domingo",
}
_SHORT = re.compile(
    r"\b(?:[Mm]on|[Tt]ue|[Tt]hu|[Ff]ri)\b|\b(?:Wed|Sat|Sun)\b(?=\.?,? ?\d|[-\u2013/])"
    r"|(?<=[-\u2013/])(?:Wed|Sat|Sun)\b"
)
"""Those that are words as well ("the cat sat in the sun") count beside a figure or a dash alone."""
_SHORT_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_ALSO_WORDS = frozenset(("may", "march", "mars"))
"""Names of months that are words as well: they count beside a figure alone."""


def months_in(text: str, language: str) -> set[int]:
    """Numbers of the months that are named, from 1; in any of the languages where it is untold."""
    languages = _MONTHS if language == UNTOLD else (language,)
    return {month for one in languages for month in _months(text.lower(), one)}


def days_in(text: str, language: str) -> set[int]:
    """Numbers of the weekdays that are named, from 0 for Monday, in the same way."""
    lower = text.lower()
    found = {
        number
        for one in (_DAYS if language == UNTOLD else (language,))
        for number, name in enumerate(_DAYS.get(one, "").split())
        if re.search(rf"\b{name}s?\b", lower)
    }
    if language == "en":
        found |= {_SHORT_DAYS.index(name.lower()) for name in _SHORT.findall(text)}
    return found


def _months(lower: str, language: str) -> Iterator[int]:
    for number, name in enumerate(_MONTHS.get(language, "").split(), start=1):
        short = name[:3] if language == "en" else name
        near = rf"\d[.\w]{{0,2}} (?:of |de )?(?:{name}|{short})\b|\b(?:{name}|{short})\b\.? \d"
        alone = name not in _ALSO_WORDS and re.search(rf"\b{name}\b", lower)
        if alone or re.search(near, lower):
            yield number
