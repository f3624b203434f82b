"""Confidence intervals of shares."""

from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple

import numpy as np

Z_95 = 1.959964
"""Of a two-sided interval at 95%."""

DRAWS = 2000
"""Resamples of a bootstrap."""


class Interval(NamedTuple):
    low: float
    high: float


def wilson(hits: float, n: int) -> Interval:
    """95% interval of the share hits / n by Wilson's score; (0, 1) where nothing was seen."""
    if n == 0:
        return Interval(0.0, 1.0)
    share, z2 = hits / n, Z_95**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def clustered(counts: Iterable[tuple[str, int, int]]) -> Interval:
    """95% interval of a share by bootstrap over clusters, of (cluster, hits, n): what belongs
    together, such as the tasks of one domain, is drawn together, since it succeeds together.

    Always the same draws. Where no cluster has a hit, or each has all, or there is only one,
    resampling would say that there is no doubt; then it is Wilson's interval of so many clusters.
    """
    sums: dict[str, tuple[int, int]] = {}
    for cluster, hits, n in counts:
        before = sums.get(cluster, (0, 0))
        sums[cluster] = (before[0] + hits, before[1] + n)
    found = np.array([pair for pair in sums.values() if pair[1]], dtype=float).reshape(-1, 2)
    hits, n = found.sum(0)
    if hits in (0, n) or len(found) == 1:
        return wilson(len(found) * hits / n if n else 0, len(found))
    rng = np.random.default_rng(0)
    drawn = found[rng.integers(len(found), size=(DRAWS, len(found)))].sum(1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], (0.025, 0.975))
    return Interval(float(low), float(high))
