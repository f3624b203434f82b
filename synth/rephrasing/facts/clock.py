"""Times of day in words: "a quarter past four", "halb drei", "nueve menos cuarto"."""

import re
from collections.abc import Iterator

from synth.rephrasing.facts.number_words import numbers_in_words

_HOUR = r"(?P<hour>[^\W\d_]{2,12})"
_MINUTES = r"(?P<minutes>[^\W\d_]{3,9}(?:-[^\W\d_]{3,5})?)"
_PATTERNS = {
    "en": rf"\b{_MINUTES} (?P<sign>past|after|to|before) {_HOUR}\b",
    "de": rf"\b(?:(?P<half>halb)|{_MINUTES} (?P<sign>nach|vor)) {_HOUR}\b",
    "fr": rf"\b{_HOUR} heures? (?:(?P<sign>et|moins) (?:le )?)?{_MINUTES}\b",
    "es": rf"\blas? {_HOUR} (?P<sign>y|menos) {_MINUTES}\b",
    "it": rf"\ble {_HOUR} (?P<sign>e|meno) (?:un )?{_MINUTES}\b",
    "pt": rf"\b[\u00e0a]s {_HOUR} (?P<sign>e|menos) {_MINUTES}\b",
}
_SPELT = {language: re.compile(pattern, re.IGNORECASE) for language, pattern in _PATTERNS.items()}
_QUARTERS = frozenset(("quarter", "viertel", "quart", "cuarto", "quarto"))
_BEFORE = frozenset(("to", "before", "vor", "moins", "menos", "meno"))
_NOON = re.compile(r"\b(?:noon|midday|midnight|Mittag|Mitternacht|midi|minuit|mediod\u00eda)\b")


HALF_DAY = 720
"""Minutes."""


def times_in_words(text: str, language: str) -> Iterator[int]:
    """Minutes after noon or midnight, since words leave open which. A range such as "five to ten"
    reads as a time as well, so these answer for times in figures and are themselves asked for by
    nobody."""
    if _NOON.search(text):
        yield 0
    pattern = _SPELT.get(language)
    for match in pattern.finditer(text) if pattern else ():
        part = match.groupdict()
        hour = _number(part["hour"], language)
        minutes = 30 if part.get("half") else _number(part["minutes"] or "", language)
        if hour is not None and minutes is not None:
            before = part.get("half") or (part["sign"] or "").lower() in _BEFORE
            yield (60 * hour + (-minutes if before else minutes)) % HALF_DAY


def _number(word: str, language: str) -> int | None:
    """Of hours or minutes; a part is one of an hour."""
    if word.lower() in _QUARTERS:
        return 15
    for value, kind, start, end in numbers_in_words(word, language):
        if (start, end) == (0, len(word)):
            return int(60 * value) if kind == "part" else int(value)
    return None
