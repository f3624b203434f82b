"""What two policies did on the same tasks, task for task."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from synth.episode.environment import OUTSIDE
from synth.render.intervals import DRAWS, Interval
from trainer.evaluation.playing import EpisodeScore

Count = Callable[[EpisodeScore], int]

Pair = tuple[EpisodeScore, EpisodeScore]
"""Before, after."""


class Difference(NamedTuple):
    """Of a share of what the episodes count, after less before."""

    before: float | None
    """None where nothing is counted; so are the others then."""
    after: float | None
    difference: float | None
    interval: Interval
    """95%, by bootstrap over the clusters of the tasks: domains, or new tools."""
    tasks: int
    gained: int
    """Tasks that count more after."""
    lost: int


def pairs_of(before: Iterable[EpisodeScore], after: Iterable[EpisodeScore]) -> list[Pair]:
    """Tasks that both played, and that say something about the policy both times."""
    by_task = {one.task_id: one for one in before if one.ended not in OUTSIDE}
    return [
        (by_task[one.task_id], one)
        for one in after
        if one.task_id in by_task and one.ended not in OUTSIDE
    ]


def difference_of(pairs: Sequence[Pair], hits: Count, of: Count) -> Difference:
    """The share is the sum of `hits` over the sum of `of`. Always the same draws."""
    clusters: dict[str, list[Pair]] = {}
    for pair in pairs:
        clusters.setdefault(pair[1].cluster, []).append(pair)
    sums = np.array(
        [
            [sum(count(pair[n]) for pair in own) for n in (0, 1) for count in (hits, of)]
            for own in clusters.values()
        ],
        dtype=float,
    ).reshape(-1, 4)
    gained = sum(hits(after) > hits(before) for before, after in pairs)
    lost = sum(hits(after) < hits(before) for before, after in pairs)
    hits_before, of_before, hits_after, of_after = sums.sum(0)
    if not (of_before and of_after):
        return Difference(None, None, None, Interval(-1.0, 1.0), len(pairs), gained, lost)
    before, after = hits_before / of_before, hits_after / of_after
    rng = np.random.default_rng(0)
    drawn = sums[rng.integers(len(sums), size=(DRAWS, len(sums)))].sum(1)
    whole = drawn[(drawn[:, 1] > 0) & (drawn[:, 3] > 0)]
    low, high = np.quantile(whole[:, 2] / whole[:, 3] - whole[:, 0] / whole[:, 1], (0.025, 0.975))
    return Difference(
        float(before),
        float(after),
        float(after - before),
        Interval(float(low), float(high)),
        len(pairs),
        gained,
        lost,
    )


def told(one: Difference) -> str:
    """`0.04 to 0.11, +0.07 (+0.01 to +0.14)`."""
    if one.before is None or one.after is None or one.difference is None:
        return "-"
    low, high = one.interval
    return f"{one.before:.2f} to {one.after:.2f}, {one.difference:+.2f} ({low:+.2f} to {high:+.2f})"
