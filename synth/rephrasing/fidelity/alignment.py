"""Sentence by sentence: which sentence of the other text says this one, and how well.

Without an embedder by weighted words: a sentence is covered by the share of its telling words that
stand in the best sentence of the other text or in the two beside it, since rewriting splits and
joins sentences. Rare words weigh more. That sees what is missing and what is new, not what is put
in wholly other words: paraphrases cover each other by half or less.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from heapq import nsmallest
from typing import NamedTuple

from synth.rephrasing.facts.stems import stem
from synth.rephrasing.facts.stopwords import STOPWORDS
from synth.rephrasing.facts.text import ReadText, Sentence

MAX_PLACES = 60
"""Sentences that a word may stand in and still point at one: bounds the work at this many steps a
word."""

WEAKEST = 5
"""Sentences of each text that are kept for the reader, the worst covered first."""

MIN_TELLING = 2
"""Telling words of a sentence that is looked at: "See below." is covered by anything."""


class Match(NamedTuple):
    sentence: int
    other: int | None
    """Index of the best sentence of the other text; None where no word is shared."""
    score: float
    """0 to 1."""
    telling: int
    """Words that tell something: of very few, none need be found again."""


class Alignment(NamedTuple):
    method: str
    source: tuple[Match, ...]
    """For each sentence of the source that is long enough."""
    rewrite: tuple[Match, ...]
    weakest_source: tuple[tuple[float, str], ...]
    """Sentences that the rewrite seems to have lost."""
    weakest_rewrite: tuple[tuple[float, str], ...]
    """Sentences that the rewrite seems to have added."""

    @property
    def recall(self) -> float:
        """Mean over the sentences of the source."""
        return _mean(self.source)

    @property
    def precision(self) -> float:
        """Mean over the sentences of the rewrite."""
        return _mean(self.rewrite)


def aligned_by_words(source: ReadText, rewrite: ReadText, language: str = "en") -> Alignment:
    """`language`: of both texts; words are compared by its stems."""
    ours, theirs = _sentence_stems(source, language), _sentence_stems(rewrite, language)
    counts = Counter(word for words in (*ours, *theirs) for word in words)
    n = len(ours) + len(theirs)
    weights = {word: math.log(1 + n / count) for word, count in counts.items()}
    lost = _matches(ours, theirs, weights)
    added = _matches(theirs, ours, weights)
    return alignment_of("words", source, rewrite, lost, added)


def alignment_of(
    method: str, source: ReadText, rewrite: ReadText, lost: list[Match], added: list[Match]
) -> Alignment:
    return Alignment(
        method,
        tuple(lost),
        tuple(added),
        _weakest(source.sentences, lost),
        _weakest(rewrite.sentences, added),
    )


def _matches(
    ours: Sequence[frozenset[str]], theirs: Sequence[frozenset[str]], weights: dict[str, float]
) -> list[Match]:
    places: dict[str, list[int]] = {}
    for index, words in enumerate(theirs):
        for word in words:
            places.setdefault(word, []).append(index)
    matches = []
    for index, words in enumerate(ours):
        if len(words) < MIN_TELLING:
            continue
        scores: dict[int, float] = {}
        for word in sorted(words):  # sums of floats hang on the order
            where = places.get(word, ())
            if len(where) <= MAX_PLACES:
                weight = weights[word]
                for place in where:
                    scores[place] = scores.get(place, 0.0) + weight
        best = nsmallest(2, scores, key=lambda place: (-scores[place], place))
        beside = (words.intersection(_beside(theirs, place)) for place in best)
        covered = max((_weight(shared, weights) for shared in beside), default=0.0)
        score = covered / _weight(words, weights)
        matches.append(Match(index, best[0] if best else None, score, len(words)))
    return matches


def _beside(sentences: Sequence[frozenset[str]], place: int) -> frozenset[str]:
    """The words of a sentence and of its neighbours."""
    return frozenset().union(*sentences[max(0, place - 1) : place + 2])


def _weight(words: frozenset[str], weights: dict[str, float]) -> float:
    return math.fsum(map(weights.__getitem__, words))  # the same whatever the set's order


@lru_cache(maxsize=128)
def _sentence_stems(text: ReadText, language: str) -> tuple[frozenset[str], ...]:
    return tuple(_stems(words, language) for words in text.sentence_words)


def _stems(words: Sequence[str], language: str) -> frozenset[str]:
    """Without numbers, which have a layer of their own and many spellings."""
    return frozenset(
        stem(word, language) for word in words if word not in STOPWORDS and not word[0].isdigit()
    )


def _weakest(
    sentences: Sequence[Sentence], matches: Sequence[Match]
) -> tuple[tuple[float, str], ...]:
    worst = sorted(matches, key=lambda match: (match.score, match.sentence))[:WEAKEST]
    return tuple((match.score, sentences[match.sentence].text) for match in worst)


def _mean(matches: Sequence[Match]) -> float:
    return sum(match.score for match in matches) / len(matches) if matches else 1.0
