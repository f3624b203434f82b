"""Which style and perspective each rewrite of a document gets: drawn by seed from those that suit
its genre, no pair twice."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from records.digest import digest
from records.seeds import rng_of
from synth.rephrasing.writing.config import RephraseConfig, SourceConfig
from synth.rephrasing.writing.genres import genre_named, genres_version
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
    """Draws from the styles and perspectives of a run or of a source. ConfigError for an unknown
    name."""

    def __init__(self, config: RephraseConfig) -> None:
        self._seed = config.seed
        self._styles = _chosen("styles", config.styles)
        self._perspectives = _chosen("perspectives", config.perspectives)
        for source in config.sources:
            _chosen("styles", source.styles or ())
            if source.genre is not None:
                genre_named(source.genre)
        self._notes = instruction("maths", LEARNING_NOTES)
        self._translation = instruction("maths", TRANSLATE)

    @property
    def versions(self) -> list[str]:
        """Of everything that may be drawn: another file, or one more, is another draw."""
        drawn = (*self._styles, *self._perspectives, self._notes, self._translation)
        return [genres_version(), *(f"{one.name}:{one.version}" for one in drawn)]

    def of(
        self,
        source_id: str,
        rewrite: int,
        *,
        source: SourceConfig,
        language: str | None,
        genre: str | None,
    ) -> Assignment:
        """For rewrite number `rewrite` (from 0) of a text. `genre`: its name; of mathematics, which
        becomes notes whatever it is, there need be none."""
        item = digest("assignment", self._seed, source_id)
        suiting = genre_named(genre) if genre is not None else None
        views = _suiting(self._perspectives, suiting.perspectives if suiting else ())
        perspectives = _shuffled(views, item, "perspectives")
        if source.kind == "maths":
            foreign = language is not None and language != ENGLISH
            style = self._translation if foreign and rewrite == 0 else self._notes
            return Assignment(style, perspectives[rewrite % len(perspectives)])
        own = self._styles if source.styles is None else _chosen("styles", source.styles)
        styles = _shuffled(_suiting(own, suiting.styles if suiting else ()), item, "styles")
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


def _suiting(chosen: Sequence[Instruction], names: Sequence[str]) -> Sequence[Instruction]:
    """Those among the names; all, where none of them is."""
    return [one for one in chosen if one.name in names] or chosen


def _shuffled(found: Sequence[Instruction], item: str, purpose: str) -> list[Instruction]:
    return rng_of(item, purpose).sample(list(found), len(found))
