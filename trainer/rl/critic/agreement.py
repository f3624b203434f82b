"""How far the critic's verdicts agree with the truth that code has, over the last measured pairs,
and whether that exceeds chance."""

from collections import deque
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from synth.render.intervals import Interval, wilson

CHANCE = 0.5
"""Agreement of a critic that knows nothing: a tie counts as half."""


class MeasuredPair(NamedTuple):
    iteration: int
    task_id: str
    worth: float
    """1 where the critic's order is code's, 0 where it is the opposite, 0.5 for a tie."""


class AgreementRecord:
    """Of the last pairs. A tie agrees by half, so one that always says the same, or nothing that
    can be read, is at chance."""

    def __init__(self, window: int) -> None:
        self._pairs: deque[MeasuredPair] = deque(maxlen=window)

    def add(self, pairs: Iterable[MeasuredPair]) -> None:
        self._pairs.extend(pairs)

    @property
    def agreement(self) -> float | None:
        """Share of the pairs, the tasks weighing alike; None without any."""
        shares = self._shares()
        return fmean(shares) if shares else None

    @property
    def interval(self) -> Interval:
        """At 95%. The pairs of one task count as one observation, whatever their number, as they
        are no more independent than that; (0, 1) without any."""
        shares = self._shares()
        return wilson(sum(shares), len(shares))

    @property
    def exceeds_chance(self) -> bool:
        return self.interval.low > CHANCE

    @property
    def trend(self) -> float | None:
        """By how much the share of pairs in which the critic's order is the opposite of code's
        grows in an iteration, by least squares over the last pairs; None as long as they are of
        one iteration."""
        if not self._pairs:
            return None
        mean = fmean(pair.iteration for pair in self._pairs)
        spread = sum((pair.iteration - mean) ** 2 for pair in self._pairs)
        if not spread:
            return None
        return sum((pair.iteration - mean) * (pair.worth == 0) for pair in self._pairs) / spread

    def to_json(self) -> list[Any]:
        """For `restore`."""
        return [list(pair) for pair in self._pairs]

    def restore(self, told: Iterable[Sequence[Any]]) -> None:
        self._pairs.clear()
        self._pairs.extend(MeasuredPair(*values) for values in told)

    def _shares(self) -> list[float]:
        """Mean of each task's pairs."""
        by_task: dict[str, list[float]] = {}
        for pair in self._pairs:
            by_task.setdefault(pair.task_id, []).append(pair.worth)
        return [fmean(worths) for worths in by_task.values()]
