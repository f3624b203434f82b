"""Numbers in words, in the languages of `units.LANGUAGES`: found by word, read by text2num.

Words that say a number in another way (half, twice, a dozen) are ours, and so is what they mean.
"""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

from text_to_num import find_numbers

from synth.rephrasing.facts.text import letter_runs
from synth.rephrasing.facts.units import LANGUAGES

_WORD = re.compile(r"[^\W\d_]+")
_JOINT = re.compile(r"[ -]|[ ](?:and|and[ ]a|y|e|et|en|og)[ ]")
"""What may stand between two words of one number."""

_AND = (("and", "a"), ("and",), ("y",), ("et",), ("e",), ("en",), ("og",))
_SCALES = frozenset((12, 1000, 10**6, 10**9, 10**12))

MOST_WORDS = 24
"""Of one number; what is longer is read in pieces."""

_NO_NUMBER = (
    "a o un une ein uno una um uma en et een null sei unos unas to second segundo segunda seconda"
    " secondo hundreds thousands millions billions millionen milliarden hunderte tausende millones"
    " milioni milh\u00f5es miljoenen millioner milliarder milliards mila"
)
_NO_NUMBERS = frozenset(_NO_NUMBER.split())
"""Words that text2num reads as numbers and that by themselves are articles, units of time, other
words, or scales of no number in particular."""

_OTHERS: dict[str, Mapping[str, int | Fraction]] = {
    "en": {"dozen": 12, "once": 1, "single": 1, "twice": 2, "double": 2, "both": 2, "pair": 2}
    | {"triple": 3},
    "de": {"dutzend": 12, "doppelt": 2, "beide": 2, "beiden": 2, "anderthalb": Fraction(3, 2)},
    "fr": {"douzaine": 12, "double": 2, "deuxi\u00e8mement": 2},
    "es": {"docena": 12, "doble": 2, "ambos": 2, "ambas": 2},
    "it": {"dozzina": 12, "doppio": 2, "entrambi": 2},
    "pt": {"d\u00fazia": 12, "dobro": 2, "ambos": 2, "duas": 2},
    "nl": {"dozijn": 12, "dubbel": 2, "beide": 2},
    "da": {"dusin": 12, "dobbelt": 2, "begge": 2},
}

_PARTS = {
    "en": {"half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fifth": 5}
    | {"fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10},
    "de": dict.fromkeys(("h\u00e4lfte", "halb", "halbe", "halben", "halber", "halbes"), 2)
    | {"drittel": 3, "viertel": 4, "f\u00fcnftel": 5, "achtel": 8, "zehntel": 10},
    "fr": {"moiti\u00e9": 2, "demi": 2, "demie": 2, "tiers": 3, "quart": 4, "quarts": 4},
    "es": {"mitad": 2, "medio": 2, "media": 2, "tercio": 3, "tercios": 3, "cuartos": 4},
    "it": {"met\u00e0": 2, "mezzo": 2, "mezza": 2, "terzi": 3, "quarti": 4},
    "pt": {"metade": 2, "meio": 2, "meia": 2, "ter\u00e7o": 3, "ter\u00e7os": 3},
    "nl": {"helft": 2, "half": 2, "halve": 2, "derde": 3, "kwart": 4},
    "da": {"halvdel": 2, "halv": 2, "halve": 2, "tredjedel": 3, "fjerdedel": 4},
}
"""Parts of one. A word that is an ordinal as well is a part after a number alone."""

SpeltKind = Literal["cardinal", "ordinal", "part", "other"]


class SpeltNumber(NamedTuple):
    value: int | Fraction
    kind: SpeltKind
    start: int
    end: int


class _Token(NamedTuple):
    """A word, as text2num asks for it."""

    word: str

    def text(self) -> str:
        return self.word

    def nt_separated(self, previous: "_Token") -> bool:
        return False

    def not_a_number_part(self) -> bool:
        return False


def numbers_in_words(text: str, language: str) -> Iterator[SpeltNumber]:
    """In order; those of English where the language is none of ours."""
    language = language if language in LANGUAGES else "en"
    lower = text.lower()
    if len(lower) != len(text):  # places would not be those of the text
        lower = text
    found = {word for word in letter_runs(lower) if is_number_word(word, language)}
    run: list[re.Match[str]] = []
    for match in _WORD.finditer(lower) if found else ():
        if match[0] not in found:
            continue
        if run and (
            len(run) == MOST_WORDS or not _JOINT.fullmatch(lower, run[-1].end(), match.start())
        ):
            yield from _read_run(run, language, lower)
            run = []
        run.append(match)
    if run:
        yield from _read_run(run, language, lower)


@lru_cache(maxsize=131_072)
def is_number_word(word: str, language: str) -> bool:
    """Whether a word in lower case is one of a number, an ordinal or a part. `language`: one of
    ours."""
    if word in _OTHERS[language] or word in _PARTS[language]:
        return True
    return bool(find_numbers([_Token(word)], language, threshold=0))


def _read_run(run: list[re.Match[str]], language: str, text: str) -> Iterator[SpeltNumber]:
    tokens = list(_WORD.finditer(text, run[0].start(), run[-1].end()))
    for value, kind, first, last in _numbers_of(tuple(t[0] for t in tokens), language):
        yield SpeltNumber(value, kind, tokens[first].start(), tokens[last].end())


class _Read(NamedTuple):
    value: int | Fraction
    kind: SpeltKind
    first: int
    """Index of its first word."""
    last: int


@lru_cache(maxsize=65_536)
def _numbers_of(words: tuple[str, ...], language: str) -> tuple[_Read, ...]:
    """The numbers of a run of words."""
    others, parts = _OTHERS[language], _PARTS[language]
    found: dict[int, _Read] = {}
    for number in find_numbers([_Token(word) for word in words], language, threshold=0):
        first, last = number.start, number.end - 1
        if first < last or words[first] not in _NO_NUMBERS:
            kind: SpeltKind = "ordinal" if number.is_ordinal else "cardinal"
            found[first] = _Read(_exact(number.value), kind, first, last)
    for at, word in enumerate(words):
        if word in others:
            found[at] = _Read(others[word], "other", at, at)
        elif part := _part(word, found.get(at), parts):
            _join(found, words, at, part)
    return tuple(found[first] for first in sorted(found))


def _part(word: str, read: _Read | None, parts: dict[str, int]) -> int | None:
    """Into how many parts one is cut by the word, if it is."""
    if read is not None and read.kind == "ordinal" and read.first == read.last:
        return int(read.value)
    return parts.get(word)


def _join(found: dict[int, _Read], words: tuple[str, ...], at: int, part: int) -> None:
    """A part joins the number before it: "two thirds" times it, "six and a half" plus it. Alone it
    is an ordinal where it may be one."""
    ends = {read.last: read for read in found.values() if read.kind == "cardinal"}
    value = Fraction(1, part)
    before = ends.get(at - 1)
    if words[at] == "half" and before is not None and before.value != 1:
        before = None  # "ten half-lives"
    elif before is not None:
        value *= before.value
    elif at in found:
        return
    elif joint := next((one for one in _AND if words[max(0, at - len(one)) : at] == one), None):
        before = ends.get(at - len(joint) - 1)
        value += before.value if before else 0
    found.pop(at, None)
    last = at
    if before is not None:
        del found[before.first]
        if (scale := found.get(at + 1)) is not None and scale.value in _SCALES:
            value, last = value * scale.value, found.pop(at + 1).last
    first = before.first if before else at
    found[first] = _Read(value, "part", first, last)


def _exact(value: float) -> int | Fraction:
    return int(value) if value.is_integer() else Fraction(str(value))
