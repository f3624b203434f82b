"""Names that stand in the place of others.

A name is a run of words with capitals. One that nothing in the source begins like stands in the
place of another where it has that one's neighbour ("Kilian Lechner" for "Korbinian Lechner"), where
it is spelt nearly so, or where a whole name is gone and a whole one is new.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from synth.rephrasing.exact.likeness import MOST_PIECES, is_alike
from synth.rephrasing.exact.readings import PartPair
from synth.rephrasing.facts.names import name_runs

STEM = 4
"""Letters of a name by which "French" answers for "France"."""

NEARLY = 0.7
"""How alike two names must be, letter by letter, for one to be a slip for the other."""

FEWEST_LETTERS = 5
"""Of names that are compared letter by letter."""

LONG = 8
"""Letters from which on the last one may be a slip, too, and no ending."""

_PEOPLES = (
    ("french", "france"),
    ("welsh", "wales"),
    ("danish", "denmark"),
    ("spanish", "spain"),
    ("dutch", "netherlands"),
    ("dutch", "holland"),
    ("greek", "greece"),
    ("swiss", "switzerland"),
    ("norwegian", "norway"),
    ("finnish", "finland"),
    ("portuguese", "portugal"),
)
_OTHER_WORDS = {a: b for pair in _PEOPLES for a, b in (pair, pair[::-1])}
"""Peoples and countries that do not begin alike."""

_WORD = re.compile(r"[^\W_]+")
_ENDINGS = re.compile(r"(?:ians?|eans?|ans?|ese|ish|isch\w{0,2}|en|er|es|s|n|e|i|a|o)$")

_IDENTIFIER = re.compile(
    r"(?<![\w-])(?:[A-Za-z]\w{0,60}_\w{1,60}|[A-Za-z]{1,30}-?\d[\w-]{0,30}|[a-z]{1,30}[A-Z]\w{0,60})"
)
"""Of programs and formats: "max_age", "UTF-8", "camelCase"."""

_LETTERS = str.maketrans(
    {"\u00f8": "o", "\u0142": "l", "\u0111": "d", "\u00e6": "ae", "\u0153": "oe"}
)
"""Letters that are none with an accent, as they are written without them."""

_SOUNDS = (("tch", "c"), ("tsch", "c"), ("sch", "s"), ("sh", "s"), ("ch", "c"), ("kh", "k"))
_SOUNDS += (("ph", "f"), ("th", "t"), ("ck", "k"), ("dj", "j"), ("zh", "j"), ("ou", "u"))
_SOUNDS += (("z", "s"), ("c", "k"), ("q", "k"), ("y", "i"), ("w", "v"), ("j", "i"), ("ii", "i"))
"""What is written in several ways in names that come from other scripts or languages."""

_TWICE = re.compile(r"(.)\1")

_Run = list[str]


def changed_names(pair: PartPair, document: str) -> Iterator[str]:
    """`document`: the text around the part, whose words may be used."""
    source, rewrite = pair
    yield from _changed_identifiers(source.stated, rewrite.stated)
    runs, others = (name_runs(r.text, r.language) for r in pair)
    words, words_there = words_in(source.text.text), words_in(rewrite.text.text)
    if all(_plain(part) in words for run in others for word in run for part in _WORD.findall(word)):
        return  # every name of the rewrite is one of the source's
    words |= words_in(document)
    before, after = _Words(words), _Words(words_there)
    new = [(run, [word for word in run if not before.hold(word)]) for run in others]
    new = [(run, added) for run, added in new if added]
    gone = [(run, [word for word in run if not after.hold(word)]) for run in runs]
    gone = [(run, lost) for run, lost in gone if lost]
    told = dict.fromkeys(_by_neighbour(gone, new))
    if rewrite.language != "de":  # its nouns have capitals, too
        told |= dict.fromkeys(_whole(gone, new))
    told |= dict.fromkeys(_slips(runs, others, words, words_there))
    if told:
        lost, added = (", ".join(dict.fromkeys(names)) for names in zip(*told, strict=True))
        yield f"the part names {lost}; the rewrite names {added} instead"


def _changed_identifiers(source: str, rewrite: str) -> Iterator[str]:
    ours, theirs = _identifiers(source), _identifiers(rewrite)
    lower, lower_there = source.casefold(), rewrite.casefold()
    gone = [one for one in ours if one.casefold() not in lower_there][:MOST_PIECES]
    new = [one for one in theirs if one.casefold() not in lower][:MOST_PIECES] if gone else []
    for one in new:
        near = next((other for other in gone if is_alike(one, other, at=NEARLY)), None)
        if near is not None:
            yield f"the part names {near}; the rewrite names {one} instead"


@lru_cache(maxsize=256)
def _identifiers(text: str) -> tuple[str, ...]:
    """Each once."""
    return tuple(dict.fromkeys(_IDENTIFIER.findall(text)))


@lru_cache(maxsize=256)
def words_in(text: str) -> frozenset[str]:
    """Words and numbers, in small letters without accents."""
    return frozenset(_WORD.findall(_plain(text)))


_Found = list[tuple[_Run, list[str]]]
"""Runs, and the words of each that the other text does not hold."""


def _by_neighbour(gone: _Found, new: _Found) -> Iterator[tuple[str, str]]:
    partners: dict[str, str] = {}
    for run, lost in gone:
        partners |= {word: lost[0] for word in run if word not in lost}
    for run, added in new:
        near = next((partners[word] for word in run if word in partners), None)
        if near is not None and _is_short([near]) is _is_short(added[:1]):
            yield near, added[0]


def _whole(gone: _Found, new: _Found) -> Iterator[tuple[str, str]]:
    """Names that are gone, or whose last word is, and names of which nothing was there."""
    lost = [run for run, words in gone if run[-1] in words]
    added = [run for run, words in new if len(words) == len(run)]
    for is_short in (False, True):
        ours, theirs = (
            [" ".join(run) for run in runs if _is_short(run) is is_short] for runs in (lost, added)
        )
        if ours and theirs:
            yield ", ".join(dict.fromkeys(ours)), ", ".join(dict.fromkeys(theirs))


def _is_short(run: _Run) -> bool:
    """Whether it is an abbreviation, which no person has in a name's place."""
    return all(word.isupper() or not word[1:].islower() for word in run)


