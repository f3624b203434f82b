"""Puzzles of reasoning-gym, drawn by a seed and judged as `kinds.py` says (family `puzzles`)."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field, JsonValue, field_validator

from records.config import Config
from records.digest import digest
from records.errors import ConfigError
from records.seeds import seed_of
from synth.gym.core.environment import GymTask, Reward
from synth.gym.maths.answers import final_answer
from synth.gym.maths.checker import DRAW_CPU_S, Checker
from synth.gym.maths.kinds import KINDS, LEFT_OUT
from synth.gym.maths.puzzle_checks import CHECKS
from synth.gym.maths.splits import DrawnQuestions, SplitCounts, SplitShares, drawn_into_splits

DRAWN_TOGETHER = 10
"""Puzzles of one of the library's data sets; another seed makes the next."""

DRAWS_FOR_ONE = 30
"""Puzzles drawn at most for one that is wanted: a split of a tenth needs about ten."""

FEWEST_DRAWS = 1000
"""Before a kind is said to have too few different puzzles."""


class PuzzleSettings(Config):
    """Puzzles of one kind."""

    kind: str
    """Name in reasoning-gym; `docs/gym.md` lists those that are used."""
    counts: SplitCounts = SplitCounts()
    """How many of them each split has."""
    level: int | None = Field(default=None, ge=0)
    """Of the library's curriculum, 0 the easiest; without one the kind's own defaults."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of the kind in the library, such as `max_terms`, which count before the level's."""

    @field_validator("kind")
    @classmethod
    def _is_used(cls, kind: str) -> str:
        if kind in LEFT_OUT:
            raise ValueError(f"{kind!r} is left out: it {LEFT_OUT[kind]}")
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is no kind; there are {', '.join(sorted(KINDS))}")
        return kind

    @field_validator("settings")
    @classmethod
    def _has_no_seed(cls, settings: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if own := settings.keys() & {"seed", "size"}:
            raise ValueError(f"{', '.join(sorted(own))} of a kind follow from the family's seed")
        return settings


class PuzzlesSettings(Config):
    """The family `puzzles`."""

    seed: int = 0
    """Whatever is drawn follows from it."""
    kinds: tuple[PuzzleSettings, ...] = tuple(
        PuzzleSettings(kind=kind)
        for kind in (
            "chain_sum",
            "countdown",
            "cryptarithm",
            "mini_sudoku",
            "puzzle24",
            "syllogism",
        )
    )
    """Which puzzles there are; a kind may come more than once, at other levels."""
    shares: SplitShares = SplitShares()
    """Which questions belong to which split."""


class Puzzles(DrawnQuestions):
    """One puzzle, one answer, right or wrong: the value is 1 or 0. Its parts are `answered`,
    `library` (the library's own score, where its scorer may be asked), and `unchecked` where trying
    the answer out took more time or memory than there is for it."""

    family = "puzzles"

    def __init__(self, settings: PuzzlesSettings = PuzzlesSettings()) -> None:
        super().__init__()
        self._settings = settings
        self._checker = Checker()

    def reward(self, task: GymTask, answer: str) -> Reward:
        body = task.body
        found = final_answer(answer)
        if found.fault is not None:
            return Reward(0.0, {"answered": 0.0})
        kind = KINDS[body["kind"]]
        parts = {"answered": 1.0}
        score = self._library_score(body, found.text, parts) if kind.scored else None
        if kind.check == "library":
            is_formed = kind.form is None or re.fullmatch(kind.form, found.text) is not None
            right = is_formed and score is not None and score >= 1.0
        else:
            right = CHECKS[kind.check](found.text, body["answer"], body["facts"])
        return Reward(float(right), parts)

    async def graded(self, task: GymTask, answer: str) -> Reward:
        return await asyncio.to_thread(self.reward, task, answer)

    async def close(self) -> None:
        self._checker.close()

    def _library_score(
        self, body: Mapping[str, Any], reply: str, parts: dict[str, float]
    ) -> float | None:
        """What the library's scorer gives, from 0 to 1; None where it gives nothing of the kind."""
        arguments = {
            "kind": body["kind"],
            "level": body["level"],
            "settings": body["settings"],
            "index": body["index"],
            "question": body["question"],
            "reply": reply,
        }
        computed = self._checker.judged("puzzles", arguments)
        if computed.fault is not None:
            parts["unchecked"] = 1.0
            return None
        score = computed.result
        if score is None:
            raise ConfigError(
                f"gym.puzzles: this version of reasoning-gym draws another puzzle of kind "
                f"{body['kind']!r} than the one that is played; draw the tasks anew, or install "
                "the version that drew them (constraints.txt)"
            )
        if not 0 <= score <= 1:  # also where it is no number: every comparison with that is false
            parts["unchecked"] = 1.0
            return None
        parts["library"] = float(score)
        return score

    def _drawn(self, seen: set[str]) -> Iterator[GymTask]:
        """In seconds for some hundred. ConfigError for a kind that has fewer different puzzles than
        are wanted, and for settings that it does not know."""
        for own in self._settings.kinds:
            yield from self._of(own, seen)

    def _of(self, own: PuzzleSettings, seen: set[str]) -> Iterator[GymTask]:
        counts = own.counts
        wanted = counts.train + counts.validation + counts.heldout
        most = max(FEWEST_DRAWS, DRAWS_FOR_ONE * wanted)
        draws = self._draws(own, most)
        what = f"gym.puzzles, kind {own.kind!r}"
        for split, key, body in drawn_into_splits(
            draws, counts, self._settings.shares, what=what, seen=seen
        ):
            level = "default" if own.level is None else str(own.level)
            tags = (f"kind:{own.kind}", f"category:{body.pop('category')}", f"level:{level}")
            yield GymTask(digest(self.family, key, body), self.family, split, tags, body)

    def _draws(self, own: PuzzleSettings, most: int) -> Iterator[tuple[str, dict[str, Any]]]:
        for start in range(0, most, DRAWN_TOGETHER):
            seed = seed_of(f"{self._settings.seed}", f"puzzles:{own.kind}", start) >> 32
            settings = {**own.settings, "seed": seed, "size": DRAWN_TOGETHER}
            given = {"kind": own.kind, "level": own.level, "settings": settings}
            asked = {**given, "draw": list(range(DRAWN_TOGETHER))}
            computed = self._checker.compute("puzzles", asked, cpu_s=DRAW_CPU_S)
            if computed.fault is not None:
                raise ConfigError(
                    f"gym.puzzles, kind {own.kind!r}, level {own.level}, settings {own.settings}: "
                    f"no puzzles were drawn: {computed.detail}"
                )
            for index, entry in enumerate(computed.result):
                yield entry["question"], {**given, "index": index, **entry}
