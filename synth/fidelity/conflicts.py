"""Two sentences that say the same but for one thing: a negation, an opposite, a name or a number.

Looked for only where two sentences are each other's best match and share most of their words, so a
free paraphrase is never blamed, and a free contradiction is not seen: that is the judge's part.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from synth.fidelity.alignment import Alignment
from synth.fidelity.stopwords import NEGATIONS
from synth.fidelity.text import Text, words_of

_OPPOSITES = (
    "before after|increase decrease|increases decreases|increased decreased|rise fall|rises falls"
    "|rose fell|more less|more fewer|most least|always never|greater smaller|greater less"
    "|larger smaller|higher lower|highest lowest|above below|first last|maximum minimum"
    "|longest shortest|true false|positive negative|even odd|open closed|opens closes|left right"
    "|inside outside|earlier later|early late|warm cold|hot cold|north south|east west|all none"
    "|mutable immutable|optional required|allowed forbidden|faster slower|stronger weaker"
    "|can cannot|import export|public private|upper lower|old new|older younger"
)
_OPPOSITE: dict[str, set[str]] = {}
for _pair in _OPPOSITES.split("|"):
    _one, _other = _pair.split()
    _OPPOSITE.setdefault(_one, set()).add(_other)
    _OPPOSITE.setdefault(_other, set()).add(_one)
_PREFIXES = ("un", "in", "im", "non", "dis", "ir")
_FACT = re.compile(r"(?<![\w.])\d[\d.,]*\b|(?<=[a-z,;] )[A-Z][^\W\d_]{2,}")


class Conflict(NamedTuple):
    kind: str
    """negation, opposite or exchange."""
    what: str
    source: str
    rewrite: str
    closeness: float
    """How well the sentences cover each other, 0 to 1: the worse of both ways."""


def conflicts_of(source: Text, rewrite: Text, alignment: Alignment) -> tuple[Conflict, ...]:
    """Between best matches, in order of the rewrite."""
    best = {match.sentence: match for match in alignment.source}
    found: list[Conflict] = []
    for match in alignment.rewrite:
        back = best.get(match.other) if match.other is not None else None
        if back is None or back.other != match.sentence:
            continue
        ours, theirs = source.sentences[back.sentence].text, rewrite.sentences[match.sentence].text
        around = _around(source, back.sentence), _around(rewrite, match.sentence)
        closeness = min(match.score, back.score)
        for kind, what in _differences(ours, theirs, *around):
            found.append(Conflict(kind, what, ours, theirs, closeness))
    return tuple(found)


def _differences(
    ours: str, theirs: str, around_ours: str, around_theirs: str
) -> list[tuple[str, str]]:
    mine, others = words_of(ours), words_of(theirs)
    known, known_others = set(mine), set(others)
    found: list[tuple[str, str]] = []
    flips = _flips(known, known_others)
    before, after = _negations(mine), _negations(others)
    if (len(before) + len(after) + flips) % 2:
        found.append(("negation", f"{' '.join(before) or '-'} / {' '.join(after) or '-'}"))
    for word in known - known_others:
        if against := (_OPPOSITE.get(word, set()) & known_others) - known:
            found.append(("opposite", f"{word} / {min(against)}"))
    gone, new = _facts(ours) - _facts(around_theirs), _facts(theirs) - _facts(around_ours)
    gone -= {fact for fact in gone if fact.casefold() in known_others}
    new -= {fact for fact in new if fact.casefold() in known}
    if gone and new:
        found.append(("exchange", f"{min(gone)} / {min(new)}"))
    return found


def _facts(text: str) -> set[str]:
    """Numbers and names, in one spelling."""
    return {fact.replace(",", "").rstrip(".") for fact in _FACT.findall(text)}


def _negations(words: Sequence[str]) -> list[str]:
    return [w for w in words if w in NEGATIONS or w.endswith(("n't", "n\u2019t"))]


def _flips(ours: set[str], theirs: set[str]) -> int:
    """Words that one sentence has with a prefix of negation and the other one without."""
    return sum(
        prefix + word in b and prefix + word not in a and word not in b
        for a, b in ((ours, theirs), (theirs, ours))
        for word in a
        if len(word) > 3
        for prefix in _PREFIXES
    )


def _around(text: Text, sentence: int) -> str:
    beside = text.sentences[max(0, sentence - 1) : sentence + 2]
    return " ".join(sentence.text for sentence in beside)
