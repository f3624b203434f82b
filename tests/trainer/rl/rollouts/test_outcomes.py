"""When an answer says the same over and over."""

import random

import pytest
from pydantic import ValidationError

from trainer.rl.rollouts.outcomes import LOST, says_the_same
from trainer.rl.rollouts.settings import RepeatSettings, RolloutSettings


def by_definition(ids: list[int], tokens: int, period: int) -> bool:
    """Some stretch, written again and again from its own end backwards, gives the last tokens."""
    tail = ids[-tokens:]
    return len(ids) >= tokens and any(
        all(tail[-1 - at] == tail[-1 - at % length] for at in range(tokens))
        for length in range(1, period + 1)
    )


def test_repetition_is_what_it_is_by_definition() -> None:
    rng, found = random.Random(3), 0
    for _ in range(400):
        stretch = [rng.randrange(3) for _ in range(rng.randrange(1, 7))]
        ids = [rng.randrange(3) for _ in range(rng.randrange(9))] + stretch * rng.randrange(1, 9)
        if rng.random() < 0.3:
            ids[rng.randrange(len(ids))] = 3
        expected = by_definition(ids, 16, 5)
        assert says_the_same(ids, tokens=16, period=5) == expected
        found += expected
    assert 40 < found < 360


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValidationError, match="at most half of tokens = 32"):
        RepeatSettings(tokens=32, period=17)
    with pytest.raises(ValidationError, match="cuts by the clock"):
        RolloutSettings(deterministic=True, phase_s=3.0)
    with pytest.raises(ValidationError, match=r"token_budgets are at least 1, got \{'a': 0\}"):
        RolloutSettings(token_budgets={"a": 0})
    settings = RolloutSettings(token_budget=7, token_budgets={"a": 9})
    assert (settings.budget_of("a"), settings.budget_of("b")) == (9, 7)
    assert len(set(LOST)) == 8
