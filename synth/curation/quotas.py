"""Shares of what is kept: by the sequence of tools, and by what a trajectory is about and made by.

The worst by rank is what goes. What one quota takes makes every share of the rest larger, so quotas
are applied again until all hold at once.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from synth.curation.candidates import CurationCandidate
from synth.curation.settings.config import ANY_OTHER, DIMENSIONS, CurationConfig, QuotaDimension

SEQUENCE_QUOTA = "sequence_quota"

NOTHING_CALLED = "none"

VALUES: Mapping[QuotaDimension, Callable[[CurationCandidate], Sequence[str | None]]] = {
    "domain": lambda c: (c.domain,),
    "complexity": lambda c: (c.complexity,),
    "variant": lambda c: (c.variant,),
    "outcome": lambda c: (c.outcome,),
    "executed_by": lambda c: c.executed_by or (NOTHING_CALLED,),
}
"""What a candidate counts for."""


def quota_reason(dimension: QuotaDimension) -> str:
    """The drop reason of what is over a share."""
    return f"{dimension}_quota"


def over_shares(
    ranked: Iterable[CurationCandidate], config: CurationConfig
) -> dict[str, QuotaDimension]:
    """trajectory_id -> the dimension whose share it is over. `ranked`: the best first."""
    kept = {c.trajectory_id: c for c in ranked}
    dropped: dict[str, QuotaDimension] = {}
    changed = bool(config.quotas)
    while changed:
        changed = False
        for dimension in DIMENSIONS:
            for one in _over(kept, dimension, config):
                dropped[one] = dimension
                del kept[one]
                changed = True
    return dropped


def _over(
    kept: Mapping[str, CurationCandidate], dimension: QuotaDimension, config: CurationConfig
) -> set[str]:
    """The ids of the worst that are over a share of what is kept now. What is kept in the end is no
    more, so nothing goes that could stay."""
    shares = config.quotas.get(dimension, {})
    of_value: defaultdict[str, list[str]] = defaultdict(list)
    for trajectory_id, candidate in kept.items():
        for value in VALUES[dimension](candidate):
            of_value[value or NOTHING_CALLED].append(trajectory_id)
    over: set[str] = set()
    for value, ids in sorted(of_value.items()):
        share = shares.get(value, shares.get(ANY_OTHER))
        if share is not None:
            over.update(ids[most_of(share, len(kept), config.quota_min) :])
    return over


def most_of(share: float, total: int, at_least: int) -> int:
    """How many of one value may be among so many."""
    return max(at_least, int(share * total + 1e-9)) if share else 0


def over_sequences(ranked: Iterable[CurationCandidate], config: CurationConfig) -> set[str]:
    """Ids of those that are over the share of one sequence of tools. `ranked`: the best first."""
    groups: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for candidate in ranked:
        groups[candidate.sequence].append(candidate.trajectory_id)
    quota = sequence_quota([len(group) for group in groups.values()], config)
    return {one for group in groups.values() for one in group[quota:]}


def sequence_quota(sizes: Sequence[int], config: CurationConfig) -> int:
    """The largest q such that q is at most its share of what q leaves, sum(min(size, q)).

    At least `sequence_min`, since with few sequences no q above 0 satisfies that.
    """
    for quota in range(max(sizes, default=0), config.sequence_min, -1):
        if quota <= config.sequence_share * sum(min(size, quota) for size in sizes):
            return quota
    return config.sequence_min
