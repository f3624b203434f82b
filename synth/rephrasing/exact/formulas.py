"""Formulas that stand in the place of others, and equations that are false."""

import re
from collections.abc import Iterator

from synth.rephrasing.exact.likeness import is_alike
from synth.rephrasing.exact.readings import PartPair
from synth.rephrasing.fidelity.maths import maths_kept

ALIKE = 0.7
"""How alike two formulas must be, token by token, for one to stand in the other's place."""

FEWEST_TOKENS = 3
MOST_TOKENS_APART = 6

_RELATIONS = ("=", "<", ">")

_SPACING = re.compile(r"\\(?:(?:left|right|quad)(?![a-zA-Z])|[,;!:])")
_TOKEN = re.compile(r"\\[a-zA-Z]+|\w|[^\s\w]")


def changed_formulas(pair: PartPair) -> Iterator[str]:
    """Notes may say a formula in words and work out new ones, so only what nearly is a formula of
    the source that is gone counts, and what is plainly false."""
    source, rewrite = (reading.text for reading in pair)
    has_plain = any(sign in rewrite.stated for sign in _RELATIONS)
    if not has_plain and set(rewrite.formulas) <= set(source.formulas):
        return
    languages = pair.source.language, pair.rewrite.language
    kept = maths_kept(pair.source.text, pair.rewrite.text, languages=languages)
    for equation in kept.false:
        yield f"{equation} does not hold"
    gone = [(_tokens(formula), formula) for formula in kept.formulas.lost]
    for formula in kept.formulas.added:
        own = _tokens(formula)
        near = next((other for tokens, other in gone if _stands_for(own, tokens)), None)
        if near is not None:
            yield f"the part has {near}; the rewrite has {formula} instead"


def _stands_for(own: list[str], other: list[str]) -> bool:
    if own == other or len(own) < FEWEST_TOKENS or abs(len(own) - len(other)) > MOST_TOKENS_APART:
        return False
    if any((sign in own) != (sign in other) for sign in _RELATIONS):
        return False
    return is_alike(own, other, at=ALIKE)


def _tokens(formula: str) -> list[str]:
    return _TOKEN.findall(_SPACING.sub("", formula).rstrip(" .,"))
