"""Splits: the strongest of own and parents, and a tenth held out by digest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.digest import digest
from records.tables.splits import SPLITS, own_split, split_of

some_split = st.sampled_from(SPLITS)


@given(some_split, st.lists(some_split))
def test_split_is_the_strongest_and_order_does_not_matter(own: str, parents: list[str]) -> None:
    split = split_of(own, parents)
    assert split == split_of(own, parents[::-1])
    assert SPLITS.index(split) == max(map(SPLITS.index, [own, *parents]))


def test_a_tenth_is_held_out() -> None:
    for kind in ("tool", "task"):
        held = [own_split(kind, digest(i)) != "train" for i in range(5000)]
        assert 0.085 < sum(held) / len(held) < 0.115


def test_unknown_split_is_named() -> None:
    with pytest.raises(ValueError, match=r"unknown split 'test'; allowed: train, heldout_document"):
        split_of("train", ["test"])
