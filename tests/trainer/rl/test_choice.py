"""Which tasks an iteration plays, and what episodes count as in a score."""

from typing import Any

import pytest

from records.errors import ConfigError
from synth.gym.core.environment import GymTask, Reward
from synth.gym.core.ranked import RANKED
from synth.gym.difficulty import ModerateBand
from trainer.rl.choice import TaskChoice
from trainer.rl.rollouts.outcomes import EpisodeOutcome
from trainer.rl.rollouts.samples import Group, RolloutSample
from trainer.rl.settings import ChoiceSettings
from trainer.rl.testing import chosen_tasks, mean_reward, scores_of

SETTINGS = ChoiceSettings(tasks=3, band=ModerateBand(k=2), rest=2)


def task(number: int, split: Any = "train", family: str = "sums", kind: str = "add") -> GymTask:
    return GymTask(f"task-{number:02d}", family, split, (f"kind:{kind}",), {})


def sample(
    of: GymTask, reward: float | None, outcome: EpisodeOutcome = "completed", begun: int = 0
) -> RolloutSample:
    worth = None if reward is None else Reward(reward, {"half": reward / 2})
    return RolloutSample(of, 0, 0, [], [], [], worth, outcome, "", False, 1, begun, begun)


def group(of: GymTask, *rewards: float, begun: int = 0) -> Group:
    return Group(of, begun, [sample(of, reward) for reward in rewards])


def test_only_tasks_to_learn_from_are_chosen_and_another_iteration_draws_others() -> None:
    tasks = [task(n) for n in range(20)] + [task(50, "validation"), task(51, "heldout")]
    choice = TaskChoice(tasks, SETTINGS, seed=0)
    drawn = [tuple(one.task_id for one in choice.of(n)) for n in range(8)]
    assert all(len(set(own)) == 3 for own in drawn)
    assert len(set(drawn)) > 1
    assert not {"task-50", "task-51"} & {one for own in drawn for one in own}
    again = TaskChoice(list(reversed(tasks)), SETTINGS, seed=0)
    assert [{one.task_id for one in again.of(n)} for n in range(8)] == [set(own) for own in drawn]


def test_too_hard_and_too_easy_tasks_rest_and_come_again() -> None:
    tasks = [task(n) for n in range(5)]
    choice = TaskChoice(tasks, SETTINGS, seed=0)
    choice.note([group(tasks[0], 0.0, 0.0), group(tasks[1], 1.0, 1.0), group(tasks[2], 1.0, 0.0)])
    assert choice.difficulties() == (2, 1, 1, 1)
    for iteration in (1, 2):
        assert {one.task_id for one in choice.of(iteration)} == {"task-02", "task-03", "task-04"}
    assert any({"task-00", "task-01"} & {t.task_id for t in choice.of(n)} for n in range(3, 9))


def test_where_too_few_are_awake_those_that_rested_longest_are_played() -> None:
    tasks = [task(n) for n in range(4)]
    choice = TaskChoice(tasks, SETTINGS, seed=0)
    choice.note([group(tasks[0], 0.0, 0.0, begun=5)])
    choice.note([group(one, 0.0, 0.0, begun=6) for one in tasks[1:3]])
    assert {one.task_id for one in choice.of(7)} == {"task-03", "task-00", "task-01"}


def test_a_choice_that_is_restored_goes_on_alike() -> None:
    tasks = [task(n) for n in range(9)]
    choice = TaskChoice(tasks, SETTINGS, seed=3)
    choice.note([group(tasks[4], 0.0, 0.0), group(tasks[5], 1.0, 0.0)])
    other = TaskChoice(tasks, SETTINGS, seed=3)
    other.restore(choice.to_json())
    assert [other.of(n) for n in range(4)] == [choice.of(n) for n in range(4)]


def test_samples_that_were_all_lost_say_nothing_of_a_task() -> None:
    tasks = [task(0), task(1)]
    choice = TaskChoice(tasks, SETTINGS, seed=0)
    choice.note([Group(tasks[0], 0, [sample(tasks[0], None, "environment_error")])])
    assert not choice.tried


def test_silence_and_answers_without_an_end_are_attempts_that_did_not_pass() -> None:
    tasks = [task(0), task(1)]
    choice = TaskChoice(tasks, SETTINGS, seed=0)
    samples = [sample(tasks[0], None, outcome) for outcome in ("silent", "endless", "late")]
    choice.note([Group(tasks[0], 0, samples)])
    assert choice.tried[tasks[0].task_id].rewards == [0.0, 0.0]
    assert choice.difficulties().too_hard == 1


def test_a_task_whose_answers_are_ranked_never_rests_and_is_in_no_test() -> None:
    one = task(0)._replace(tags=(RANKED,))
    choice = TaskChoice([one, task(1)], SETTINGS, seed=0)
    choice.note([Group(one, 0, [sample(one, None, "silent"), sample(one, None, "endless")])])
    choice.note([group(one, 0.0, 0.0)])
    assert not choice.tried
    assert sample(one, None).worth is None
    heldout = [one._replace(split="heldout"), task(2, "heldout")]
    assert chosen_tasks(heldout, "heldout", 5) == heldout[1:]


def test_no_task_to_learn_from_is_refused() -> None:
    with pytest.raises(ConfigError, match="no task to learn from"):
        TaskChoice([task(0, "heldout")], SETTINGS, seed=0)


def test_silence_counts_as_nothing_and_what_lies_outside_is_left_aside() -> None:
    one = task(0)
    samples = [sample(one, 1.0), sample(one, None, "silent"), sample(one, None, "endless")]
    (score,) = scores_of([*samples, sample(one, None, "environment_timeout")])
    assert (score.episodes, score.lost) == (3, 1)
    assert score.reward == pytest.approx(1 / 3)
    assert score.success == pytest.approx(1 / 3)
    assert score.parts == {"half": 0.5}
    assert mean_reward([score]) == score.reward
    assert mean_reward(scores_of([sample(one, None, "late")])) is None
    assert mean_reward([]) is None


def test_a_family_that_was_lost_leaves_no_mean_to_compare_with_others() -> None:
    easy, hard = task(0, family="easy"), task(1, family="hard")
    both = scores_of([sample(easy, 1.0), sample(hard, 0.0)])
    assert mean_reward(both) == 0.5
    without = scores_of([sample(easy, 1.0), sample(hard, None, "environment_timeout")])
    assert mean_reward(without) is None


def test_a_test_takes_the_same_tasks_of_each_family_whatever_their_order() -> None:
    tasks = [task(n, "heldout", family) for family in ("a", "b") for n in range(8)]
    tasks = [one._replace(task_id=f"{one.family}-{one.task_id}") for one in tasks]
    chosen = chosen_tasks(tasks, "heldout", 3)
    assert [one.family for one in chosen] == ["a"] * 3 + ["b"] * 3
    ids = {one.task_id for one in chosen}
    assert {one.task_id for one in chosen_tasks(tasks[::-1], "heldout", 3)} == ids
