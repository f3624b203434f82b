"""Which tasks are of moderate difficulty for the current model, by how many of its attempts pass.

Kimi K2's report keeps moderate tasks by pass@k and gives no thresholds: those here are ours.
"""

from collections.abc import Mapping, Sequence
from math import comb
from typing import NamedTuple

from pydantic import Field, model_validator

from records.config import Config


def pass_at_k(attempts: int, passed: int, k: int) -> float:
    """The chance that at least one of k attempts passes, estimated without bias from all that were
    made: 1 - C(attempts - passed, k) / C(attempts, k) (Chen et al. 2021). ValueError for more that
    passed than were made, and for fewer attempts than k."""
    if not 0 <= passed <= attempts or not 1 <= k <= attempts:
        raise ValueError(
            f"pass@{k} of {passed} among {attempts} attempts; there must be at least k attempts, "
            "and no more that pass"
        )
    return 1.0 - comb(attempts - passed, k) / comb(attempts, k)


class ModerateBand(Config):
    """Which tasks are neither too hard nor too easy to learn from."""

    k: int = Field(default=4, ge=1)
    """Attempts of which one has to pass, for the lower end. A task with fewer attempts is not
    judged."""
    lowest: float = Field(default=0.1, ge=0, le=1)
    """Of pass@k: a task below is too hard, since most groups of k have nothing to learn from."""
    highest: float = Field(default=0.9, ge=0, le=1)
    """Of the share of attempts that pass: a task above is too easy."""
    passing: float = Field(default=1.0, gt=0, le=1)
    """Reward from which an attempt passes."""

    @model_validator(mode="after")
    def _is_a_band(self) -> "ModerateBand":
        if self.lowest > self.highest:
            raise ValueError(f"lowest = {self.lowest} is above highest = {self.highest}")
        return self


class Banded(NamedTuple):
    kept: tuple[str, ...]
    """Ids of moderate tasks, in the order of the results."""
    too_hard: tuple[str, ...]
    too_easy: tuple[str, ...]
    too_few: tuple[str, ...]
    """With fewer attempts than k: nobody knows."""

    def counts(self) -> dict[str, int]:
        return {name: len(ids) for name, ids in self._asdict().items()}


def in_band(rewards: Mapping[str, Sequence[float]], band: ModerateBand) -> Banded:
    """The tasks by their difficulty. `rewards`: task id -> those of its attempts; an attempt that
    ended for a reason outside the policy has none and is not among them."""
    found: dict[str, list[str]] = {name: [] for name in Banded._fields}
    for task_id, own in rewards.items():
        found[_end_of(own, band)].append(task_id)
    return Banded(**{name: tuple(ids) for name, ids in found.items()})


def _end_of(rewards: Sequence[float], band: ModerateBand) -> str:
    attempts = len(rewards)
    if attempts < band.k:
        return "too_few"
    passed = sum(reward >= band.passing for reward in rewards)
    if pass_at_k(attempts, passed, band.k) < band.lowest:
        return "too_hard"
    return "too_easy" if passed / attempts > band.highest else "kept"
