"""How much a task asks for: the number of its user goals, and the calls of its reference plan.

Goals are drawn by complexity. Lengths are declared in the settings, in bands of calls, as
`{"1-3": 0.3, "4-8": 0.4, ...}`. A plan of LONG calls and more counts only if it is varied and its
calls hang together.
"""

import itertools
import re
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

from records.seeds import rng_of
from synth.tasks.goals.goals import Draft, Proof
from synth.tasks.proof.proving import UnprovedError

MOST_CALLS = 40
"""Calls that a band may reach to."""

LONG = 9
"""Calls from which a plan is a long one."""

LEAST_TOOLS = 5
"""Distinct tools that a long plan has, at least."""

LEAST_CHAIN = 4
"""Calls of a long plan, at least, of which each takes what the one before it is the first to
show."""

_BAND = re.compile(r"([1-9]\d?)-([1-9]\d?)")


class Complexity(NamedTuple):
    """Shares of tasks with one user goal, with two, and with three or four."""

    simple: float
    moderate: float
    complex: float


GOALS: Mapping[str, tuple[int, ...]] = {"simple": (1,), "moderate": (2,), "complex": (3, 3, 4)}


def complexity_of(shares: Complexity, rng: Random) -> tuple[str, int]:
    """(name, number of user goals)."""
    chosen = rng.choices(Complexity._fields, shares)[0]
    return chosen, rng.choice(GOALS[chosen])


def complexity_with(goals: int) -> str:
    """The complexity of a task with so many user goals."""
    return Complexity._fields[min(goals, len(Complexity._fields)) - 1]


class Band(NamedTuple):
    """Calls of a reference plan, both ends within."""

    least: int
    most: int

    def __str__(self) -> str:
        return f"{self.least}-{self.most}"

    def holds(self, calls: int) -> bool:
        return self.least <= calls <= self.most

    @property
    def is_long(self) -> bool:
        return self.least >= LONG


def bands_of(lengths: Mapping[str, float]) -> dict[Band, float]:
    """The bands and their shares. Raises ValueError for what is no share of all tasks by bands that
    lie apart."""
    bands: dict[Band, float] = {}
    for name, share in lengths.items():
        ends = _BAND.fullmatch(name)
        band = Band(int(ends[1]), int(ends[2])) if ends else Band(0, 0)
        if not 1 <= band.least <= band.most <= MOST_CALLS:
            raise ValueError(
                f"lengths are bands of calls from 1 to {MOST_CALLS} such as '4-8', got {name!r}"
            )
        if share < 0:
            raise ValueError(f"the share of {name} must be at least 0, got {share}")
        bands[band] = share
    ordered = sorted(bands)
    for lower, higher in itertools.pairwise(ordered):
        if higher.least <= lower.most:
            raise ValueError(f"bands must lie apart, got {lower} and {higher}")
    if bands and abs(sum(bands.values()) - 1.0) > 1e-9:
        raise ValueError(f"shares of lengths must add up to 1, got {sum(bands.values())}")
    return bands


def band_of(item_id: str, lengths: Mapping[str, float]) -> Band | None:
    """The band that a task is to come to; None where lengths are left to the number of goals."""
    bands = bands_of(lengths)
    if not bands:
        return None
    return rng_of(item_id, "length").choices(list(bands), list(bands.values()))[0]


def check_length(band: Band, draft: Draft, proof: Proof) -> None:
    """Raises UnprovedError where the proved plan does not count for its band."""
    calls = len(draft.plan)
    if not band.holds(calls):
        raise UnprovedError("not_in_band", f"{calls} calls are not in {band}")
    if calls < LONG:
        return
    if proof.num_distinct_tools < LEAST_TOOLS:
        raise UnprovedError("too_few_tools", f"{proof.num_distinct_tools} in {calls} calls")
    if proof.longest_chain < LEAST_CHAIN:
        raise UnprovedError("chain_too_short", f"{proof.longest_chain} of {calls} calls")
