"""The steps of an iteration: which groups each one learns from."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from records.seeds import seed_of
from trainer.rl.objective.baseline import SignalCounts, WeighedSample, weighed
from trainer.rl.objective.objectives import StepTotals
from trainer.rl.objective.rows import LearntSample
from trainer.rl.objective.settings import GrpoSettings, LearningSettings


class Minibatch(NamedTuple):
    """What one step learns from."""

    samples: list[WeighedSample]
    """Those that have drawn tokens, and a signal unless the others are kept."""
    totals: StepTotals
    counts: SignalCounts

    @property
    def has_signal(self) -> bool:
        return any(one.advantage for one in self.samples)

    @property
    def num_drawn(self) -> int:
        """Tokens that are learnt."""
        return sum(one.sample.num_drawn for one in self.samples)


def minibatches(
    samples: Sequence[LearntSample], settings: LearningSettings, *, seed: int, iteration: int
) -> Iterator[Minibatch]:
    """Of each epoch so many as the settings say, of whole groups, as even in number as they can be.
    A function of what is given, whatever the order of the samples: a step is found again by its
    place among them. Which groups come together is drawn anew in each epoch."""
    names = sorted({sample.group for sample in samples})
    parts = min(settings.minibatches, len(names))
    for epoch in range(settings.epochs if names else 0):
        rng = np.random.default_rng(seed_of(f"{seed} {iteration}", "minibatches", epoch))
        for part in np.array_split(rng.permutation(len(names)), parts):
            chosen = {names[int(place)] for place in part}
            yield minibatch_of([one for one in samples if one.group in chosen], settings)


def minibatch_of(samples: Sequence[LearntSample], settings: LearningSettings) -> Minibatch:
    """Of all these samples, whose groups are whole."""
    objective = settings.objective
    normalise = isinstance(objective, GrpoSettings) and objective.normalise
    made = weighed(samples, normalise=normalise, keep=settings.without_signal == "keep")
    tokens = sum(sample.num_drawn for sample in samples)
    learnt = [one for one in made.samples if one.sample.sequences]
    return Minibatch(learnt, StepTotals(len(samples), max(1, tokens)), made.counts)
