"""The tables of the languages: their words for numbers, amounts, dates and times, compiled once.

A table is a TOML file of this folder named by the language's code. A text in a language without a
table is recognised as such (`others.toml`), so that nobody takes Portuguese for bad Spanish.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

LETTER = "a-z\u00df-\u024f"
"""Lower-case letters at which a word of a spaced script goes on, for character classes."""

MIN_SHARE = 0.15
"""Share of function words among the words of a text from which its language counts as known."""

MIN_WORDS = 2
"""Function words from which on it does: one may stand in another language as well (plus, die)."""

SHORT_WORD = 3
"""Letters up to which the name of a number or a month stands in several languages."""

_FOLDER = Path(__file__).parent
_WORD = re.compile(rf"[{LETTER}]+(?:'[{LETTER}]+)?")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2019\u2018\u02bc", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        **dict.fromkeys("\u00a0\u202f\u2007\u2009\u3000\t", " "),
        **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"'),
        **{chr(0xFF10 + digit): str(digit) for digit in range(10)},
        **{
            "\uff1a": ":",
            "\uff08": "(",
            "\uff09": ")",
            "\uff05": "%",
            "\uff0e": ".",
            "\uffe5": "\u00a5",
        },
    }
)


def cleaned(text: str) -> str:
    """A text without Markdown's emphasis, with plain quotes, dashes and spaces: what places in a
    text refer to."""
    return re.sub(r"\*+|`+|(?<!\w)__|__(?!\w)", "", text).translate(_PLAIN)


def lowered(text: str) -> str:
    """In lower case and of the same length, so that places stay right."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


class TimePattern(NamedTuple):
    pattern: re.Pattern[str]
    minutes: int
    """Added to the hour and minute that the pattern finds."""


@dataclass(frozen=True)
class Locale:
    """What is read in a language. Patterns are for texts that are `cleaned` and `lowered`."""

    code: str
    decimal: str
    """The decimal mark; the other one of . and , groups thousands."""
    function_words: frozenset[str]
    months: Mapping[str, int]
    weekdays: Mapping[str, int]
    """Name -> 0 for Monday to 6 for Sunday."""
    number_words: Mapping[str, int]
    multipliers: Mapping[str, int]
    articles: Mapping[str, int]
    """Words that are numbers only where another number word follows."""
    ordinals: Mapping[str, int]
    units: Mapping[str, str]
    """Word -> seconds, minutes, hours, days, weeks, months or years."""
    relative_days: tuple[tuple[re.Pattern[str], int], ...]
    titles: frozenset[str]
    """Abbreviations after which a sentence goes on."""
    abbreviations: frozenset[str]
    """Abbreviations after which it goes on where no capital follows."""
    greetings: frozenset[str]
    """Words of which greetings are made, and which state nothing."""
    fillers: frozenset[str]
    """Words that may stand between labels and values and add nothing to them."""
    link_words: frozenset[str]
    patterns: Mapping[str, re.Pattern[str]]
    """Kind of words -> a pattern of any of them; one that never matches where there are none."""
    dates: tuple[re.Pattern[str], ...]
    days_alone: tuple[re.Pattern[str], ...]
    later: tuple[re.Pattern[str], ...]
    earlier: tuple[re.Pattern[str], ...]
    times: tuple[TimePattern, ...]

    def find(self, what: str, text: str) -> bool:
        """Whether a word of this kind of the table (`negations`, ...) stands in the text."""
        return self.patterns[what].search(text) is not None


@cache
def locale(code: str) -> Locale:
    """The table of a language. ValueError where it has none."""
    path = _FOLDER / f"{code}.toml"
    if code == "others" or not path.exists():
        raise ValueError(f"there is no table of the language {code!r}; known: {', '.join(CODES)}")
    return _compiled(code, tomllib.loads(path.read_text()))


CODES: tuple[str, ...] = tuple(
    sorted(path.stem for path in _FOLDER.glob("*.toml") if path.stem != "others")
)
"""Languages that have a table."""


@cache
def _function_words() -> Mapping[str, frozenset[str]]:
    others = tomllib.loads((_FOLDER / "others.toml").read_text())
    known = {code: _telling_words(locale(code)) for code in CODES if code != "zh"}
    return known | {name: frozenset(words.split()) for name, words in others.items()}


def _telling_words(table: Locale) -> frozenset[str]:
    """Words that show a language: its function words, numbers, units and days."""
    named = {*table.months, *table.weekdays, *table.number_words, *table.units}
    return table.function_words | {word for word in named if len(word) > SHORT_WORD}


