"""Critics of every kind: who is right ranks right, who is not is off, and no verifiable reward is
ever touched."""

from collections.abc import Sequence

import pytest

from records.errors import ConfigError
from tests.trainer.rl.critic.scripted import (
    OPEN_GROUP,
    Rule,
    always_first,
    at_random,
    contrary,
    critic,
    garbage,
    group,
    perfect,
    sample,
    task,
    verifiable,
)
from trainer.rl.critic.critic import CriticisedGroups
from trainer.rl.rollouts.samples import Group


def judged(
    rule: Rule, groups: Sequence[Group] = (OPEN_GROUP,), iterations: int = 1
) -> CriticisedGroups:
    made, policy = critic(rule)
    done = None
    for iteration in range(iterations):
        done = made.criticise([*verifiable(40), *groups], iteration)
    assert done is not None
    assert policy.sampling.temperature == 0.9
    assert policy.temperatures == {0.0}
    return done


def rewards_of(done: CriticisedGroups) -> list[float | None]:
    """Of the last group."""
    return [None if s.reward is None else s.reward.value for s in done.groups[-1].samples]


def test_who_is_right_is_on_and_ranks_right() -> None:
    done = judged(perfect)
    assert rewards_of(done) == [1 / 3, 1.0, 0.0, 2 / 3]
    told = done.measures
    assert (told["critic_on"], told["critic_agreement"], told["critic_differs"]) == (1, 1.0, 0.0)
    assert told["critic_low"] > 0.5
    assert (told["critic_ranked"], told["critic_off"], told["critic_spread"]) == (4, 0, 1.0)
    assert told["critic_inconsistent"] == told["critic_unreadable"] == 0


@pytest.mark.parametrize("rule", [always_first, at_random, garbage, contrary])
def test_who_is_not_right_is_off_and_gives_no_reward(rule: Rule) -> None:
    done = judged(rule, iterations=4)
    assert rewards_of(done) == [None] * 4
    told = done.measures
    assert (told["critic_on"], told["critic_ranked"], told["critic_off"]) == (0, 0, 4)
    assert told["critic_low"] <= 0.5


def test_always_the_same_place_is_a_tie_each_time() -> None:
    told = judged(always_first).measures
    assert (told["critic_agreement"], told["critic_inconsistent"]) == (0.5, 1.0)
    assert told["critic_unreadable"] == told["critic_differs"] == 0


def test_what_cannot_be_read_is_a_tie_and_counted() -> None:
    told = judged(garbage).measures
    assert told["critic_unreadable"] == told["critic_asked"] > 0
    assert (told["critic_agreement"], told["critic_inconsistent"]) == (0.5, None)


def test_who_differs_from_code_is_seen_and_so_is_that_it_grows() -> None:
    made, _ = critic(perfect)
    worse, _ = critic(contrary)
    made.criticise(verifiable(40), 0)
    worse.restore(made.to_json())
    told = worse.criticise(verifiable(40), 1).measures
    assert told["critic_differs"] == 1.0
    assert told["critic_differs_trend"] == pytest.approx(1.0)


@pytest.mark.parametrize("rule", [perfect, contrary, at_random])
def test_a_verifiable_reward_stays_as_it_is(rule: Rule) -> None:
    groups = verifiable(40)
    made, _ = critic(rule)
    done = made.criticise([*groups, OPEN_GROUP], 0)
    assert done.groups[:-1] == groups


def test_only_answers_are_ranked_and_one_alone_has_no_reward() -> None:
    of = task(2, ranked=True)
    samples = [
        sample(of, 0, "It is 3"),
        sample(of, 1, "", "silent"),
        sample(of, 2, "It is 7", "truncated"),
        sample(of, 3, "It is 9", "environment_error"),
    ]
    done = judged(perfect, [Group(of, 0, samples)])
    assert rewards_of(done) == [0.0, None, 1.0, None]
    alone = judged(perfect, [Group(of, 0, samples[:2])])
    assert rewards_of(alone) == [None, None]
    assert alone.measures["critic_alone"] == 1


def test_praise_loses_by_code_and_nobody_is_asked() -> None:
    of = task(3, ranked=True)
    praise = sample(of, 0, "What a great question! It is 9")
    plain = sample(of, 1, "It is 1")
    done = judged(perfect, [Group(of, 0, [praise, plain])])
    assert rewards_of(done) == [0.0, 1.0]
    assert done.measures["critic_by_code"] == 1


def test_all_of_a_large_group_are_compared_alike_often() -> None:
    large = group(task(4, ranked=True), *range(9, -1, -1))
    made, policy = critic(perfect)
    done = made.criticise([*verifiable(40), large], 0)
    parts = [s.reward for s in done.groups[-1].samples if s.reward is not None]
    assert len(parts) == 10
    assert sum(one.value for one in parts) == pytest.approx(5.0)
    assert parts[0].value == 1.0
    assert parts[-1].value == 0.0
    told = done.measures
    assert told["critic_asked"] == len(policy.asked) == 2 * (told["critic_measured"] + 10 * 4 // 2)


def test_a_function_of_seed_samples_and_what_was_measured() -> None:
    one, _ = critic(perfect)
    other, _ = critic(perfect)
    groups = [*verifiable(40), OPEN_GROUP]
    one.criticise(groups, 0)
    other.restore(one.to_json())
    assert one.criticise(groups, 1) == other.criticise(groups, 1)
    assert one.to_json() == other.to_json()


def test_it_never_learns_from_what_it_is_measured_by() -> None:
    made, policy = critic(perfect, lesson_pairs=500, measured_pairs=500)
    groups = verifiable(40)
    done = made.criticise(groups, 0)
    measured = {pair[1] for pair in made.to_json()}
    assert done.lessons is not None
    assert 0 < len(measured) < 40
    told = done.measures
    assert told["critic_measured"] + told["critic_lessons"] == sum(
        len({a, b}) == 2
        for one in groups
        for n, a in enumerate(values_of(one))
        for b in values_of(one)[:n]
    )
    asked = {name for one in policy.asked for name in measured if name in str(one.messages)}
    assert asked == measured


def values_of(one: Group) -> list[float]:
    return [s.reward.value for s in one.samples if s.reward is not None]


def test_a_question_that_no_slot_holds_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"has \d+ tokens without any answer.* may have 100 "):
        critic(perfect, room=100)


def test_tasks_to_rank_need_others_that_code_rewards() -> None:
    ranked = [task(n, ranked=True) for n in range(3)]
    with pytest.raises(ConfigError, match="only 0 of the 0 verifiable tasks"):
        critic(perfect, ranked)
    with pytest.raises(ConfigError, match="no rule of a rubric"):
        critic(perfect, [task(1, ranked=True, rubric=[3])])
    critic(perfect, [*ranked, *(task(n) for n in range(40))])
