"""Where something stands: the words around it, by which two texts say the same of two things."""

import re
from collections.abc import Iterator

from synth.rephrasing.facts.stems import stem
from synth.rephrasing.facts.stopwords import STOPWORDS

WordsAround = frozenset[tuple[str, str]]
"""(side, stem) of words around it."""

MOST_WORDS = 3
"""Words on either side that make up a place."""

FARTHEST = 48
"""Characters on either side in which they stand."""

SHORTEST = 3
"""Letters of a word that tells a place."""

_WORD = re.compile(r"[^\W\d_]+")


def place_of(text: str, start: int, end: int) -> WordsAround:
    """Of what stands there."""
    before = _WORD.findall(text[max(0, start - FARTHEST) : start])
    after = _WORD.findall(text[end : end + FARTHEST])
    return frozenset((*_sided("before", before[::-1]), *_sided("after", after)))


def _sided(side: str, words: list[str]) -> Iterator[tuple[str, str]]:
    telling = [
        word.lower() for word in words if len(word) >= SHORTEST and word.lower() not in STOPWORDS
    ]
    for word in telling[:MOST_WORDS]:
        yield side, stem(word)
