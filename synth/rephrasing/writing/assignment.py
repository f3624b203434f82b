"""Which style and perspective each rewrite of a document gets: drawn by seed, no pair twice."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from records.digest import digest
from records.seeds import rng_of
from synth.rephrasing.writing.config import RephraseConfig
from synth.rephrasing.writing.instructions import (
    LEARNING_NOTES,
    TRANSLATE,
    Instruction,
    InstructionKind,
    instruction,
    instructions,
)

ALL = "all"

ENGLISH = "en"


class Assignment(NamedTuple):
    style: Instruction
    perspective: Instruction


class Assigner:
    """Draws from the styles and perspectives of a run. ConfigError for an unknown name."""

    def __init__(self, config: RephraseConfig) -> None:
        self._seed = config.seed
        self._styles = _chosen("styles", config.styles)
        self._perspectives = _chosen("perspectives", config.perspectives)
        self._notes = instruction("maths", LEARNING_NOTES)
        self._translation = instruction("maths", TRANSLATE)

    @property
    def versions(self) -> list[str]:
        """Of everything that may be drawn: another file, or one more, is another draw."""
        drawn = (*self._styles, *self._perspectives, self._notes, self._translation)
        return [f"{one.name}:{one.version}" for one in drawn]

    def of(self, source_id: str, rewrite: int, *, kind: str, language: str | None) -> Assignment:
        """For rewrite number `rewrite` (from 0) of a text."""
        item = digest("assignment", self._seed, source_id)
        perspectives = _shuffled(self._perspectives, item, "perspectives")
        if kind == "maths":
            foreign = language is not None and language != ENGLISH
            style = self._translation if foreign and rewrite == 0 else self._notes
            return Assignment(style, perspectives[rewrite % len(perspectives)])
        styles = _shuffled(self._styles, item, "styles")
        # when the pairs would begin again, the perspectives go one on
        turn = rewrite // math.lcm(len(styles), len(perspectives))
        return Assignment(
            styles[rewrite % len(styles)], perspectives[(rewrite + turn) % len(perspectives)]
        )


def _chosen(kind: InstructionKind, names: Sequence[str]) -> list[Instruction]:
    known = instructions(kind)
    if ALL in names:
        return list(known.values())
    return [instruction(kind, name) for name in dict.fromkeys(names)]


def _shuffled(found: Sequence[Instruction], item: str, purpose: str) -> list[Instruction]:
    return rng_of(item, purpose).sample(list(found), len(found))
