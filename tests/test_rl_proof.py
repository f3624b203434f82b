"""What the page of reinforcement learning on the proof's model says of given episodes."""

import pytest

from benchmarks.proof.report import MEASURES
from benchmarks.rl_proof.paired import difference_of, pairs_of, told
from tests.trainer.evaluation.test_evaluation import GOOD
from trainer.evaluation.playing import EpisodeScore

SUCCESS, VALID = MEASURES["Task success"], MEASURES["Valid calls"]


def episodes(succeed: set[int], *, number: int = 24, valid: int = 1) -> list[EpisodeScore]:
    """Two of each domain."""
    return [
        GOOD._replace(
            task_id=f"task-{n}", cluster=f"d-{n // 2}", success=n in succeed, calls=2,
            valid_calls=valid,
        )
        for n in range(number)
    ]  # fmt: skip


def test_the_same_episodes_differ_by_nothing() -> None:
    own = episodes({1, 5, 6})
    found = difference_of(pairs_of(own, own), *SUCCESS)
    assert (found.difference, *found.interval) == (0.0, 0.0, 0.0)
    assert (found.tasks, found.gained, found.lost) == (24, 0, 0)


def test_gains_less_losses_over_the_tasks_are_the_difference() -> None:
    found = difference_of(pairs_of(episodes({0, 1, 2}), episodes({2, 3, 4, 5, 6})), *SUCCESS)
    assert (found.gained, found.lost) == (4, 2)
    assert found.difference == pytest.approx(2 / 24)
    assert found.interval.low < 2 / 24 < found.interval.high
    low, high = found.interval
    assert told(found) == f"0.12 to 0.21, +0.08 ({low:+.2f} to {high:+.2f})"


def test_turned_round_the_difference_is_the_opposite() -> None:
    before, after = episodes({0, 1, 2}), episodes(set(range(12)))
    there = difference_of(pairs_of(before, after), *SUCCESS)
    back = difference_of(pairs_of(after, before), *SUCCESS)
    assert there.difference == -(back.difference or 0.0)
    assert there.interval.low == pytest.approx(-back.interval.high)
    assert there.interval.low > 0  # 9 more of 24 are no chance


def test_a_share_of_calls_weighs_episodes_by_their_calls() -> None:
    before, after = episodes(set()), episodes(set(), valid=2)
    after[0] = after[0]._replace(calls=54, valid_calls=2)
    found = difference_of(pairs_of(before, after), *VALID)
    assert found.before == 0.5
    assert found.after == pytest.approx(48 / 100)


def test_tasks_that_one_did_not_play_are_left_out() -> None:
    before, after = episodes({0}), episodes({0}, number=10)
    before[3] = before[3]._replace(ended="infra_error")
    assert difference_of(pairs_of(before, after), *SUCCESS).tasks == 9


def test_of_nothing_nothing_is_told() -> None:
    assert told(difference_of([], *SUCCESS)) == "-"
