"""pass@k against its definition, and a band whose every task is counted once."""

from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.gym.difficulty import ModerateBand, in_band, pass_at_k


@given(st.data())
def test_pass_at_k_is_the_share_of_all_choices_of_k_with_one_that_passes(
    data: st.DataObject,
) -> None:
    attempts = data.draw(st.integers(1, 9))
    passed = data.draw(st.integers(0, attempts))
    k = data.draw(st.integers(1, attempts))
    outcomes = [n < passed for n in range(attempts)]
    hits = sum(any(chosen) for chosen in combinations(outcomes, k))
    assert pass_at_k(attempts, passed, k) == pytest.approx(hits / comb(attempts, k))


@given(st.integers(1, 40), st.floats(0, 1))
def test_pass_at_k_is_unbiased(k: int, rate: float) -> None:
    attempts = 40
    mean = sum(
        comb(attempts, passed)
        * rate**passed
        * (1 - rate) ** (attempts - passed)
        * pass_at_k(attempts, passed, k)
        for passed in range(attempts + 1)
    )
    assert mean == pytest.approx(1 - (1 - rate) ** k, abs=1e-9)


@pytest.mark.parametrize(("attempts", "passed", "k"), [(4, 5, 1), (4, -1, 1), (4, 2, 5), (4, 2, 0)])
def test_numbers_that_cannot_be_are_refused(attempts: int, passed: int, k: int) -> None:
    with pytest.raises(ValueError, match="at least k attempts"):
        pass_at_k(attempts, passed, k)


RESULTS = st.dictionaries(
    st.text(min_size=1), st.lists(st.sampled_from([0.0, 0.4, 1.0]), max_size=12)
)


@given(RESULTS, st.integers(1, 6), st.floats(0, 0.5), st.floats(0.5, 1))
def test_every_task_is_counted_once(
    results: dict[str, list[float]], k: int, lowest: float, highest: float
) -> None:
    found = in_band(results, ModerateBand(k=k, lowest=lowest, highest=highest))
    assert sorted(task for ids in found for task in ids) == sorted(results)
    assert sum(found.counts().values()) == len(results)
    assert all(len(results[task]) < k for task in found.too_few)


def test_the_ends_of_the_band() -> None:
    results = {
        "never": [0.0] * 8,
        "once": [1.0] + [0.0] * 7,
        "half": [1.0, 0.0] * 4,
        "always": [1.0] * 8,
        "nearly always": [1.0] * 19 + [0.0],
        "partly": [0.9] * 8,
        "tried twice": [1.0, 0.0],
    }
    found = in_band(results, ModerateBand())
    assert found.kept == ("once", "half")
    assert found.too_hard == ("never", "partly")
    assert found.too_easy == ("always", "nearly always")
    assert found.counts() == {"kept": 2, "too_hard": 2, "too_easy": 2, "too_few": 1}
    lenient = in_band(results, ModerateBand(passing=0.5))
    assert "partly" in lenient.too_easy


def test_a_band_the_wrong_way_round_is_refused() -> None:
    with pytest.raises(ValueError, match=r"lowest = 0\.9 is above highest = 0\.1"):
        ModerateBand(lowest=0.9, highest=0.1)
