"""Whether one sequence nearly is another, so that it may stand in its place."""

from collections.abc import Sequence
from difflib import SequenceMatcher

MOST_PIECES = 60
"""Of either text, such as names, that are compared each with each."""

MOST_COMPARED = 600
"""Characters, words or tokens of either; what is longer is like nothing but itself. The work grows
with the square of it."""


def is_alike(a: Sequence[str], b: Sequence[str], *, at: float) -> bool:
    """Whether what they share in order is at least the share `at` of both."""
    if max(len(a), len(b)) > MOST_COMPARED:
        return a == b
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    # the first two are upper bounds of the third that cost little
    bounds = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return all(bound() >= at for bound in bounds)
