"""Styles and perspectives: all load, each has its own version, none says what another says."""

import re
from itertools import combinations, pairwise
from typing import get_args

import pytest

from records.errors import ConfigError
from synth.rephrasing.writing.instructions import (
    LEARNING_NOTES,
    TRANSLATE,
    Instruction,
    InstructionKind,
    instruction,
    instructions,
)

MAX_SHARED = 0.2
"""Of two instructions' pairs of neighbouring words: texts that say the same have far more."""
ALL = [(kind, found) for kind in get_args(InstructionKind) for found in instructions(kind).values()]


def pairs_of_words(text: str) -> set[tuple[str, str]]:
    words = re.findall(r"\w+", text.lower())
    return set(pairwise(words))


def test_there_are_enough_and_each_has_a_version_of_its_own() -> None:
    assert len(instructions("styles")) >= 12
    assert len(instructions("perspectives")) >= 6
    assert instructions("maths").keys() == {LEARNING_NOTES, TRANSLATE}
    assert len({found.version for _, found in ALL}) == len(ALL)
    assert len({found.name for _, found in ALL}) == len(ALL)


@pytest.mark.parametrize(("kind", "found"), ALL, ids=[found.name for _, found in ALL])
def test_an_instruction_is_ascii_prose_that_opens_no_section(kind: str, found: Instruction) -> None:
    title, empty, *body = found.text.splitlines()
    assert found.text.isascii()
    assert re.fullmatch(r"[A-Z][^.]+\.", title)
    assert empty == ""
    assert len(" ".join(body).split()) >= 50, f"{kind}/{found.name} is too short to guide anybody"
    assert not [line for line in found.text.splitlines() if line.startswith(("#", "```", "{"))]


def test_no_two_are_near_duplicates() -> None:
    shared = {
        (a.name, b.name): len(x & y) / min(len(x), len(y))
        for (_, a), (_, b) in combinations(ALL, 2)
        for x, y in [(pairs_of_words(a.text), pairs_of_words(b.text))]
    }
    assert {names: share for names, share in shared.items() if share > MAX_SHARED} == {}


def test_an_unknown_name_is_told_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"styles: 'haiku' is none of: .*lecture_notes"):
        instruction("styles", "haiku")
