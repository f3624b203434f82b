"""Which answers are compared: those of a group that is ranked, and rewarded ones by which the
critic learns and is measured."""

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from records.seeds import rng_of, share_of
from synth.gym.core.environment import GymTask
from synth.gym.core.ranked import is_ranked
from trainer.rl.objective.baseline import EQUAL
from trainer.rl.rollouts.samples import Group, RolloutSample

ALL_PAIRS = 6
"""Answers of a group up to which each is compared with each."""


class RatedPair(NamedTuple):
    """Two answers to one verifiable task of which code says that one is better."""

    better: RolloutSample
    worse: RolloutSample


def pairs_among(count: int, opponents: int, rng: random.Random) -> list[tuple[int, int]]:
    """Places of the answers that are compared, each pair once. Of more than `ALL_PAIRS` answers
    each has `opponents` (an even number), drawn; of fewer, or where that makes no difference, each
    has all others."""
    if count <= max(ALL_PAIRS, opponents + 1):
        return list(itertools.combinations(range(count), 2))
    ring = rng.sample(range(count), count)
    return [
        (ring[place], ring[(place + step) % count])
        for step in range(1, opponents // 2 + 1)
        for place in range(count)
    ]


def is_held_back(task: GymTask, share: float) -> bool:
    """Whether the critic is measured by the task, and so never learns from it; always the same of a
    task."""
    return share_of(task.task_id, "rl-critic-held-back") < share


def rated_pairs(
    groups: Iterable[Group], *, most: int, seed: int, iteration: int
) -> list[RatedPair]:
    """So many pairs at most of the samples that code has rewarded, from as many groups as there
    are: one of each group, then another of each."""
    drawn = [
        list(_pairs_of(group, rng_of(f"{seed} {group.begun} {group.task.task_id}", "rl-pairs")))
        for group in groups
        if not is_ranked(group.task)
    ]
    order = rng_of(str(seed), "rl-pairs", iteration)
    order.shuffle(drawn)
    turns = itertools.zip_longest(*drawn)
    taken = (pair for turn in turns for pair in turn if pair is not None)
    return list(itertools.islice(taken, most))


def _pairs_of(group: Group, rng: random.Random) -> Iterator[RatedPair]:
    """All pairs of different rewards, in drawn order."""
    worth = [(sample.reward.value, sample) for sample in group.samples if sample.reward is not None]
    pairs = list(itertools.combinations(worth, 2))
    rng.shuffle(pairs)
    for (one, first), (other, second) in pairs:
        if abs(one - other) > EQUAL:
            yield RatedPair(first, second) if one > other else RatedPair(second, first)
