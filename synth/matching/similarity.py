"""Near-duplicates among many texts: sketches find candidates, the texts themselves decide.

MinHash: a sketch has `HASHES` numbers, each the least of another hash over the word 3-grams. Two
texts agree in one with a chance that is their similarity, short texts like long ones. Texts that
agree in all `ROWS` numbers of a band are candidates; at a similarity of 0.8 one band of twelve does
so in 99 pairs of 100 (1 - (1 - 0.8^5)^12), at 0.5 in 32.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from zlib import crc32

import numpy as np

from synth.matching.word_runs import CharSpan, word_spans, words_of
from tool_specs.coverage.duplicates import Shingles, jaccard

BANDS, ROWS = 12, 5
HASHES = BANDS * ROWS

GRAM = 3

COMPARED = 8
"""Earlier texts of a band that a text is compared with; more share only what all of them share."""

_DRAWN = random.Random(0)
_FACTORS = np.array([_DRAWN.getrandbits(64) | 1 for _ in range(HASHES)], np.uint64)
_ADDED = np.array([_DRAWN.getrandbits(64) for _ in range(HASHES)], np.uint64)
"""With the factors, of the hashes: the upper half of factor * value + added."""

_HASHED_AT_ONCE = 1 << 12
"""3-grams; half a kB each."""

_BAND_BYTES = ROWS * np.dtype(np.uint32).itemsize


def shingles(text: str) -> Shingles:
    words = words_of(text)
    grams = {tuple(words[at : at + GRAM]) for at in range(len(words) - GRAM + 1)}
    return frozenset(grams or {tuple(words)})


def sketch(text: str) -> bytes:
    """`HASHES` numbers of 32 bits."""
    words = words_of(text)
    starts = range(max(1, len(words) - GRAM + 1))
    values = {crc32(" ".join(words[at : at + GRAM]).encode()) for at in starts}
    hashed = np.fromiter(values, np.uint64, len(values))
    least = np.full(HASHES, np.iinfo(np.uint32).max, np.uint32)
    for at in range(0, len(hashed), _HASHED_AT_ONCE):
        some = hashed[at : at + _HASHED_AT_ONCE, None] * _FACTORS + _ADDED
        np.minimum(least, (some >> np.uint64(32)).min(axis=0).astype(np.uint32), out=least)
    return least.tobytes()


def near_repeats(
    sketches: Sequence[bytes], text_of: Callable[[int], str], *, near: float
) -> dict[int, int]:
    """Number of a text -> the earlier text that it repeats, by Jaccard similarity of the 3-grams of
    at least `near`. A text is compared with those before it that stay."""
    alike: dict[int, list[int]] = {}
    for later, earlier in sorted(set(_candidates(sketches))):
        one, other = shingles(text_of(earlier)), shingles(text_of(later))
        if jaccard(one, other) >= near:
            alike.setdefault(later, []).append(earlier)
    found: dict[int, int] = {}
    for later, many in alike.items():  # in order, so those before are decided
        staying = [earlier for earlier in many if earlier not in found]
        if staying:
            found[later] = staying[0]
    return found


def _candidates(sketches: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Pairs (later, earlier), one band after another so that only one index is held."""
    for band in range(BANDS):
        index: dict[bytes, list[int]] = {}
        for number, own in enumerate(sketches):
            there = index.setdefault(own[band * _BAND_BYTES : (band + 1) * _BAND_BYTES], [])
            yield from ((number, earlier) for earlier in there)
            if len(there) < COMPARED:
                there.append(number)


def shared_spans(one: str, other: str) -> tuple[list[CharSpan], list[CharSpan]]:
    """Where the 3-grams that both texts have stand in each; what touches is one span."""
    both = shingles(one) & shingles(other)
    return _spans_of(one, both), _spans_of(other, both)


def _spans_of(text: str, wanted: Shingles) -> list[CharSpan]:
    words = word_spans(text)
    spans: list[CharSpan] = []
    last = -1  # number of the word behind the last span
    for at in range(len(words) - GRAM + 1):
        if tuple(word for word, _ in words[at : at + GRAM]) not in wanted:
            continue
        end = words[at + GRAM - 1][1][1]
        if at <= last:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((words[at][1][0], end))
        last = at + GRAM
    return spans
