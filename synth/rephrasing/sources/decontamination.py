"""Which texts hold a piece of an evaluation: a run of so many words that both have.

Words are compared without case and punctuation. Only hashes of the runs are kept, 8 bytes each: a
chance match of 64 bits among a billion runs and as many of evaluations is one in twenty.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from records.digest import digest
from records.errors import ConfigError
from synth.rephrasing.sources.evaluations import evaluation_texts
from synth.rephrasing.writing.config import RephraseConfig

IN_EVALUATION = "in_evaluation"
"""The reason of a document that shares a run of words with an evaluation."""

_SPACELESS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_SPACELESS}]|[^\W_{_SPACELESS}]+")
"""A word; of scripts that write no spaces each character is one."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that each word of a run counts in all 64 bits; of the golden ratio."""

_MERGED = 1 << 20
"""Runs that are collected before they are sorted in."""

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


class SharedRun(NamedTuple):
    """Where a text holds a piece of an evaluation: characters, end exclusive."""

    start: int
    end: int


class Decontaminator:
    """ConfigError for a file that cannot be read, and where no evaluation is as long as a run."""

    def __init__(self, paths: Sequence[str], *, words: int) -> None:
        self._words = words
        self._known = _sorted_hashes(
            _hashes(text, words)[0] for path in paths for text in evaluation_texts(path)
        )
        if paths and not len(self._known):
            raise ConfigError(
                f"decontaminate: no text of {', '.join(paths)} has {words} words "
                "(decontaminate_words), so nothing could be found; give other files, or fewer words"
            )

    @property
    def version(self) -> str:
        """Of the evaluations and of the length of a run: what is found hangs on it."""
        return digest(self._words, hashlib.sha256(self._known.tobytes()).hexdigest())

    def shared(self, text: str) -> str | None:
        """The words of the first shared run, and where they stand."""
        if (run := self.found(text)) is None:
            return None
        return f"characters {run.start} to {run.end}: {text[run.start : run.end]}"

    def found(self, text: str) -> SharedRun | None:
        """The first run of the text that an evaluation has, with those that overlap it."""
        hashes, spans = _hashes(text, self._words)
        if not len(hashes) or not len(self._known):
            return None
        at = np.minimum(np.searchsorted(self._known, hashes), len(self._known) - 1)
        shared = np.flatnonzero(self._known[at] == hashes)
        if not len(shared):
            return None
        first = last = int(shared[0])
        for index in shared[1:].tolist():
            if index > last + self._words:
                break
            last = index
        return SharedRun(spans[first][0], spans[last + self._words - 1][1])


def decontaminator_of(config: RephraseConfig) -> Decontaminator:
    """Of the evaluations that a run names."""
    return Decontaminator(config.decontaminate, words=config.decontaminate_words)


def _hashes(text: str, words: int) -> tuple[Hashes, list[tuple[int, int]]]:
    """Of each run of `words` words, and where each word stands."""
    found = [(match.group().lower(), match.span()) for match in _WORD.finditer(text)]
    spans = [span for _, span in found]
    if len(found) < words:
        return np.empty(0, np.uint64), spans
    of_word = np.array([_hash(word) for word, _ in found], np.uint64)
    runs = len(found) - words + 1
    hashes = np.zeros(runs, np.uint64)
    for offset in range(words):
        hashes = hashes * _FACTOR + of_word[offset : offset + runs]
    return hashes, spans


@lru_cache(maxsize=1 << 16)
def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


def _sorted_hashes(many: Iterator[Hashes]) -> Hashes:
    known, waiting, number = np.empty(0, np.uint64), [], 0
    for hashes in many:
        waiting.append(hashes)
        number += len(hashes)
        if number >= max(_MERGED, len(known)):
            known, waiting, number = np.unique(np.concatenate([known, *waiting])), [], 0
    return np.unique(np.concatenate([known, *waiting]))
