"""Budget control: what a reward is worth once its sample's length is looked at."""

import math
from typing import NamedTuple

from synth.gym.core.environment import RewardError
from trainer.rl.objective.settings import BudgetSettings


class BudgetedReward(NamedTuple):
    value: float
    """What is learnt from: the environment's reward less the penalty. It may be below 0."""
    penalty: float
    """0 for a sample within its budget."""


def budgeted(
    reward: float, *, family: str, drawn: int, truncated: bool, settings: BudgetSettings
) -> BudgetedReward:
    """The reward of a sample before any baseline:

        value = reward - penalty of the family    where it was truncated, or drew more than tokens
        value = reward                            else

    `drawn`: tokens that the policy drew in all its answers. `truncated`: its rollout was ended for
    its length. A budget is of a family, so samples of a group are measured alike. RewardError for a
    reward that is no number.
    """
    if not math.isfinite(reward):
        raise RewardError("reward_no_number", reward)
    own = settings.of(family)
    over = truncated or (own.tokens is not None and drawn > own.tokens)
    penalty = own.penalty if over else 0.0
    return BudgetedReward(reward - penalty, penalty)
