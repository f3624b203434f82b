"""Which tasks an iteration plays: those of moderate difficulty, what few tasks are about raised.

The difficulty of a task is what the policy's own samples of it came to when it was played last:
nothing is played to find it out. A choice is a function of the seed, the iteration and what was
played before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from records.errors import ConfigError
from records.seeds import seed_of
from synth.gym.core.environment import GymTask
from synth.gym.core.ranked import is_ranked
from synth.gym.coverage import coverage, coverage_table, drawn, weights
from synth.gym.difficulty import Banded, in_band
from trainer.rl.rollouts.samples import Group
from trainer.rl.settings import ChoiceSettings


class TriedTask(NamedTuple):
    iteration: int
    """For which it was asked."""
    rewards: list[float]
    """What its samples were worth, but for those that were lost."""


class Difficulties(NamedTuple):
    """How many tasks there are, by what was found of them when they were played last."""

    untried: int
    """Or with too few samples to be told."""
    too_hard: int
    moderate: int
    too_easy: int


class TaskChoice:
    """Of the tasks that are learnt from."""

    def __init__(self, tasks: Iterable[GymTask], settings: ChoiceSettings, *, seed: int) -> None:
        """ConfigError where there is none."""
        self._tasks = [task for task in tasks if task.split == "train"]
        if not self._tasks:
            raise ConfigError("the environments of `gym` have no task to learn from (split train)")
        self._settings, self._seed = settings, seed
        self._weights = weights(self._tasks, settings.coverage)
        self._by_id = {task.task_id: task for task in self._tasks}
        self.tried: dict[str, TriedTask] = {}
        """By id of the task, the last time only."""

    def of(self, iteration: int) -> list[GymTask]:
        """Tasks that do not rest, drawn by weight; where they are too few, those that have rested
        longest as well."""
        resting = self._resting(iteration)
        awake = [task for task in self._tasks if task.task_id not in resting]
        count = min(self._settings.tasks, len(self._tasks))
        seed = seed_of(str(self._seed), "rl-tasks", iteration)
        chosen = drawn(awake, self._weights, min(count, len(awake)), seed)
        longest = sorted(resting, key=lambda task_id: (self.tried[task_id].iteration, task_id))
        return [self._by_id[task_id] for task_id in (*chosen, *longest)[:count]]

    def note(self, groups: Iterable[Group]) -> None:
        """Keep what the samples of a task came to; nothing of one whose samples were all lost, nor
        of one whose answers are ranked: that says nothing of how hard it is."""
        for group in groups:
            if is_ranked(group.task):
                continue
            rewards = [worth for sample in group.samples if (worth := sample.worth) is not None]
            if rewards:
                self.tried[group.task.task_id] = TriedTask(group.begun, rewards)

    def difficulties(self) -> Difficulties:
        band = self._banded()
        known = len(band.too_hard) + len(band.kept) + len(band.too_easy)
        return Difficulties(
            untried=len(self._tasks) - known,
            too_hard=len(band.too_hard),
            moderate=len(band.kept),
            too_easy=len(band.too_easy),
        )

    def coverage(self) -> str:
        """What the tasks are about, how far rare tags are raised, and what was played so far, as a
        Markdown table."""
        rows = coverage(self._tasks, self._weights, self._settings.coverage, list(self.tried))
        return coverage_table(rows)

    def to_json(self) -> dict[str, Any]:
        """For `restore`."""
        return {task_id: list(tried) for task_id, tried in sorted(self.tried.items())}

    def restore(self, told: Mapping[str, Sequence[Any]]) -> None:
        self.tried = {task_id: TriedTask(*values) for task_id, values in told.items()}

    def _banded(self) -> Banded:
        known = {task_id: tried.rewards for task_id, tried in self.tried.items()}
        return in_band(known, self._settings.band)

    def _resting(self, iteration: int) -> set[str]:
        band, rest = self._banded(), self._settings.rest
        return {
            task_id
            for task_id in (*band.too_hard, *band.too_easy)
            if iteration - self.tried[task_id].iteration <= rest
        }
