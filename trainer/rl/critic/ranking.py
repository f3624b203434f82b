"""The answers of a group in their order, as rewards: the share of an answer's comparisons that it
wins, ties as half."""

from collections.abc import Sequence
from typing import NamedTuple

from records.seeds import rng_of
from synth.gym.core.environment import Reward
from synth.gym.core.ranked import rubric_of
from trainer.rl.critic.asking import ComparedPair, PairVerdict, answer_of
from trainer.rl.critic.by_code import rules_broken
from trainer.rl.critic.pairs import pairs_among
from trainer.rl.rollouts.samples import Group, RolloutSample


class GroupComparisons(NamedTuple):
    """The pairs of one group that is ranked."""

    samples: Sequence[RolloutSample]
    """Those that are ranked."""
    places: Sequence[tuple[int, int]]
    """Of the pairs, among the samples."""
    by_code: Sequence[float | None]
    """What the first of each pair is worth by code; None where the critic is to be asked."""
    pairs: Sequence[ComparedPair]
    """Those that it is to be asked about, in their order."""

    def rewards(self, verdicts: Sequence[PairVerdict]) -> dict[int, Reward]:
        """By number of the sample. `verdicts`: on `pairs`."""
        said = iter(verdicts)
        worths = [next(said).worth if known is None else known for known in self.by_code]
        return {
            sample.number: reward
            for sample, reward in zip(
                self.samples, _shares(len(self.samples), self.places, worths), strict=True
            )
        }


def comparisons_of(group: Group, *, opponents: int, seed: int) -> GroupComparisons | None:
    """None of a group with fewer than two answers that can be ranked."""
    samples = [sample for sample in group.samples if sample.awaits_rank]
    if len(samples) < 2:
        return None
    rng = rng_of(f"{seed} {group.begun} {group.task.task_id}", "rl-ranking")
    places = pairs_among(len(samples), opponents, rng)
    broken = [rules_broken(answer_of(sample)) for sample in samples]
    by_code = [
        None if broken[one] == broken[other] else float(broken[one] < broken[other])
        for one, other in places
    ]
    rubric = rubric_of(group.task)
    pairs = [
        ComparedPair(samples[one], samples[other], rubric)
        for (one, other), known in zip(places, by_code, strict=True)
        if known is None
    ]
    return GroupComparisons(samples, places, by_code, pairs)


def _shares(count: int, places: Sequence[tuple[int, int]], worths: Sequence[float]) -> list[Reward]:
    won, tied, compared = [0.0] * count, [0] * count, [0] * count
    for (one, other), worth in zip(places, worths, strict=True):
        for place, own in ((one, worth), (other, 1.0 - worth)):
            won[place] += own
            tied[place] += own == 0.5
            compared[place] += 1
    return [
        Reward(won[n] / compared[n], {"critic_ties": tied[n] / compared[n]}) for n in range(count)
    ]
