"""The day on which a conversation runs, as far as anything in it says so."""

from collections.abc import Iterable, Mapping
from datetime import date
from functools import lru_cache
from typing import Any

from synth.rubrics.reading.days import days_in
from synth.rubrics.reading.locales import CODES, cleaned, language_of, locale, lowered
from synth.rubrics.reading.messages import text_of
from synth.rubrics.reading.sentences import sentences_in

_KEYS = ("today", "now", "current_date", "current_time", "current_datetime")
"""Fields of a result that tell it."""


def today_of(messages: Iterable[Mapping[str, Any]], results: Iterable[Any]) -> date | None:
    """From the instructions, else from a tool's result; None where neither tells it."""
    for message in messages:
        if message["role"] == "system" and (day := _told(text_of(message))):
            return day
    for result in results:
        for key in _KEYS if isinstance(result, Mapping) else ():
            if isinstance(said := result.get(key), str) and (day := _dated(said, "en")):
                return day
    return None


@lru_cache(maxsize=256)
def _told(instructions: str) -> date | None:
    language = language_of(instructions)
    text = cleaned(instructions)
    for code in dict.fromkeys([language or "en", *CODES]):
        table = locale(code)
        for start, end in sentences_in(text, table):
            sentence = lowered(text[start:end])
            if table.find("today", sentence) and (day := _dated(sentence, code)):
                return day
    return None


def _dated(text: str, code: str) -> date | None:
    """The first day that a text names in full."""
    for reading in days_in(lowered(text), locale(code), None):
        for year, month, day in reading.days:
            if year and month and day:
                try:
                    return date(year, month, day)
                except ValueError:
                    continue
    return None
