"""What two texts share word for word, and what one text says again and again."""

from collections.abc import Sequence

COPY_WORDS = 8
"""Words in a row from which on the same words are a copy: shorter runs are idiom and terms."""

REPEAT_WORDS = 5
"""Words in a row that a text seldom says twice by chance."""


def copied(source: Sequence[str], rewrite: Sequence[str]) -> tuple[float, int]:
    """(share of the rewrite's words inside runs of COPY_WORDS that the source holds too, words of
    the longest such run).

    A run may cross a joint where the source goes on elsewhere, so its length is an upper bound.
    """
    n = COPY_WORDS
    if len(rewrite) < n or len(source) < n:
        same = bool(rewrite) and list(rewrite) == list(source)
        return (1.0, len(rewrite)) if same else (0.0, 0)
    known = set(grams(source, n))
    inside = longest = run = covered_to = 0
    for start, gram in enumerate(grams(rewrite, n)):
        if gram not in known:
            run = 0
            continue
        inside += start + n - max(covered_to, start)
        covered_to = start + n
        run = run + 1 if run else n
        longest = max(longest, run)
    return inside / len(rewrite), longest


def repeated(words: Sequence[str]) -> float:
    """Share of the runs of REPEAT_WORDS words that the text has said before."""
    seen = grams(words, REPEAT_WORDS)
    return 1 - len(set(seen)) / len(seen) if seen else 0.0


def grams(words: Sequence[str], n: int) -> list[int]:
    """A hash of every run of `n` words; equal runs have equal hashes within one process."""
    return list(map(hash, zip(*(words[i:] for i in range(n)), strict=False)))
