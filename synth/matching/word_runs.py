"""Runs of so many words as numbers of 64 bits, so that texts which share one can be found.

Words are compared without case and punctuation. A chance match of 64 bits among a billion runs and
as many of evaluations is one in twenty.
"""

import hashlib
import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

_SPACELESS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_SPACELESS}]|[^\W_{_SPACELESS}]+")
"""A word; of scripts that write no spaces each character is one."""

_SPACELESS_CHAR = re.compile(f"[{_SPACELESS}]")

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that each word of a run counts in all 64 bits; of the golden ratio."""

Hashes = np.ndarray[Any, np.dtype[np.uint64]]

CharSpan = tuple[int, int]
"""Characters of a text, end exclusive."""


def words_of(text: str) -> list[str]:
    """The words of a text, without case and punctuation."""
    return [word.lower() for word in _WORD.findall(text)]


def word_spans(text: str) -> list[tuple[str, CharSpan]]:
    """The words of a text, and where each stands."""
    return [(found.group().lower(), found.span()) for found in _WORD.finditer(text)]


def length_in_words(text: str) -> int:
    """How long a text is. In scripts that write no spaces a word has about two characters."""
    characters = len(_SPACELESS_CHAR.findall(text))
    return len(_WORD.findall(text)) - characters + (characters + 1) // 2


class WordRuns(NamedTuple):
    hashes: Hashes
    """Of each run; none for a text of fewer words."""
    spans: list[CharSpan]
    """Where each word stands."""


def word_runs(text: str, words: int) -> WordRuns:
    """The runs of `words` words of a text, in their order."""
    found = word_spans(text)
    spans = [span for _, span in found]
    if len(found) < words:
        return WordRuns(np.empty(0, np.uint64), spans)
    of_word = np.array([_hash(word) for word, _ in found], np.uint64)
    runs = len(found) - words + 1
    hashes = np.zeros(runs, np.uint64)
    for offset in range(words):
        hashes = hashes * _FACTOR + of_word[offset : offset + runs]
    return WordRuns(hashes, spans)


@lru_cache(maxsize=1 << 16)
def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
