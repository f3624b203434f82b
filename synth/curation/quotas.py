"""Shares of what is kept: by the sequence of tools, and by what a trajectory is about and made by.

The worst by rank is what goes. What one quota takes makes every share of the rest larger, so quotas
are applied again until all hold at once. Where they cannot (at most a tenth of each of five
domains), little is left: `warnings_of` says so.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from records.tables.task_tables import IMPORTED
from synth.curation.candidates import CurationCandidate
from synth.curation.settings.config import ANY_OTHER, DIMENSIONS, CurationConfig, QuotaDimension

SEQUENCE_QUOTA = "sequence_quota"

UNKNOWN = "none"
"""The value of what has none: of an imported trajectory's domain, and of executors where nothing
was called."""

MOST_NAMED = 10
"""Values that a warning names."""

VALUES: Mapping[QuotaDimension, Callable[[CurationCandidate], Sequence[str | None]]] = {
    "domain": lambda c: (c.domain,),
    "complexity": lambda c: (c.complexity,),
    "variant": lambda c: (c.variant,),
    "outcome": lambda c: (c.outcome,),
    "executed_by": lambda c: c.executed_by or (None,),
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
    limited: dict[QuotaDimension, list[tuple[float, list[str]]]] = {
        dimension: _limited(kept.values(), dimension, config)
        for dimension in DIMENSIONS
        if dimension in config.quotas
    }
    dropped: dict[str, QuotaDimension] = {}
    changed = True
    while changed:
        changed = False
        for dimension, groups in limited.items():
            # what is kept in the end is no more than now, so nothing goes that could stay
            total, over = len(kept), set[str]()
            for share, ids in groups:
                ids[:] = [one for one in ids if one in kept]
                over.update(ids[most_of(share, total, config.quota_min) :])
            dropped |= dict.fromkeys(over, dimension)
            for one in over:
                del kept[one]
            changed = changed or bool(over)
    return dropped


def _limited(
    ranked: Collection[CurationCandidate], dimension: QuotaDimension, config: CurationConfig
) -> list[tuple[float, list[str]]]:
    """Share and ids, the best first, of each value that has a share. What has no value is not the
    others' (`ANY_OTHER`): imported trajectories of many domains are not one domain."""
    shares = config.quotas[dimension]
    of_value: defaultdict[str, list[str]] = defaultdict(list)
    for candidate in ranked:
        for value in VALUES[dimension](candidate):
            of_value[value or UNKNOWN].append(candidate.trajectory_id)
    share_of = {
        value: shares.get(value, None if value == UNKNOWN else shares.get(ANY_OTHER))
        for value in sorted(of_value)
    }
    return [(share, of_value[value]) for value, share in share_of.items() if share is not None]


def most_of(share: float, total: int, at_least: int) -> int:
    """How many of one value may be among so many."""
    return max(at_least, int(share * total + 1e-9)) if share else 0


def over_sequences(ranked: Iterable[CurationCandidate], config: CurationConfig) -> set[str]:
    """Ids of those that are over the share of one sequence of tools. `ranked`: the best first.

    The share is of what was played here, so that no habit of whoever plans tasks prevails. Where
    nothing was called there is no sequence, and imported conversations follow no plan of ours.
    """
    groups: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for candidate in ranked:
        if candidate.sequence and candidate.variant != IMPORTED:
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


def warnings_of(
    candidates: Collection[CurationCandidate],
    reasons: Mapping[str | None, int],
    config: CurationConfig,
) -> Iterator[str]:
    """What quotas come to that nobody is likely to want. `reasons`: how many candidates were
    dropped for each, None for those that are kept."""
    for dimension, shares in sorted(config.quotas.items()):
        known = {value or UNKNOWN for c in candidates for value in VALUES[dimension](c)}
        there = ", ".join(sorted(known)[:MOST_NAMED])
        for value in sorted(shares.keys() - known - {ANY_OTHER}):
            yield (
                f"curation.quotas.{dimension} names {value!r}, which no trajectory has; "
                f"there are {len(known)} values: {there}"
            )
    by_quota = {r: reasons.get(r, 0) for r in (SEQUENCE_QUOTA, *map(quota_reason, DIMENSIONS))}
    gone, kept = sum(by_quota.values()), reasons.get(None, 0)
    if gone > kept:
        words = ", ".join(f"{reason} {number}" for reason, number in by_quota.items() if number)
        yield (
            f"quotas leave {kept} of {kept + gone} trajectories ({words}). A share is of what is "
            "kept in the end: where the shares of all values there are come to less than 1, or "
            "few sequences of tools are all there is, almost nothing may stay. Curate again with "
            "larger curation.quotas, or curation.sequence_share; nothing is played anew"
        )
