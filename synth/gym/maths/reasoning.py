"""Our own generators of reasoning, for what reasoning-gym lacks of the report's list (family
`reasoning`)."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import Field

from records.config import Config
from records.digest import digest
from records.seeds import rng_of
from synth.gym.core.environment import GymTask, Reward
from synth.gym.maths.answers import final_answer
from synth.gym.maths.own_question import OwnQuestion
from synth.gym.maths.puzzle_checks import CHECKS
from synth.gym.maths.riddles import letter_riddle, morse_decoding, number_riddle
from synth.gym.maths.splits import DrawnQuestions, SplitCounts, SplitShares, drawn_into_splits
from synth.gym.maths.tables import cross_table_aggregation, multi_hop_table

DRAWS_FOR_ONE = 60
"""Draws at most for one question that is wanted."""

FEWEST_DRAWS = 2000
"""Before a kind is said to have too few different questions."""

OwnKind = Literal[
    "cross_table_aggregation",
    "letter_riddle",
    "morse_decoding",
    "multi_hop_table",
    "number_riddle",
]


class _Generator(NamedTuple):
    category: str
    made: Callable[[random.Random, int], OwnQuestion]


GENERATORS: Mapping[OwnKind, _Generator] = {
    "cross_table_aggregation": _Generator("tables", cross_table_aggregation),
    "letter_riddle": _Generator("riddles", letter_riddle),
    "morse_decoding": _Generator("codes", morse_decoding),
    "multi_hop_table": _Generator("tables", multi_hop_table),
    "number_riddle": _Generator("riddles", number_riddle),
}
"""Kind -> its category and its generator."""


class OwnKindSettings(Config):
    """Questions of one kind."""

    kind: OwnKind
    """Which generator makes them."""
    counts: SplitCounts = SplitCounts()
    """How many of them each split has."""
    level: int = Field(default=0, ge=0, le=6)
    """How hard, 0 the easiest; each generator's docstring says what changes."""


class ReasoningSettings(Config):
    """The family `reasoning`."""

    seed: int = 0
    """Whatever is drawn follows from it."""
    kinds: tuple[OwnKindSettings, ...] = tuple(OwnKindSettings(kind=kind) for kind in GENERATORS)
    """Which questions there are; a kind may come more than once, at other levels."""
    shares: SplitShares = SplitShares()
    """Which questions belong to which split."""


class ReasoningQuestions(DrawnQuestions):
    """One question, one answer, right or wrong: the value is 1 or 0, with the part `answered`."""

    family = "reasoning"

    def __init__(self, settings: ReasoningSettings = ReasoningSettings()) -> None:
        super().__init__()
        self._settings = settings

    def reward(self, task: GymTask, answer: str) -> Reward:
        found = final_answer(answer)
        if found.fault is not None:
            return Reward(0.0, {"answered": 0.0})
        right = CHECKS[task.body["check"]](found.text, task.body["answer"], {})
        return Reward(float(right), {"answered": 1.0})

    def _drawn(self, seen: set[str]) -> Iterator[GymTask]:
        """ConfigError for a kind that has fewer different questions than are wanted."""
        for own in self._settings.kinds:
            yield from self._of(own, seen)

    def _of(self, own: OwnKindSettings, seen: set[str]) -> Iterator[GymTask]:
        generator, counts = GENERATORS[own.kind], own.counts
        wanted = counts.train + counts.validation + counts.heldout
        draws = self._draws(own, max(FEWEST_DRAWS, DRAWS_FOR_ONE * wanted))
        what = f"gym.reasoning, kind {own.kind!r}"
        tags = (f"kind:{own.kind}", f"category:{generator.category}", f"level:{own.level}")
        for split, key, body in drawn_into_splits(
            draws, counts, self._settings.shares, what=what, seen=seen
        ):
            yield GymTask(digest(self.family, key, body), self.family, split, tags, body)

    def _draws(self, own: OwnKindSettings, most: int) -> Iterator[tuple[str, dict[str, Any]]]:
        for index in range(most):
            purpose = f"reasoning:{own.kind}:{own.level}"
            rng = rng_of(f"{self._settings.seed}", purpose, index)
            made = GENERATORS[own.kind].made(rng, own.level)
            yield made.question, {"kind": own.kind, **made._asdict()}
