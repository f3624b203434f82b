"""What a trial tries: kinds spread evenly, a bounded number of attempts, the same items again."""

from collections import Counter
from collections.abc import Collection, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.engine.plans import StageReport
from synth.engine.stages import Item
from synth.judging.calibration import JudgingConfig, num_perturbed
from synth.judging.perturbation.planning import MOST_ATTEMPTS, Pair, TriedBefore
from synth.judging.perturbation.registry import CONTROL, PARAPHRASE, PERTURBATIONS
from synth.judging.stages import may_want_more
from tests.synth.judging.trial_work import kind_of, pair_of, planned, sorts


def known(items: Iterable[Item], done: Collection[Item], vain: Collection[str] = ()) -> TriedBefore:
    """After so many of the items were made; those of the kinds `vain` came to nothing."""
    ids = {i.item_id for i in done}
    pairs = {pair_of(i) for i in items if i.item_id in ids and kind_of(i) != CONTROL}
    lost = {pair for pair in pairs if pair.perturbation in vain}
    closed = pairs.__contains__
    return TriedBefore(pairs - lost, lost, closed)


@given(st.integers(1, 60), st.floats(0.05, 1.0), st.data())
def test_a_trial_that_is_broken_off_goes_on_with_the_same_items(
    num: int, share: float, data: st.DataObject
) -> None:
    passed = [f"t{i}" for i in range(num)]
    config = JudgingConfig(perturbed_share=share)
    items = planned(passed, config=config)
    assert len({item.item_id for item in items}) == len(items)
    done = data.draw(st.lists(st.sampled_from(items)))
    again = planned(passed, config=config, before=known(items, done))
    assert {i.item_id for i in again} == {i.item_id for i in items}


def test_later_trajectories_top_up_what_was_tried() -> None:
    config = JudgingConfig(perturbed_share=0.2)
    few = planned([f"t{i}" for i in range(50)], config=config)
    before = known(few, few)
    more = planned([f"t{i}" for i in range(100)], config=config, before=before)
    assert sorts(few)["negative"] == 10
    assert sorts(more)["negative"] == 20
    assert {i.item_id for i in few} <= {item.item_id for item in more}
    same = planned([f"t{i}" for i in range(50)], config=config, before=before)
    assert {item.item_id for item in same} == {i.item_id for i in few}


def test_kinds_are_spread_evenly_and_bounded() -> None:
    passed = [f"t{i}" for i in range(400)]
    items = planned(passed, config=JudgingConfig(perturbed_share=0.2))
    kinds = Counter(kind_of(i) for i in items if kind_of(i) in PERTURBATIONS)
    assert set(kinds) == set(PERTURBATIONS)
    assert max(kinds.values()) - min(kinds.values()) <= 1
    bounded = planned(passed, config=JudgingConfig(perturbed_share=1.0, max_of_one=2))
    assert sorts(bounded)["negative"] == 2 * len(PERTURBATIONS)
    assert num_perturbed(10_000, JudgingConfig(max_of_one=2)) == 2 * len(PERTURBATIONS)


def in_rounds(passed: list[str], config: JudgingConfig, vain: Collection[str]) -> list[TriedBefore]:
    """What a trial has come to after each of its plans, until one asks for nothing new."""
    rounds = [TriedBefore()]
    while True:
        items = planned(passed, config=config, before=rounds[-1])
        now = known(items, items, vain)
        if now.confirmed == rounds[-1].confirmed and now.in_vain == rounds[-1].in_vain:
            return rounds
        rounds.append(now)


def num_negatives(pairs: Iterable[Pair]) -> int:
    return sum(pair.perturbation != PARAPHRASE for pair in pairs)


def test_what_nothing_confirms_is_replaced_until_there_are_as_many_as_wanted() -> None:
    passed, config = [f"t{i}" for i in range(200)], JudgingConfig(perturbed_share=0.5)
    vain = PERTURBATIONS[::5]
    rounds = in_rounds(passed, config, vain)
    assert len(rounds) > 2
    assert num_negatives(rounds[1].confirmed) < 100
    assert num_negatives(rounds[-1].confirmed) == 100
    of_each = Counter(pair.perturbation for pair in rounds[-1].confirmed)
    assert all(of_each[name] >= 3 for name in PERTURBATIONS if name not in vain)
    assert num_negatives(rounds[-1].in_vain) <= 200


@given(st.integers(1, 80), st.floats(0.05, 1.0), st.integers(1, 40))
def test_a_writer_whom_nothing_confirms_is_asked_a_bounded_number_of_times(
    num: int, share: float, most: int
) -> None:
    config = JudgingConfig(perturbed_share=share, max_of_one=most)
    passed = [f"t{i}" for i in range(num)]
    rounds = in_rounds(passed, config, (*PERTURBATIONS, PARAPHRASE))
    wanted = num_perturbed(num, config)
    assert rounds[-1].confirmed == set()
    assert 0 < num_negatives(rounds[-1].in_vain) <= MOST_ATTEMPTS * wanted


def test_a_third_as_many_episodes_are_told_in_other_words_as_are_perturbed() -> None:
    items = planned([f"t{i}" for i in range(30)], config=JudgingConfig(perturbed_share=0.5))
    assert sorts(items) == {"negative": 15, PARAPHRASE: 5, CONTROL: 1}


def test_negatives_are_of_accepted_episodes_and_controls_also_of_others() -> None:
    passed = [f"t{i}" for i in range(200)]
    accepted = passed[::4]
    items = planned(passed, accepted=accepted, config=JudgingConfig(perturbed_share=0.3))
    negatives = {i.data["trajectory_id"] for i in items if kind_of(i) in PERTURBATIONS}
    controls = [i.data["trajectory_id"] for i in items if kind_of(i) == PARAPHRASE]
    assert negatives <= set(accepted)
    assert len(controls) == 20
    assert 5 <= sum(i not in accepted for i in controls) <= 10
    nothing = planned(passed, accepted=[], config=JudgingConfig(perturbed_share=0.3))
    assert sorts(nothing) == {"negative": 60, PARAPHRASE: 20, CONTROL: 1}


def test_few_episodes_give_several_negatives_each_and_none_twice() -> None:
    assert sorts(planned(["t1", "t2"]))["negative"] == 2
    many = [pair_of(i) for i in planned(["t1", "t2"], graded=50) if kind_of(i) in PERTURBATIONS]
    assert len(set(many)) == len(many) == 50
    assert Counter(i for i, _ in many).most_common()[-1][1] >= 15


@pytest.mark.parametrize(
    ("kept", "dropped", "reused", "pending", "more"),
    [
        (20, 25, 0, 0, True),
        (30, 20, 38, 0, True),  # fewer came to nothing than in all plans before, and some did now
        (30, 20, 50, 0, False),
        (45, 0, 0, 0, False),
        (20, 24, 0, 1, False),
    ],
)
def test_a_plan_follows_as_long_as_something_new_came_to_nothing(
    kept: int, dropped: int, reused: int, pending: int, more: bool
) -> None:
    requested = kept + dropped + pending
    report = StageReport(
        "calibration", requested, kept, dropped, 0, pending, reused, {}, {}, {}, {}
    )  # fmt: skip
    assert may_want_more(report) is more
