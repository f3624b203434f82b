"""Which rewritten parts a judge is asked about where it is not asked about all of them.

A part is asked about if a layer flags it, if one text denies what the closest sentence of the other
states, or by lot. The lot is for what words do not show, and keeps a share of all parts judged
whatever they say, so that what the choice misses can be estimated.
"""

from synth.rephrasing.facts.negations import holds_negation
from synth.rephrasing.facts.text import ReadText
from synth.rephrasing.fidelity.alignment import Alignment, Match

CHOICE_VERSION = 1
"""Raised when the same texts would be chosen otherwise under the same settings: what the judge is
asked about decides what goes back to the rewriter."""

MIN_TELLING = 4
"""Telling words of a sentence that is looked at: any text covers one of two or three."""

_LOTS = 16**8


def doubt_of(source: ReadText, rewrite: ReadText, alignment: Alignment, language: str) -> float:
    """How close, 0 to 1, the closest two sentences are of which one alone holds a negation.

    0 where there are none, and in languages whose negations are not known.
    """
    ours, theirs = _denials(source, language), _denials(rewrite, language)
    return max(_closest(ours, theirs, alignment.source), _closest(theirs, ours, alignment.rewrite))


def is_drawn(key: str, share: float) -> bool:
    """Whether the lot falls on the part that `key` names, a digest of at least eight hex digits."""
    return int(key[:8], 16) < share * _LOTS


def _closest(ours: list[bool], theirs: list[bool], matches: tuple[Match, ...]) -> float:
    scores = (
        match.score
        for match in matches
        if match.other is not None
        and match.telling >= MIN_TELLING
        and ours[match.sentence] != theirs[match.other]
    )
    return max(scores, default=0.0)


def _denials(text: ReadText, language: str) -> list[bool]:
    """Of each sentence, whether it holds a negation."""
    return [holds_negation(words, language) for words in text.sentence_words]
