"""Several wishes in one message: what counts as brought up, and what may be asked for again."""

import pytest

from synth.episode.users.faults import UserTalk
from synth.episode.users.wishes import goal_again, may_stop, stop_fault

WISHES = [
    "Cancel the booked appointment, the reason is travel.",
    "Please list the free slots of the doctor Mei Tanaka.",
    "Tell me the balance of my account.",
]
OPENING = "I need the appointment cancelled, since I travel, and the free slots of Mei Tanaka."


def talk(*later: str, heard: str = "It is done.", together: int = 2) -> UserTalk:
    """`later`: what the user said after the opening, each after one answer."""
    return UserTalk(
        own=[OPENING, *later],
        heard=["Hello, how can I help you?", *["It is done."] * len(later), heard],
        user_goals=WISHES,
        facts=[],
        patience=5,
        known=(),
        opening_goals=together,
    )


def test_what_the_opening_brought_up_is_not_still_to_come() -> None:
    unsaid = stop_fault(talk(), goal_open=True)
    assert unsaid is not None
    assert WISHES[2] in unsaid.complaint
    assert may_stop(talk("And the balance of my account?"))
    assert not may_stop(talk(together=3)._replace(heard=["Hello.", "Which one?"]))


@pytest.mark.parametrize("number", [0, 1])
def test_one_that_the_assistant_left_out_may_be_asked_for(number: int) -> None:
    """Nothing was brought up since: it is a repeat only if the assistant has done it."""
    assert goal_again(WISHES[number], talk()) is False


def test_one_is_brought_again_after_a_later_one_was() -> None:
    assert goal_again(WISHES[0], talk(WISHES[2])) is True
    assert goal_again(WISHES[1], talk(WISHES[2])) is True


def test_a_question_may_be_answered_with_the_wish() -> None:
    assert goal_again(WISHES[1], talk(heard="What was the second one?")) is None


def test_without_them_only_the_first_wish_counts_as_brought_up() -> None:
    one = talk(together=1)._replace(own=["I need the appointment cancelled, since I travel."])
    left = stop_fault(one, goal_open=True)
    assert left is not None
    assert WISHES[1] in left.complaint
