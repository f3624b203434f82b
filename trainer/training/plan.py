"""How many steps a run was told to take, and what its learning rate is at each of them.

A schedule that follows from the number of steps would start over when that number is raised. So a
run keeps the numbers that it was told, one after another, in its checkpoints: the rate of a step
that was planned once never changes.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from records.errors import ConfigError
from trainer.optim.schedule import RateExtension, Schedule, extended
from trainer.training.settings import TrainConfig


class PlannedSteps(NamedTuple):
    steps: int
    """The last step of it, counted from the run's beginning."""
    extend: RateExtension | None
    """How the rate goes on from the steps planned before; None for the first."""


Plan = tuple[PlannedSteps, ...]
"""In their order."""


def plan_of(config: TrainConfig, known: Plan, taken: int) -> Plan:
    """The plan of a run of which `known` was planned and `taken` steps were taken; both are empty
    or 0 for a new one.

    ConfigError for fewer steps than were taken, and for more than were planned where nothing says
    what their rate is. A number between the two ends the run sooner, and changes no rate.
    """
    if not known:
        return (PlannedSteps(config.steps, None),)
    if config.steps < taken:
        raise ConfigError(
            f"steps = {config.steps}, but the run in {config.out} has taken {taken} steps; set "
            f"steps to {taken} to end it there or to more, or choose another `out`"
        )
    planned = known[-1].steps
    if config.steps <= planned or config.schedule is not None:
        return known
    if config.extend is None:
        raise ConfigError(
            f"steps = {config.steps}, but the run in {config.out} was planned with {planned}, over "
            "which its learning rate decays; set extend = 'hold' to go on at the last rate, or "
            "extend = 'redecay' to rise to peak_lr again and decay over the new steps"
        )
    return (*known, PlannedSteps(config.steps, config.extend))


def learning_rates(config: TrainConfig, plan: Plan) -> Schedule:
    """By tokens of rows, padding included: step n has the rate at n times `step_tokens`."""
    begun_with = config.model_copy(update={"steps": plan[0].steps})
    made = begun_with.learning_rates
    if config.schedule is None:
        for before, after in pairwise(plan):
            assert after.extend is not None  # only the first has none
            tokens = (after.steps - before.steps) * config.step_tokens
            made = extended(made, tokens, after.extend, peak=config.peak_lr, decay=config.decay)
    return made


def plan_from(stored: Sequence[Sequence[Any]]) -> Plan:
    """A plan as JSON has it, which knows lists alone."""
    return tuple(PlannedSteps(*planned) for planned in stored)
