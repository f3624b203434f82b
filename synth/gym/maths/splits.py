"""Questions that are drawn until each split has enough; a question's own words say its split.

The same words have the same split under every seed, setting and file, so a question that is learnt
from is never one that is scored.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from pydantic import Field, model_validator

from records.config import Config
from records.digest import digest
from records.errors import ConfigError
from records.seeds import share_of
from synth.gym.core.environment import GymSplit, GymTask
from synth.gym.core.questions import Questions
from synth.gym.maths.answers import INSTRUCTION

Drawn = TypeVar("Drawn")


class SplitShares(Config):
    """Which share of all questions a split has. Whoever changes it mixes the splits anew."""

    validation: float = Field(default=0.1, ge=0, le=0.5)
    """Share of the questions that choose a checkpoint."""
    heldout: float = Field(default=0.1, ge=0, le=0.5)
    """Share of the questions that are scored once, at the end."""

    @model_validator(mode="after")
    def _leaves_some(self) -> "SplitShares":
        if self.validation + self.heldout >= 1:
            raise ValueError("validation and heldout together leave nothing to learn from")
        return self


class SplitCounts(Config):
    """How many tasks each split has."""

    train: int = Field(default=40, ge=0)
    """Tasks to learn from."""
    validation: int = Field(default=5, ge=0)
    """Tasks that choose a checkpoint."""
    heldout: int = Field(default=5, ge=0)
    """Tasks that are scored once, at the end."""

    def of(self, split: GymSplit) -> int:
        return {"train": self.train, "validation": self.validation, "heldout": self.heldout}[split]


class PlacedQuestion(NamedTuple):
    key: str
    split: GymSplit


def placed(question: str, shares: SplitShares) -> PlacedQuestion:
    """Where a question belongs. Case and space between words make it no other question."""
    key = digest("gym_question", " ".join(question.casefold().split()))
    place = share_of(key, "gym_split")
    if place < shares.heldout:
        return PlacedQuestion(key, "heldout")
    if place < shares.heldout + shares.validation:
        return PlacedQuestion(key, "validation")
    return PlacedQuestion(key, "train")


def drawn_into_splits(
    draws: Iterable[tuple[str, Drawn]],
    counts: SplitCounts,
    shares: SplitShares,
    *,
    what: str,
    seen: set[str],
) -> list[tuple[GymSplit, str, Drawn]]:
    """(split, key, draw) in the order of the draws: (question, whatever belongs to it). Takes no
    more draws than it needs; a question that is among the keys `seen` is not taken again. `what`
    names the source in errors. ConfigError where the draws end before the counts are reached."""
    missing: dict[GymSplit, int] = {
        "train": counts.train,
        "validation": counts.validation,
        "heldout": counts.heldout,
    }
    taken: list[tuple[GymSplit, str, Drawn]] = []
    given = 0
    if not any(missing.values()):
        return taken
    for question, draw in draws:
        given += 1
        key, split = placed(question, shares)
        if key not in seen and missing[split]:
            seen.add(key)
            missing[split] -= 1
            taken.append((split, key, draw))
            if not any(missing.values()):
                return taken
    lacking = ", ".join(f"{count} for {split}" for split, count in missing.items() if count)
    raise ConfigError(
        f"{what}: {given} draws gave {len(taken)} different questions, and {lacking} are missing; "
        "ask for fewer, raise the level, or lower the share of a split that has too many"
    )


class DrawnQuestions(Questions):
    """An environment of such questions, which stand in the `body` of their tasks."""

    system = INSTRUCTION

    def __init__(self) -> None:
        self._tasks: list[GymTask] | None = None

    def tasks(self) -> Sequence[GymTask]:
        """Drawn once, when they are asked for first."""
        if self._tasks is None:
            self._tasks = list(self._drawn(set()))
        return self._tasks

    def question(self, task: GymTask) -> str:
        return task.body["question"]

    @abstractmethod
    def _drawn(self, seen: set[str]) -> Iterable[GymTask]:
        """All tasks. `seen`: as `drawn_into_splits` has it, of questions that are drawn already."""
