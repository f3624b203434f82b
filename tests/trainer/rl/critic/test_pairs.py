"""Which answers meet, and how far verdicts on them are told from chance."""

import random
from collections import Counter

import pytest

from synth.render.intervals import wilson
from tests.trainer.rl.critic.scripted import OPEN_GROUP, group, task
from trainer.rl.critic.agreement import AgreementRecord, MeasuredPair
from trainer.rl.critic.pairs import is_held_back, pairs_among, rated_pairs


@pytest.mark.parametrize("count", [2, 3, 5, 6])
def test_in_a_small_group_each_meets_each(count: int) -> None:
    pairs = pairs_among(count, 2, random.Random(0))
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) == count * (count - 1) // 2


@pytest.mark.parametrize("count", [7, 8, 16, 33])
@pytest.mark.parametrize("opponents", [2, 4, 6])
def test_in_a_large_group_all_meet_alike_many(count: int, opponents: int) -> None:
    pairs = pairs_among(count, opponents, random.Random(1))
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert all(one != other for one, other in pairs)
    met = Counter(place for pair in pairs for place in pair)
    assert set(met.values()) == {min(opponents, count - 1)}
    assert pairs != pairs_among(count, opponents, random.Random(2)) or count == 7 == opponents + 1


def test_pairs_are_of_one_task_and_of_different_rewards() -> None:
    groups = [group(task(1), 3, 3, 3), group(task(2), 1, 2, 2), group(task(3), 5, 4), OPEN_GROUP]
    pairs = rated_pairs(groups, most=99, seed=0, iteration=0)
    assert len(pairs) == 3
    for better, worse in pairs:
        assert better.task == worse.task
        assert better.reward is not None
        assert worse.reward is not None
        assert better.reward.value > worse.reward.value


def test_few_pairs_are_of_many_tasks() -> None:
    groups = [group(task(n), 1, 2, 3, 4) for n in range(8)]
    pairs = rated_pairs(groups, most=8, seed=0, iteration=0)
    assert len({pair.better.task.task_id for pair in pairs}) == 8
    assert pairs == rated_pairs(groups, most=8, seed=0, iteration=0)
    assert pairs != rated_pairs(groups, most=8, seed=1, iteration=0)


def test_a_task_is_held_back_for_good_and_by_the_share() -> None:
    tasks = [task(n) for n in range(1000)]
    held = [is_held_back(one, 0.3) for one in tasks]
    assert held == [is_held_back(one, 0.3) for one in tasks]
    assert 250 < sum(held) < 350


def test_pairs_of_one_task_are_no_more_than_one_observation() -> None:
    record = AgreementRecord(1000)
    assert (record.agreement, record.interval) == (None, (0.0, 1.0))
    record.add(MeasuredPair(0, "a", 1.0) for _ in range(500))
    assert record.agreement == 1.0
    assert not record.exceeds_chance
    record.add(MeasuredPair(0, name, 1.0) for name in "bcdef")
    assert record.exceeds_chance
    assert record.interval == wilson(6, 6)


def test_what_is_old_is_forgotten() -> None:
    record = AgreementRecord(10)
    record.add(MeasuredPair(0, str(n), 1.0) for n in range(10))
    assert record.exceeds_chance
    record.add(MeasuredPair(1, str(n), 0.5) for n in range(10))
    assert record.agreement == 0.5
    assert not record.exceeds_chance


def test_chance_is_hardly_ever_exceeded_by_chance() -> None:
    wrong = 0
    for seed in range(400):
        rng, record = random.Random(seed), AgreementRecord(200)
        record.add(
            MeasuredPair(0, str(rng.randrange(30)), rng.choice([0.0, 1.0])) for _ in range(100)
        )
        wrong += record.exceeds_chance
    assert wrong < 0.05 * 400


def test_the_trend_is_that_of_opposite_orders() -> None:
    record = AgreementRecord(200)
    record.add(MeasuredPair(0, str(n), 1.0) for n in range(10))
    assert record.trend is None
    record.add(MeasuredPair(1, str(n), 0.0 if n < 3 else 0.5) for n in range(10))
    assert record.trend == pytest.approx(0.3)
