"""A question has one split, whatever is drawn beside it, and no question comes twice."""

from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import ConfigError
from synth.gym.maths.splits import SplitCounts, SplitShares, drawn_into_splits, placed

SHARES = SplitShares()


@given(st.text())
def test_case_and_space_make_no_other_question(question: str) -> None:
    again = "  " + question.replace(" ", "  \n") + " "
    assert placed(question, SHARES) == placed(again, SHARES)


def test_the_shares_of_many_questions_are_as_asked_for() -> None:
    found = Counter(placed(f"question {n}", SHARES).split for n in range(5000))
    assert found["heldout"] / 5000 == pytest.approx(0.1, abs=0.015)
    assert found["validation"] / 5000 == pytest.approx(0.1, abs=0.015)


def test_a_larger_share_held_out_takes_no_question_out_of_it() -> None:
    before = SplitShares(heldout=0.1)
    after = SplitShares(heldout=0.3)
    for n in range(500):
        if placed(f"{n}", before).split == "heldout":
            assert placed(f"{n}", after).split == "heldout"


@given(st.integers(0, 20), st.integers(0, 5), st.integers(0, 5))
def test_counts_are_met_exactly_with_different_questions(train: int, val: int, held: int) -> None:
    counts = SplitCounts(train=train, validation=val, heldout=held)
    draws = ((f"question {n % 400}", n) for n in count())
    taken = drawn_into_splits(draws, counts, SHARES, what="x", seen=set())
    assert Counter(split for split, _, _ in taken) == Counter(
        {s: n for s, n in (("train", train), ("validation", val), ("heldout", held)) if n}
    )
    assert len({key for _, key, _ in taken}) == len(taken)


def test_nothing_is_drawn_where_nothing_is_wanted() -> None:
    none = SplitCounts(train=0, validation=0, heldout=0)

    def never() -> object:
        raise AssertionError("a draw was taken")
        yield "", 0  # makes it a generator

    assert drawn_into_splits(never(), none, SHARES, what="x", seen=set()) == []  # type: ignore[arg-type]


def test_too_few_different_questions_are_an_error_that_counts_them() -> None:
    counts = SplitCounts(train=10, validation=0, heldout=0)
    draws = [(f"question {n % 3}", n) for n in range(90)]
    with pytest.raises(ConfigError, match=r"kind 'sum': 90 draws gave \d different .* for train"):
        drawn_into_splits(draws, counts, SHARES, what="kind 'sum'", seen=set())


def test_a_question_that_another_source_gave_is_not_taken_again() -> None:
    counts, seen = SplitCounts(train=5, validation=1, heldout=1), set[str]()
    draws = [(f"question {n}", n) for n in range(200)]
    first = drawn_into_splits(draws, counts, SHARES, what="a", seen=seen)
    second = drawn_into_splits(draws, counts, SHARES, what="b", seen=seen)
    assert not {key for _, key, _ in first} & {key for _, key, _ in second}


def test_shares_that_leave_nothing_to_learn_from_are_refused() -> None:
    with pytest.raises(ValueError, match="leave nothing to learn from"):
        SplitShares(validation=0.5, heldout=0.5)
