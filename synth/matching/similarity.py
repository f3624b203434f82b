"""Near-duplicates among many texts: sketches find candidates, the texts themselves decide.

One-permutation MinHash: each word 3-gram falls in one of `BINS` bins by its hash, and a bin keeps
its least. Two texts share a bin's value about as often as they share 3-grams. Texts that agree in
all `ROWS` bins of a band are candidates; at a similarity of 0.8 one band of twelve does so in 99
pairs of 100 (1 - (1 - 0.8^5)^12), at 0.5 in 32.
"""

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from zlib import crc32

from synth.matching.word_runs import CharSpan
from tool_specs.coverage.duplicates import Shingles, jaccard

BANDS, ROWS = 12, 5
BINS = BANDS * ROWS

GRAM = 3

COMPARED = 8
"""Earlier texts of a band that a text is compared with; more share only what all of them share."""

_WORD = re.compile(r"[^\W_]+")
_EMPTY = 0xFFFFFFFF
_BAND_BYTES = ROWS * array("I").itemsize


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def shingles(text: str) -> Shingles:
    words = words_of(text)
    grams = {tuple(words[at : at + GRAM]) for at in range(len(words) - GRAM + 1)}
    return frozenset(grams or {tuple(words)})


def sketch(text: str) -> bytes:
    """`BINS` numbers of 32 bits. A bin that no 3-gram falls in borrows from the next that has one,
    so that short texts are told apart by all bands."""
    words = words_of(text)
    bins = [_EMPTY] * BINS
    for at in range(max(1, len(words) - GRAM + 1)):
        value = crc32(" ".join(words[at : at + GRAM]).encode())
        place = value % BINS
        value = value // BINS
        if value < bins[place]:
            bins[place] = value
    if _EMPTY in bins:
        filled = [n for n, value in enumerate(bins) if value != _EMPTY]
        for n in range(BINS):
            if bins[n] == _EMPTY:
                near = next((f for f in filled if f > n), filled[0])
                bins[n] = (bins[near] + (near - n) % BINS * 0x9E3779B1) & 0xFFFFFFFE
    return array("I", bins).tobytes()


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
    words = [(match.group().lower(), match.span()) for match in _WORD.finditer(text)]
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
