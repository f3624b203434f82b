"""Planted corruptions: one change each, seeded, and the layers find those of a plain pair."""

import random

import pytest

from synth.rephrasing.fidelity.checks import fidelity_of, reasons_of, verdict
from synth.rephrasing.fidelity.config import FidelityConfig
from synth.rephrasing.fidelity.corruptions import CORRUPTORS, Corruption, foreign_sentence

SOURCE = """The canal was opened by Konrad Albers on 12 June 1834 and is 41 kilometres long. Its
locks are 5 metres wide, so that ships of more than 60 tonnes were not able to use it.

In the first year 312 ships came through, and by 1850 there were 2,400. The railway from Lauen to
Hessdorf took most of the trade away. Today the towpath is used by cyclists.
"""
REWRITE = """It was on 12 June 1834 that Konrad Albers opened the canal, whose length is
41 kilometres. Ships of over 60 tonnes were not able to use it, since the locks are 5 metres wide.

The first year saw 312 ships come through; in 1850 they numbered 2,400. Most of the trade was taken
away by the railway that runs from Lauen to Hessdorf. Cyclists use the towpath today.
"""
FORMULA = REWRITE + "\nWith $a = 3$ this makes $2a + 1 = 7$.\n"


def corrupted(kind: str, seed: int, text: str = REWRITE) -> Corruption | None:
    return CORRUPTORS[kind](text, random.Random(seed))


@pytest.mark.parametrize("kind", CORRUPTORS)
def test_a_planter_makes_one_change_and_the_same_one_again(kind: str) -> None:
    text = FORMULA if kind == "wrong_formula" else REWRITE
    for seed in range(20):
        made = corrupted(kind, seed, text)
        assert made is not None
        assert made.text != text
        assert made == corrupted(kind, seed, text)
    assert len({corrupted(kind, seed, text) for seed in range(40)}) > 1


@pytest.mark.parametrize("kind", CORRUPTORS)
def test_a_text_with_nothing_to_change_stays(kind: str) -> None:
    assert corrupted(kind, 0, "hello") is None


def test_list_numbers_are_no_numbers_to_change() -> None:
    assert corrupted("changed_number", 0, "1. Open the lid.\n2. Close the lid.") is None


def test_the_pair_is_faithful() -> None:
    fidelity = fidelity_of(SOURCE, REWRITE, kind="knowledge")
    assert reasons_of(fidelity.columns(), FidelityConfig()) == []


@pytest.mark.parametrize(
    "kind",
    ["changed_number", "changed_unit", "changed_date", "swapped_entity", "dropped_paragraph"],
)
def test_what_layers_of_facts_are_for_they_always_find(kind: str) -> None:
    for seed in range(15):
        made = corrupted(kind, seed)
        assert made is not None
        fidelity = fidelity_of(SOURCE, made.text, kind="knowledge")
        assert reasons_of(fidelity.columns(), FidelityConfig()), made.what


def test_a_foreign_sentence_is_found() -> None:
    other = "The orchestra played the second symphony without its conductor on Friday evening."
    made = foreign_sentence(REWRITE, random.Random(1), others=[other])
    assert made is not None
    fidelity = fidelity_of(SOURCE, made.text, kind="knowledge")
    assert reasons_of(fidelity.columns(), FidelityConfig()) == ["sentence_added"]
    assert verdict(fidelity.columns(), FidelityConfig()) is None, "no reason to drop"
    assert fidelity.alignment is not None
    assert fidelity.alignment.weakest_rewrite[0][1] == other
