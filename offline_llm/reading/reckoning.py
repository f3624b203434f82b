"""Questions that need no tool: the date, a date some days off, an amount over some months."""

import re
from datetime import date, timedelta

from offline_llm.reading.filling import Words
from offline_llm.reading.words import stem_set

_SUM = re.compile(r"\b(?:comes? to|in total|altogether|add up|makes?|times)\b", re.IGNORECASE)
_AHEAD = re.compile(r"\b(?:after|from|past|later than) (?:today|now)\b|\bdays? ahead\b", re.I)
_TODAY = re.compile(r"\b(?:date|day)\b.*\btoday\b|\btoday's date\b", re.IGNORECASE)


def reckoned(words: Words) -> str:
    """The answer as a sentence, or empty when the words ask for nothing of the kind."""
    numbers = [float(m.text) for m in words.mentions if m.kind == "number"]
    text = words.text
    if words.today and _AHEAD.search(text) and len(numbers) == 1 and numbers[0].is_integer():
        day = date.fromisoformat(words.today) + timedelta(days=int(numbers[0]))
        return f"{int(numbers[0])} days after today is {day.isoformat()}."
    if _SUM.search(text) and len(numbers) == 2 and stem_set("month week day year") & stem_set(text):
        return f"That comes to {round(numbers[0] * numbers[1], 2):g} in total."
    if words.today and _TODAY.search(text) and not numbers:
        return f"Today is {words.today}."
    return ""
