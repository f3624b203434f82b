"""What requests took, by stage and role, and how much more is to be expected of the same kind."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class EstimatedUsage(NamedTuple):
    requests: float = 0.0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    usd: float = 0.0

    @property
    def tokens(self) -> float:
        return self.prompt_tokens + self.completion_tokens

    def plus(self, other: "EstimatedUsage") -> "EstimatedUsage":
        return EstimatedUsage(*(a + b for a, b in zip(self, other, strict=True)))

    def minus(self, other: "EstimatedUsage") -> "EstimatedUsage":
        return EstimatedUsage(*(a - b for a, b in zip(self, other, strict=True)))

    def times(self, factor: float) -> "EstimatedUsage":
        return EstimatedUsage(*(x * factor for x in self))


NOTHING = EstimatedUsage()

StageRole = tuple[str, str]
"""(stage, role)."""


def sum_of(values: Iterable[EstimatedUsage]) -> EstimatedUsage:
    total = NOTHING
    for value in values:
        total = total.plus(value)
    return total


@dataclass
class Units:
    """Items of one sort, of which some have been made and paid for to the end."""

    planned: int
    known: dict[str, dict[StageRole, EstimatedUsage]] = field(default_factory=dict)
    """Unit -> usage by place."""
    guessed: Mapping[StageRole, EstimatedUsage] = field(default_factory=dict)
    """Half the width of the interval of what is known, by place, where that is a guess. What is
    guessed at one place is wrong together with what is guessed at another."""

    @property
    def left(self) -> int:
        return max(0, self.planned - len(self.known))

    def total(self, place: StageRole | None) -> tuple[EstimatedUsage, EstimatedUsage]:
        """Expected usage of all planned units at a place (None: at all), and half the width of its
        interval. What is not known is a sum of draws like those that are."""
        values = [
            sum_of(u for at, u in used.items() if place in (None, at))
            for used in self.known.values()
        ]
        n, left = len(values), self.left
        known = sum_of(values)
        if n == 0 or left == 0:
            return known, sum_of(u for at, u in self.guessed.items() if place in (None, at))
        mean = known.times(1 / n)
        expected = known.plus(mean.times(left))
        if n == 1:
            return expected, EstimatedUsage(*(math.inf if x else 0.0 for x in mean))
        spread = EstimatedUsage(
            *(
                math.sqrt(sum((v[k] - mean[k]) ** 2 for v in values) / (n - 1))
                for k in range(len(mean))
            )
        )
        # the mean is uncertain, and so is each unit that is left
        factor = (1.96 + 2.4 / (n - 1)) * math.sqrt(left * (1 + left / n))
        return expected, spread.times(factor)
