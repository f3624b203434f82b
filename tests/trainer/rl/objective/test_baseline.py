"""What a reward is worth: budgets before the baseline, baselines over those who are there, and
steps of whole groups."""

import math
import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.gym.core.environment import RewardError
from tests.trainer.rl.objective.made_samples import REWARDS, samples
from trainer.rl.objective.baseline import weighed
from trainer.rl.objective.budget import budgeted
from trainer.rl.objective.minibatches import Minibatch, minibatch_of, minibatches
from trainer.rl.objective.rows import LearntSample
from trainer.rl.objective.settings import (
    BudgetSettings,
    FamilyBudget,
    GrpoSettings,
    LearningSettings,
    TemperatureSettings,
)


def group_of(rewards: list[float], name: str = "g") -> list[LearntSample]:
    return [LearntSample(name, number, "maths", r, ()) for number, r in enumerate(rewards)]


@given(st.lists(st.integers(-3, 3).map(lambda n: n / 4), min_size=1, max_size=6))
def test_advantages_are_rewards_above_the_mean_of_those_that_are_there(
    rewards: list[float],
) -> None:
    made = weighed(group_of(rewards), normalise=False, keep=True)
    mean = statistics.fmean(rewards)
    assert [one.advantage for one in made.samples] == pytest.approx([r - mean for r in rewards])
    assert math.fsum(one.advantage for one in made.samples) == pytest.approx(0.0, abs=1e-12)
    same = len(set(rewards)) == 1
    assert made.counts.alone == (len(rewards) == 1)
    assert made.counts.equal == (same and len(rewards) > 1)
    learnt = weighed(group_of(rewards), normalise=True, keep=False).samples
    if same:
        assert not learnt
    else:
        deviation = statistics.stdev(rewards) + 1e-4
        expected = [(r - mean) / deviation for r in rewards]
        assert [one.advantage for one in learnt] == pytest.approx(expected)


def test_what_rounding_leaves_between_rewards_is_no_signal() -> None:
    made = weighed(group_of([0.1 + 0.2, 0.3]), normalise=True, keep=True)
    assert [one.advantage for one in made.samples] == [0.0, 0.0]
    assert made.counts.equal == 1


def test_shares_are_of_all_prompts_and_of_the_samples_that_each_has() -> None:
    made = weighed(samples(), normalise=False, keep=True)
    for group, rewards in REWARDS.items():
        shares = [one.share for one in made.samples if one.sample.group == group]
        assert shares == [1 / (len(REWARDS) * len(rewards))] * len(rewards)
    assert math.fsum(one.share for one in made.samples) == pytest.approx(1.0)
    left = weighed(samples(), normalise=False, keep=False)
    assert {one.sample.group for one in left.samples} == {"a", "b"}
    assert left.counts == made.counts
    kept = [one for one in made.samples if one.advantage]
    assert [one.share for one in left.samples if one.advantage] == [one.share for one in kept]


def test_two_samples_of_one_number_are_refused() -> None:
    with pytest.raises(ValueError, match="group g has two samples of one number"):
        weighed(group_of([0.0]) * 2, normalise=False, keep=False)


BUDGETS = BudgetSettings(
    default=FamilyBudget(penalty=0.25),
    families={"maths": FamilyBudget(penalty=0.5), "free": FamilyBudget(penalty=0.0)},
)


@pytest.mark.parametrize(
    ("family", "truncated", "penalty"),
    [
        ("maths", False, 0.0),
        ("maths", True, 0.5),
        ("tool_use", False, 0.0),
        ("tool_use", True, 0.25),
        ("free", True, 0.0),
    ],
)
def test_a_sample_that_was_cut_pays_what_its_family_has_to(
    family: str, truncated: bool, penalty: float
) -> None:
    made = budgeted(0.75, family=family, truncated=truncated, settings=BUDGETS)
    assert made == (0.75 - penalty, penalty)
    with pytest.raises(RewardError, match="reward_no_number"):
        budgeted(math.nan, family=family, truncated=truncated, settings=BUDGETS)


@pytest.mark.parametrize("shape", ["constant", "linear", "cosine"])
def test_temperature_goes_from_start_to_end_and_stays(shape: str) -> None:
    settings = TemperatureSettings.model_validate(
        {"start": 1.2, "end": 0.6, "iterations": 11, "shape": shape}
    )
    way = [settings.at(n) for n in range(15)]
    end = 1.2 if shape == "constant" else 0.6
    assert (way[0], way[10], way[14]) == pytest.approx((1.2, end, end))
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(way))
    assert way[5] == pytest.approx(1.2 if shape == "constant" else 0.9)
    assert TemperatureSettings(iterations=1).at(0) == 1.0


def groups_of(step: Minibatch) -> set[str]:
    return {one.sample.group for one in step.samples}


def test_epochs_go_through_all_groups_in_steps_of_whole_ones() -> None:
    many = [
        LearntSample(f"g{n}", k, "maths", float(k), samples()[0].sequences)
        for n in range(10)
        for k in range(3)
    ]
    settings = LearningSettings(epochs=3, minibatches=4)
    made = list(minibatches(many, settings, seed=1, iteration=2))
    assert len(made) == 12
    epochs = [made[n : n + 4] for n in (0, 4, 8)]
    for epoch in epochs:
        assert sorted(step.counts.groups for step in epoch) == [2, 2, 3, 3]
        assert all(len(step.samples) == 3 * step.counts.groups for step in epoch)
        assert set[str]().union(*map(groups_of, epoch)) == {f"g{n}" for n in range(10)}
    assert len({tuple(sorted(groups_of(epoch[0]))) for epoch in epochs}) > 1
    again = list(minibatches(many[::-1], settings, seed=1, iteration=2))
    assert [groups_of(step) for step in again] == [groups_of(step) for step in made]
    other = list(minibatches(many, settings, seed=1, iteration=3))
    assert [groups_of(step) for step in other] != [groups_of(step) for step in made]
    few = list(minibatches(many[:3], settings, seed=1, iteration=2))
    assert [step.counts.groups for step in few] == [1, 1, 1]
    assert list(minibatches([], settings, seed=1, iteration=2)) == []


def test_means_are_over_what_is_left_out_as_well() -> None:
    step = minibatch_of(samples(), LearningSettings())
    assert step.totals.samples == 8
    assert step.totals.tokens == sum(s.num_drawn for s in samples())
    assert step.num_drawn == sum(s.num_drawn for s in samples() if s.group in ("a", "b"))
    assert step.has_signal
    silent = minibatch_of(group_of([0.0, 1.0]), LearningSettings())
    assert not silent.has_signal  # no token was drawn: there is nothing to move by it
    assert silent.counts.equal == 0


def test_keeping_what_moves_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="kl_weight"):
        LearningSettings(objective=GrpoSettings(), without_signal="keep")
    LearningSettings(objective=GrpoSettings(kl_weight=0.1), without_signal="keep")
