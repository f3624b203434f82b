"""Values in a person's words: identifiers, dates, times, numbers, quotations, names.

A mention keeps where it stands, so that the words before it can tell which parameter it is for.
"""

import re
from bisect import bisect
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from offline_llm.reading.words import STOP, split, stem, stems, table

MONTHS = table(
    "january february march april may june july august september october november december"
)
DAYS = table("monday tuesday wednesday thursday friday saturday sunday")
NUMBERS = table("zero one two three four five six seven eight nine ten eleven twelve")
_KEPT = frozenset(table("from to"))
"""Prepositions that tell two values of one kind apart."""
_GLUE = _KEPT | frozenset(table("of in per"))
_LIST = re.compile(r"\s*(?:,|and|or|&|, and|\s)\s*", re.IGNORECASE)
_MONTH = "(" + "|".join(f"{m}|{m[:3]}" for m in MONTHS) + ")"
_CLOCK = r"(?:T|\s+at\s+|\s+|,\s*)?"


@dataclass(frozen=True)
class Mention:
    kind: str
    """datetime, date, time, number, id, email, url, path, zone, quoted, name, or word: one in
    lower case that is said to be something's value."""
    text: str
    """The value, dates and times in ISO form, quotations without their marks."""
    start: int
    end: int
    left: tuple[str, ...]
    """Stems of the noun phrase right before it, which says what it is: `slot starts` before
    `at 9:00`. Empty when it follows another value or a bare preposition."""
    right: tuple[str, ...]
    """Stems of the three words after it: a unit, as a rule."""


def today_of(text: str) -> str:
    """The first ISO date in a system prompt, which says what day it is there; else empty."""
    found = re.search(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)", text)
    return found.group() if found else ""


@lru_cache(maxsize=1024)
def mentions(text: str, today: str) -> tuple[Mention, ...]:
    """Every value in the text, in order, no two overlapping; the most telling form wins."""
    taken: list[tuple[int, int, str, str]] = []  # in order, so that only neighbours can overlap
    for kind, pattern, value_of in _FORMS:
        for match in pattern.finditer(text):
            start, end = match.span("v") if "v" in pattern.groupindex else match.span()
            place = bisect(taken, (end,))
            if place and taken[place - 1][1] > start:
                continue
            value = value_of(match, today)
            if value:
                taken.insert(place, (start, end, kind, value))
    found: list[Mention] = []
    last = 0
    for start, end, kind, value in taken:
        between = text[last:start]
        listed = found and _LIST.fullmatch(between)
        left = found[-1].left if listed else _label(between)
        if kind == "word" and not left:
            continue  # `what is pending` gives no value
        found.append(Mention(kind, value, start, end, left, stems(text[end : end + 40])[:3]))
        last = end
    return tuple(found)


def _label(before: str) -> tuple[str, ...]:
    """The last noun phrase of the text: prepositions and a verb at its end are passed over, an
    article or mark of punctuation begins it."""
    clause = re.split(r"[.;:!?,(]\s|:$|\n", before.rstrip(" '\"(`"))[-1]
    tokens = split(clause)[-10:]
    if tokens[-1:] == ["for"]:
        return ()  # whoever it is for, the words before say what is done
    while tokens and tokens[-1] in STOP and tokens[-1] not in _KEPT:
        tokens.pop()
    label: list[str] = []
    for token in reversed(tokens):
        if token in STOP and token not in _GLUE:
            break
        label.append(token)
    return tuple(stem(t) for t in reversed(label[:6]) if t not in STOP or t in _KEPT)


def _as_is(match: re.Match[str], today: str) -> str:
    return match["v"].strip() if "v" in match.re.groupindex else match.group()


def _date(match: re.Match[str], today: str) -> str:
    parts = match.groupdict()
    if parts.get("iso"):
        return parts["iso"]
    month = next(i for i, m in enumerate(MONTHS, 1) if m.startswith(parts["m"].lower()[:3]))
    try:
        return date(int(parts["y"] or today[:4] or 0), month, int(parts["d"])).isoformat()
    except ValueError:
        return ""


def _datetime(match: re.Match[str], today: str) -> str:
    day, time = _date(match, today), _time(match, today)
    seconds = match.groupdict().get("s") or "00"
    return f"{day}T{time}:{seconds}" if day and time else ""


def _time(match: re.Match[str], today: str) -> str:
    hour, minute, half = int(match["h"]), int(match["n"] or 0), (match["half"] or "").lower()[:1]
    hour = hour % 12 + 12 * (half == "p") if half else hour
    return f"{hour:02d}:{minute:02d}" if hour < 24 and minute < 60 else ""


def _relative(match: re.Match[str], today: str) -> str:
    if not today:
        return ""
    start, word = date.fromisoformat(today), match.group().lower().split()[-1]
    shift = {"tomorrow": 1, "yesterday": -1}.get(word, 0)
    if word in DAYS:
        shift = (DAYS.index(word) - start.weekday() - 1) % 7 + 1
    return (start + timedelta(days=shift)).isoformat()


def _number(match: re.Match[str], today: str) -> str:
    text = match["v"].replace(",", "")
    return str(NUMBERS.index(text.lower())) if text.isalpha() else text


def _name(match: re.Match[str], today: str) -> str:
    """Capitalised words; a single one that begins a longer sentence is no name."""
    words = match["v"].split()
    while words and words[0].lower() in _OPENERS:
        words = words[1:]
    before, after = match.string[: match.start("v")].rstrip(), match.string[match.end("v") :]
    begins = not before or before[-1] in ".!?:\n"
    if not words or (len(words) == 1 and begins and re.match(r"\s+\w", after)):
        return ""
    return match["v"][match["v"].find(words[0]) :]


