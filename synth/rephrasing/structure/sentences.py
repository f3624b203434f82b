"""Where a text may be cut when its structure does not say: sentences, clauses, words.

Cuts fall behind the white space that follows, so the pieces of a text, put together, are the text.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from records.sizes import count_tokens

_END = re.compile(
    r"(?<=[.!?])[\"')\]\u2019\u201d]*\s+(?=[\"'(\[\u2018\u201c*`$]*[^\W_a-z])"
    r"|(?<=[\u3002\uff01\uff1f])[\u300d\u300f\u201d]*\s*"
)
"""After a full stop, and what begins next does not go on in lower case; or after an East Asian
one, which no white space follows."""

_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[])(?:[A-Za-z]|e\.g|i\.e|cf|vs|etc|al|approx|ca|resp|Dr|Mr|Mrs|Ms|Prof|St|No|Fig|Eq"
    r"|Sec|Ch|Vol|pp?|bzw|z\.B|d\.h|usw|Nr|Abb|Sr|Sra|Jr|Inc|Ltd)\.$"
)
_LONGEST_ABBREVIATION = 10

_CLAUSE = re.compile(r"[,;:\u2013\u2014]\s+|[\uff0c\u3001\uff1b\uff1a]")
_WORD = re.compile(r"\s+")


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences; each with the white space behind it."""
    cuts = [0]
    for end in _END.finditer(text):
        head = text[max(0, end.start() - _LONGEST_ABBREVIATION) : end.start()]
        if not _ABBREVIATION.search(head) and end.end() > cuts[-1]:
            cuts.append(end.end())
    if cuts[-1] < len(text) or len(cuts) == 1:
        cuts.append(len(text))
    return list(pairwise(cuts))


def pieces(text: str, most: int) -> Iterator[tuple[int, int]]:
    """Spans of at most `most` tokens: whole sentences where they are so short, else parts of one,
    cut at a clause, at a word, or anywhere."""
    for start, end in sentences(text):
        if count_tokens(text[start:end]) <= most:
            yield start, end
        else:
            yield from _cut(text, start, end, most)


def _cut(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    while start < end:
        reach = _reach(text, start, end, most)
        if reach < end:
            reach = _last(_CLAUSE, text, start, reach) or _last(_WORD, text, start, reach) or reach
        yield start, reach
        start = reach


def _reach(text: str, start: int, end: int, most: int) -> int:
    """How far `most` tokens go; at least one character."""
    data = text[start : min(end, start + 4 * most)].encode()[: 4 * most]
    return start + max(1, len(data.decode(errors="ignore")))


def _last(mark: re.Pattern[str], text: str, start: int, end: int) -> int | None:
    """After the last mark in the later half of the span; None where there is none."""
    found = None
    for match in mark.finditer(text, start + (end - start) // 2, end):
        found = match.end()
    return found
