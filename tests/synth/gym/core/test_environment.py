"""A reward is a number from 0 to 1 with parts that are numbers; anything else has its name."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.gym.core.environment import Reward, RewardError, checked

NO_NUMBERS = (math.nan, math.inf, -math.inf, True, False, None, "1", "0.5", [1.0], 1 + 0j)


@given(
    st.floats(0, 1), st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False))
)
def test_a_number_from_0_to_1_is_a_reward_whatever_its_parts_are(
    value: float, parts: dict[str, float]
) -> None:
    reward = Reward(value, parts)
    assert checked(reward) is reward


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -0.0])
def test_both_ends_are_rewards(value: float) -> None:
    assert checked(Reward(value)).value == value


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_number_is_no_reward(value: float) -> None:
    with pytest.raises(RewardError) as caught:
        checked(Reward(value))
    assert caught.value.reason == "reward_no_number"


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_a_part_that_is_no_number_is_no_part(value: float) -> None:
    with pytest.raises(RewardError) as caught:
        checked(Reward(0.5, {"fine": 0.25, "broken": value}))
    assert caught.value.reason == "reward_no_number"


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda v: not 0 <= v <= 1))
def test_a_number_outside_the_range_is_no_reward_and_the_error_shows_it(value: float) -> None:
    with pytest.raises(RewardError, match="reward_out_of_range") as caught:
        checked(Reward(value))
    assert caught.value.reason == "reward_out_of_range"
    assert repr(value) in str(caught.value)


def test_the_parts_of_a_reward_without_any_cannot_be_shared_by_accident() -> None:
    with pytest.raises(TypeError):
        Reward(1.0).parts["mine"] = 1.0  # type: ignore[index]
