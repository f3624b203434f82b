"""Budget control: what a reward is worth once it is known whether its sample was cut."""

import math
from typing import NamedTuple

from synth.gym.core.environment import RewardError
from trainer.rl.objective.settings import BudgetSettings


class BudgetedReward(NamedTuple):
    value: float
    """What is learnt from: the environment's reward less the penalty. It may be below 0."""
    penalty: float
    """0 for a sample that was not cut."""


def budgeted(
    reward: float, *, family: str, truncated: bool, settings: BudgetSettings
) -> BudgetedReward:
    """The reward of a sample before any baseline:

        value = reward - penalty of the family    where it was truncated
        value = reward                            else

    `truncated`: its rollout was ended for its length (`trainer.rl.rollouts.outcomes`). A budget is
    of a family, so samples of a group are measured alike. RewardError for a reward that is no
    number.
    """
    if not math.isfinite(reward):
        raise RewardError("reward_no_number", reward)
    penalty = settings.of(family).penalty if truncated else 0.0
    return BudgetedReward(reward - penalty, penalty)
