"""Values of a list are said in the words of people."""

import pytest

from synth.tasks.goals.goals import Fact
from synth.tasks.words.checks import says


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("What is still in the depot?", "in_depot", True),
        ("Those in depot, please.", "in_depot", True),
        ("In short: nothing. The depot is closed.", "in_depot", False),
        ("Those that are on the road.", "in_depot", False),
        ("It goes to the old part of town.", "old_town", True),
        ("It goes to the harbour.", "old_town", False),
        ("I mean Anna Holm.", "Anna Berg", False),
    ],
)
def test_every_word_of_the_value_stands_in_one_sentence(
    text: str, value: str, expected: bool
) -> None:
    fact = Fact(label="state", value=value, param="state", needed=True)
    assert says(text, fact) is expected