def language_of(text: str, *otherwise: str) -> str | None:
    """Code of the language that a text is written in, or of the first of the texts after it that
    tells one where it is too short. None where nothing tells it, or the language has no table."""
    for part in (text, *otherwise):
        if (name := _named_language(part)) is not None:
            return name if name in CODES else None
    return None


@lru_cache(maxsize=512)
def _named_language(text: str) -> str | None:
    text = lowered(cleaned(text))
    words = _WORD.findall(text)
    if len(_HAN.findall(text)) > len(words):
        return "japanese" if re.search(r"[\u3040-\u30ff]", text) else "zh"
    counts = {
        name: sum(word in known for word in words) for name, known in _function_words().items()
    }
    best = max(counts, key=lambda name: counts[name])
    others = max(count for name, count in counts.items() if name != best)
    least = max(MIN_WORDS, MIN_SHARE * len(words))
    return best if counts[best] > others and counts[best] >= least else None


def _compiled(code: str, table: Mapping[str, Any]) -> Locale:
    numbers, amounts, dates = table["numbers"], table["amounts"], table["dates"]
    months, weekdays = _named(table["months"], 1), _named(table["weekdays"], 0)
    words, articles = _unhyphenated(_pairs(numbers["words"])), _pairs(numbers["articles"])
    ordinals = _pairs(numbers["ordinals"])
    units = {word: unit for unit, names in table["units"].items() for word in names.split()}
    spaced = code != "zh"
    halves = {key: _any(table["times"][key], spaced=False) for key in ("am", "pm")}
    hours = [word for word, value in (words | articles).items() if value <= 24]
    places = {
        "month": _group("month", months),
        "day": rf"(?P<day>(?<!\d)\d{{1,2}}|{_alternatives(ordinals)})",
        "year": r"(?P<year>\d{4})(?!\d)",
        "hour": rf"(?<![{LETTER}\d:.,])(?P<hour>\d{{1,2}}|{_alternatives(hours)})",
        "minute": rf"(?P<minute>\d{{2}}|{_alternatives(w for w, v in words.items() if v < 60)})",
        "half": rf"(?P<half>(?P<am>{halves['am']})|(?P<pm>{halves['pm']}))",
        "count": rf"(?P<count>\d+|{_alternatives([*words, *articles])})",
        "unit": _group("unit", units),
    }

    def compiled(pattern: str) -> re.Pattern[str]:
        edge = rf"(?<![{LETTER}])" if spaced else ""
        end = rf"(?![{LETTER}])" if spaced else ""
        return re.compile(f"{edge}(?:{_filled(pattern, places)}){end}")

    def all_of(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
        return tuple(map(compiled, patterns)) if months or not spaced else ()

    links = _alternatives(table["context"]["links"].split())
    context = {name: _words(entries, spaced) for name, entries in _lists(table["context"])}
    return Locale(
        code=code,
        decimal=table["decimal"],
        function_words=frozenset(table["function_words"].split()),
        months=months,
        weekdays=weekdays,
        number_words=words,
        multipliers=_pairs(numbers["multipliers"]),
        articles=articles,
        ordinals=ordinals,
        units=units,
        relative_days=tuple(
            (re.compile(_edged(phrase, spaced)), days)
            for phrase, days in _pairs(dates["relative"]).items()
        ),
        titles=frozenset(table["sentences"]["titles"].split()),
        abbreviations=frozenset(table["sentences"]["abbreviations"].split()),
        greetings=frozenset(table["plain"]["greetings"].split()),
        fillers=frozenset(table["plain"]["fillers"].split()),
        link_words=frozenset(table["context"]["links"].split()),
        patterns=context
        | _number_words(words, numbers, spaced)
        | _joining(links, context)
        | {
            "percent": _words([r"%", *amounts["percent"]], spaced),
            "currencies": _words(amounts["currencies"], spaced),
            "hundredths": _words(amounts["hundredths"], spaced),
            "nothing": _words(amounts["nothing"], spaced),
            "ordinals": _words(map(re.escape, ordinals), spaced),
            "parts": _words(numbers["parts"], spaced),
            "weekdays": _words(map(re.escape, weekdays), spaced),
            "units": _words(map(re.escape, units), spaced),
            "today": _words(dates["today"], spaced),
            "vague_days": _words(dates["vague"], spaced),
            "months": _words(map(re.escape, months), spaced),
            "halves": re.compile("|".join(halves.values())),
            "to": _words(table["times"]["to"], spaced),
            "noon": _words(table["times"]["noon"], spaced),
            "midnight": _words(table["times"]["midnight"], spaced),
        },
        dates=all_of(dates["patterns"]),
        days_alone=all_of(dates["days_alone"]),
        later=all_of(dates["later"]),
        earlier=all_of(dates["earlier"]),
        times=tuple(
            TimePattern(compiled(entry["text"]), entry.get("minutes", 0))
            for entry in table["times"]["patterns"]
        ),
    )


def parts_of(match: re.Match[str]) -> dict[str, str]:
    """What a pattern of a table found by place (day, month, ...), however often the place stands
    in it."""
    return {name.rstrip("_"): found for name, found in match.groupdict().items() if found}


def _filled(pattern: str, places: Mapping[str, str]) -> str:
    """The pattern with its places; those that come again get a name of their own."""
    seen: set[str] = set()

    def place(match: re.Match[str]) -> str:
        filled = places[match[1]]
        while any(f"(?P<{name}>" in filled for name in seen):
            filled = re.sub(r"\(\?P<(\w+)>", r"(?P<\1_>", filled)
        seen.update(re.findall(r"\(\?P<(\w+)>", filled))
        return filled

    return re.sub(r"\{([a-z]+)\}", place, pattern)


def _pairs(text: str) -> dict[str, int]:
    """`one = 1, two = 2` as a mapping; longer phrases first."""
    pairs = [entry.rsplit("=", 1) for entry in text.split(",") if entry.strip()]
    found = {" ".join(name.split()): int(number) for name, number in pairs}
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


def _unhyphenated(words: Mapping[str, int]) -> dict[str, int]:
    """With the spellings that leave the hyphen out: quatre vingt."""
    return {**words, **{name.replace("-", " "): number for name, number in words.items()}}


def _named(spellings: Iterable[str], first: int) -> dict[str, int]:
    """Every spelling of a list of names -> its place, counted from `first`."""
    return {name: place for place, names in enumerate(spellings, first) for name in names.split()}


def _lists(table: Mapping[str, Any]) -> Iterable[tuple[str, list[str]]]:
    return ((name, entries) for name, entries in table.items() if isinstance(entries, list))


def _alternatives(words: Iterable[str]) -> str:
    """A pattern of any of the words, longer ones first; of none, one that never matches."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))) or "(?!)"


def _any(patterns: Iterable[str], *, spaced: bool) -> str:
    return "|".join(_edged(p, spaced) for p in sorted(patterns, key=len, reverse=True)) or "(?!)"


def _group(name: str, words: Iterable[str]) -> str:
    return f"(?P<{name}>{_alternatives(words)})"


def _edged(pattern: str, spaced: bool) -> str:
    """The pattern as whole words; a script without spaces has no edges."""
    if not spaced:
        return f"(?:{pattern})"
    start = rf"(?<![{LETTER}])" if pattern[0].isalpha() or pattern[0] in "([" else ""
    return rf"{start}(?:{pattern})(?![{LETTER}])"


def _words(patterns: Iterable[str], spaced: bool) -> re.Pattern[str]:
    return re.compile(_any(patterns, spaced=spaced))


def _joining(links: str, context: Mapping[str, re.Pattern[str]]) -> dict[str, re.Pattern[str]]:
    """Patterns of what stands between a label and its value (`glue`), and between two values of
    which one is meant (`either`)."""
    gap = r"[ :=|\"'()-]*"
    alternative = context["alternatives"].pattern
    return {
        "glue": re.compile(rf"(?:{gap}(?:{links})(?![\w']))*{gap}"),
        "either": re.compile(rf"[ \"\']*,? *(?:{alternative})(?:\W+(?:{links}|full))*\W*"),
    }


def _number_words(
    words: Mapping[str, int], numbers: Mapping[str, Any], spaced: bool
) -> dict[str, re.Pattern[str]]:
    """Patterns of a run of number words, and of the next word of one: (what joins it, the word)."""
    known = {**words, **_pairs(numbers["multipliers"]), **_pairs(numbers["articles"])}
    word = _alternatives(known)
    between = "|".join(sorted(numbers["between"], key=len, reverse=True))
    return {
        "written": re.compile(_edged(f"(?:{word})(?:(?:{between})(?:{word}))*", spaced)),
        "number_word": re.compile(f"({between})??({word})"),
    }
