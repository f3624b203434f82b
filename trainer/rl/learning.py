"""The second half of an iteration: the samples that were played move the weights."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from records.errors import ItemError
from trainer.rl.critic.lessons import CriticLessons
from trainer.rl.objective.budget import budgeted
from trainer.rl.objective.minibatches import minibatches
from trainer.rl.objective.ptx import PtxRows
from trainer.rl.objective.rows import LearntSample, sample_of
from trainer.rl.objective.settings import BudgetSettings, LearningSettings
from trainer.rl.objective.stepper import LearntStep, RLStepper
from trainer.rl.rollouts.samples import Group, RolloutSample
from trainer.training.ending import BadSteps


class RewardedSamples(NamedTuple):
    samples: list[LearntSample]
    penalised: int
    """Samples that were cut and paid for it."""
    left_out: Mapping[str, int]
    """Samples that are not learnt from, by reason: an outcome without a reward, an answer that was
    not ranked, or a fault of what was drawn."""


def rewarded_samples(groups: Iterable[Group], budget: BudgetSettings) -> RewardedSamples:
    """Everything that can be learnt from, each sample once."""
    samples: list[LearntSample] = []
    penalised, left_out = 0, Counter[str]()
    for group in groups:
        for played in group.samples:
            if played.reward is None:
                left_out["unranked" if played.awaits_rank else played.outcome] += 1
                continue
            worth = budgeted(
                played.reward.value,
                family=played.task.family,
                truncated=played.truncated,
                settings=budget,
            )
            try:
                samples.append(_learnt(played, worth.value))
            except ItemError as error:
                left_out[error.reason] += 1
                continue
            penalised += worth.penalty > 0
    return RewardedSamples(samples, penalised, dict(sorted(left_out.items())))


def _learnt(played: RolloutSample, reward: float) -> LearntSample:
    return sample_of(
        played.tokens,
        group=f"{played.begun}-{played.task.task_id}",
        number=played.number,
        family=played.task.family,
        reward=reward,
    )


def learn(
    stepper: RLStepper,
    samples: Sequence[LearntSample],
    settings: LearningSettings,
    good: PtxRows | None,
    bad: BadSteps,
    lessons: CriticLessons | None = None,
    *,
    seed: int,
    iteration: int,
    steps_before: int,
    most_bad: int,
) -> list[LearntStep]:
    """Take the iteration's steps, the lessons shared out among them; `bad` is told of those that
    were skipped, and `most_bad` of them in a row end it. A function of the weights, the optimiser
    and what is given."""
    taken: list[LearntStep] = []
    steps = list(minibatches(samples, settings, seed=seed, iteration=iteration))
    for number, minibatch in enumerate(steps):
        rows = None if good is None else good.of_step(steps_before + number)
        verdicts = None if lessons is None else lessons.of_step(number, len(steps))
        taken.append(stepper.step(minibatch, version=iteration, ptx=rows, verdicts=verdicts))
        result = taken[-1].taken
        if result is not None:
            bad.add(result)
        if len(bad) >= most_bad:
            break
    return taken