_OPENERS = STOP.union(MONTHS, DAYS).union(
    table(
        "next good morning afternoon evening ok okay sure oh well after before first second then"
        " finally id ids regarding concerning given once sorry great perfect use set change update"
        " cancel book find show list tell check move send add remove make get give put keep take"
        " usd eur gbp utc"
    )
)
_ISO = r"(?P<iso>\d{4}-\d{2}-\d{2})"
_WORDY_DAY = rf"(?P<m>{_MONTH})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<y>\d{{4}}))?(?!\d)"
_DAY_WORDY = (
    rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m>{_MONTH})\b\.?(?:,?\s+(?P<y>\d{{4}}))?"
)
_TIME = r"(?P<h>\d{1,2})(?::(?P<n>\d{2}))(?::(?P<s>\d{2}))?\s*(?P<half>[ap]\.?m\.?)?(?![\d:])"
_TIME_HALF = r"(?P<h>\d{1,2})(?::(?P<n>\d{2}))?\s*(?P<half>[ap]\.?m\b\.?)"
_CAPITAL = r"[A-Z][\w'\-]*[a-z]\w*|[A-Z]\."

_DAYS_SAID = (
    rf"\b(?:(?:next|this|on|coming)\s+)(?:{'|'.join(DAYS)})\b"
    r"|\b(?:today|tonight|tomorrow|yesterday)\b"
)
_NAMED = (
    rf"(?P<v>\b(?:{_CAPITAL})"
    rf"(?:[ ](?:(?:of|de|van|von|der|la|the|and|&)[ ])?(?:{_CAPITAL}|[A-Z]\b|\d+\b))*)"
)
_SAID = r"(?:\bis|:)\s+(?P<v>[a-z][a-z0-9-]{2,30})(?=[.,;]|\s+and\s+(?:the|it)\b|\s*$)"
_DAYS_FORMS = (_ISO, _WORDY_DAY, _DAY_WORDY)
_CODE = r"\b(?=[A-Za-z0-9]*[A-Za-z])(?:[A-Z0-9]+(?:[-_][A-Za-z0-9]+)*\d[\w-]*)\b"
_AMOUNT = r"(?<![\w.])[$\u20ac\u00a3]?\s?(?P<v>-?\d[\d,]*(?:\.\d+)?)(?![\w])"

_FORMS = [
    (kind, re.compile(pattern, flags), value_of)
    for kind, pattern, flags, value_of in (
        ("quoted", r'"(?P<v>[^"\n]{1,600})"', 0, _as_is),
        ("quoted", r"(?<!\w)'(?P<v>[^'\n]{1,600})'(?!\w)", 0, _as_is),
        ("quoted", r"`(?P<v>[^`\n]{1,600})`", 0, _as_is),
        ("url", r"https?://[^\s<>\"']+[^\s<>\"'.,;!?)]", 0, _as_is),
        ("email", r"[\w.+-]+@[\w-]+\.[\w.-]*\w", 0, _as_is),
        *(
            ("datetime", rf"\b{day}{_CLOCK}{time}", re.IGNORECASE, _datetime)
            for day in _DAYS_FORMS
            for time in (_TIME, _TIME_HALF)
        ),
        *(("date", rf"\b{day}", re.IGNORECASE, _date) for day in _DAYS_FORMS),
        ("zone", r"\b[A-Z][A-Za-z]+(?:/[A-Z][A-Za-z_+\-0-9]+)+\b", 0, _as_is),
        ("path", r"(?<![\w/])(?:~|\.{1,2})?/[\w.@+\-]+(?:/[\w.@+\-]*[\w])*", 0, _as_is),
        ("path", r"\b[\w\-]+(?:/[\w.\-]+)+\b|\b[\w\-]+\.[a-z]{1,4}\b(?!\.\w)", 0, _as_is),
        ("time", rf"\b{_TIME}", re.IGNORECASE, _time),
        ("time", rf"\b{_TIME_HALF}", re.IGNORECASE, _time),
        ("id", _CODE, 0, _as_is),
        ("id", r"\bv?\d+\.\d+\.\d+(?::[\w./-]+\w)?|\bv\d+\.\d+\b", 0, _as_is),
        ("id", r"\b(?=[a-f]*\d)[0-9a-f]{7,40}\b", 0, _as_is),
        ("id", r"\b\d{2,}-\d[\d-]*\b|\+\d[\d ()-]{6,}\d", 0, _as_is),
        ("number", _AMOUNT, 0, _number),
        ("date", _DAYS_SAID, re.IGNORECASE, _relative),
        ("name", _NAMED, 0, _name),
        ("word", _SAID, 0, _as_is),
        ("number", rf"\b(?P<v>{'|'.join(NUMBERS[2:])})\b", re.IGNORECASE, _number),
    )
]
"""Kind, pattern, and what its match says; what an earlier form takes no later one sees."""


def shape(text: str) -> str:
    """Letters as A or a, digits as 9, runs shortened: `AP-1001` and `BX-7` are both `A-9`."""
    kinds = (
        "9" if c.isdigit() else "A" if c.isupper() else "a" if c.isalpha() else c for c in text
    )
    return re.sub(r"(.)\1+", r"\1", "".join(kinds))