@lru_cache(maxsize=4096)
def _sound(name: str) -> str:
    """Of a name without accents: the same for "Sergei" and "Sergey", "Elisabeth" and
    "Elizabeth"."""
    for written, heard in _SOUNDS:
        name = name.replace(written, heard)
    return _TWICE.sub(r"\1", name)


def _slips(
    runs: list[_Run], others: list[_Run], words: frozenset[str], words_there: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """Names that are spelt nearly as one of the source, which may stand elsewhere as well."""
    ours = {_plain(word): word for run in runs for word in run}
    long = (item for item in ours.items() if len(item[0]) >= FEWEST_LETTERS)
    ours = dict(islice(long, MOST_PIECES))
    theirs = {_plain(word): word for run in others for word in run}
    heard = {_sound(key) for key in ours}
    new = [
        key
        for key in theirs
        if len(key) >= FEWEST_LETTERS
        and key.isalpha()
        and key not in words
        and _OTHER_WORDS.get(key) not in words
        and _sound(key) not in heard
    ]
    for key in new[:MOST_PIECES]:
        for other, name in ours.items():
            is_gone = other not in words_there
            if other != key and other[0] == key[0] and _is_slip(key, other, is_gone=is_gone):
                yield name, theirs[key]
                break


def _is_slip(key: str, other: str, *, is_gone: bool) -> bool:
    if len(key) == len(other):
        apart = [at for at, pair in enumerate(zip(key, other, strict=True)) if pair[0] != pair[1]]
        if len(apart) <= 2 and (apart[0] < len(key) - 1 or (is_gone and len(key) >= LONG)):
            return True
    stem, other_stem = _ENDINGS.sub("", key), _ENDINGS.sub("", other)
    if key.startswith(other_stem) or other.startswith(stem):
        return False
    return is_gone and key[:3] == other[:3] and is_alike(key, other, at=NEARLY)


class _Words:
    """The words of a text, for names to be looked up in."""

    def __init__(self, words: frozenset[str]) -> None:
        self._words = words
        self._sorted = sorted(words)
        self._joined = "\n".join(self._sorted)
        self._sounds: set[str] | None = None

    def hold(self, name: str) -> bool:
        """Whether a word begins like each part of the name, or holds it where it is short."""
        return all(
            self._begin(part[: max(STEM, len(part) - 2)])
            or _OTHER_WORDS.get(part) in self._words
            or self._sounds_like(part)
            if len(part) >= STEM
            else part in self._joined
            for part in _WORD.findall(_plain(name))
        )

    def _sounds_like(self, part: str) -> bool:
        if self._sounds is None:
            self._sounds = {_sound(word) for word in self._words if len(word) >= STEM}
        return _sound(part) in self._sounds

    def _begin(self, beginning: str) -> bool:
        at = bisect_left(self._sorted, beginning)
        return at < len(self._sorted) and self._sorted[at].startswith(beginning)


@lru_cache(maxsize=1024)
def _plain(text: str) -> str:
    """In small letters without accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFD", text.casefold().translate(_LETTERS))
    return "".join(sign for sign in apart if not unicodedata.combining(sign))
