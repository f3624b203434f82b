"""What a sample's reward is worth against the others of its prompt."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from trainer.rl.objective.rows import LearntSample

EQUAL = 1e-9
"""Rewards of a group that are this near to each other are equal: what is between them is rounding,
which dividing by their deviation would make as large as any difference."""

DEVIATION_FLOOR = 1e-4
"""Added to the standard deviation that advantages are divided by, as in TRL."""


class WeighedSample(NamedTuple):
    sample: LearntSample
    advantage: float
    """Reward above the mean of its group, normalised where that is asked for."""
    share: float
    """Of the mean over prompts and, within one, over its samples: 1 / (prompts x samples)."""


class SignalCounts(NamedTuple):
    """Of groups, by what they have to say; and of their samples."""

    groups: int
    alone: int
    """Groups of one sample: its reward is its own baseline."""
    equal: int
    """Groups whose rewards are all equal."""
    samples: int


class Weighed(NamedTuple):
    samples: list[WeighedSample]
    """Those of groups with a signal, and the others where they are kept; by group and number."""
    counts: SignalCounts
    """Of all that were given."""


def weighed(samples: Sequence[LearntSample], *, normalise: bool, keep: bool) -> Weighed:
    """Advantages of whole groups: the mean is over the samples that are there, whatever was lost
    outside. A group of one, or with equal rewards, has advantages of 0, and `keep` says whether its
    samples are there; in the shares its prompt counts in any case. ValueError for two samples of
    one number in a group."""
    groups: dict[str, list[LearntSample]] = {}
    for sample in sorted(samples, key=lambda one: (one.group, one.number)):
        groups.setdefault(sample.group, []).append(sample)
    made: list[WeighedSample] = []
    alone, equal = 0, 0
    for name, group in groups.items():
        if len({sample.number for sample in group}) < len(group):
            raise ValueError(f"group {name} has two samples of one number")
        advantages = _advantages([sample.reward for sample in group], normalise=normalise)
        share = 1 / (len(groups) * len(group))
        if not any(advantages):
            alone += len(group) == 1
            equal += len(group) > 1
        if keep or any(advantages):
            pairs = zip(group, advantages, strict=True)
            made += [WeighedSample(sample, advantage, share) for sample, advantage in pairs]
    return Weighed(made, SignalCounts(len(groups), alone, equal, len(samples)))


def _advantages(rewards: Sequence[float], *, normalise: bool) -> list[float]:
    if max(rewards) - min(rewards) <= EQUAL:
        return [0.0] * len(rewards)
    mean = math.fsum(rewards) / len(rewards)
    over = statistics.stdev(rewards) + DEVIATION_FLOOR if normalise else 1.0
    return [(reward - mean) / over for reward in rewards]
