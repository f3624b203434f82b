"""Confidence intervals of shares."""

from math import sqrt
from typing import NamedTuple

Z_95 = 1.959964
"""Of a two-sided interval at 95%."""


class Interval(NamedTuple):
    low: float
    high: float


def wilson(hits: int, n: int) -> Interval:
    """95% interval of the share hits / n by Wilson's score; (0, 1) where nothing was seen."""
    if n == 0:
        return Interval(0.0, 1.0)
    share, z2 = hits / n, Z_95**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))
