"""Which texts hold a piece of an evaluation: a run of so many words that both have.

Only hashes of the runs are kept, 8 bytes each (`synth.matching.word_runs`).
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from records.digest import digest
from records.errors import ConfigError
from synth.matching.evaluations import evaluation_texts
from synth.matching.word_runs import Hashes, word_runs
from synth.rephrasing.writing.config import RephraseConfig

IN_EVALUATION = "in_evaluation"
"""The reason of a document that shares a run of words with an evaluation."""

_MERGED = 1 << 20
"""Runs that are collected before they are sorted in."""


class SharedRun(NamedTuple):
    """Where a text holds a piece of an evaluation: characters, end exclusive."""

    start: int
    end: int


class Decontaminator:
    """ConfigError for a file that cannot be read, and where no evaluation is as long as a run."""

    def __init__(self, paths: Sequence[str], *, words: int) -> None:
        self._words = words
        self._known = _sorted_hashes(
            word_runs(text, words).hashes
            for path in paths
            for text in evaluation_texts(path, setting="decontaminate")
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
        hashes, spans = word_runs(text, self._words)
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


def _sorted_hashes(many: Iterator[Hashes]) -> Hashes:
    known, waiting, number = np.empty(0, np.uint64), [], 0
    for hashes in many:
        waiting.append(hashes)
        number += len(hashes)
        if number >= max(_MERGED, len(known)):
            known, waiting, number = np.unique(np.concatenate([known, *waiting])), [], 0
    return np.unique(np.concatenate([known, *waiting]))
