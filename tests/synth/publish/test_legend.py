"""Every standing criterion is explained by what it checks, and a value by which it is."""

import pytest

from synth.publish.legend import kind_in_words
from synth.publish.verdicts_shown import ShownCriterion
from synth.rubrics.criteria import JUDGED
from synth.rubrics.standing import ECONOMY, STANDING_IDS


def criterion(name: str, kind: str, words: str = "") -> ShownCriterion:
    return ShownCriterion(name, kind, words, True, None, "", None, None, (), "", False)


@pytest.mark.parametrize("name", sorted({*STANDING_IDS, ECONOMY.id}))
def test_each_standing_criterion_says_what_it_checks(name: str) -> None:
    told = kind_in_words(criterion(name, JUDGED))
    assert told != kind_in_words(criterion("of_a_task", JUDGED))
    assert told.startswith(("whether ", "how "))


def test_a_value_that_was_to_be_told_is_named() -> None:
    words = "Was to be told: balance \u2014 98 (of: Pay.)"
    assert kind_in_words(criterion("told_1", "communicate", words)) == (
        "what the user was to be told: balance \u2014 98 (of: Pay.)"
    )
