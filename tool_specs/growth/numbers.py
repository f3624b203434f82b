"""Numbers of grown rows: near those of the seed, in its steps, and amounts of one split each."""

from collections.abc import Sequence
from math import exp, inf
from random import Random

from records.tables.splits import Split
from tool_specs.growth.partition import fits
from tool_specs.language.domain_file import FieldSpec

STEPS = (1000, 500, 100, 50, 10, 5, 1, 0.5, 0.1, 0.05, 0.01, 0.001)
"""What amounts are multiples of, the coarsest first."""

FEWEST_AMOUNTS = 150
"""Multiples of the step within the field's range from which its numbers are amounts, which are kept
apart by split. Fewer are counts, such as a floor or a rating, that all have to share."""

_SPREAD = 0.45
"""Standard deviation of the logarithm of what an amount is multiplied by."""


class NumberMaker:
    """The numbers of one field, by the seed's: `values`, with repeats."""

    def __init__(self, spec: FieldSpec, values: Sequence[float], split: Split) -> None:
        self._split: Split = split
        self._integral = spec.type == "integer"
        self._values = [v for v in values if v]
        low, high = min(values, default=0), max(values, default=0)
        percent = spec.unit in ("percent", "%")
        self.low = spec.min if spec.min is not None else (low if low >= 0 else 2 * low)
        widest = high if percent else high + max(abs(high), 1)
        self._most = inf if spec.max is None else spec.max
        self.high = min(widest, self._most)
        self.step = _step_of(self._values)
        self._ending = _ending_of(self._values)
        self.is_amount = (self.high - self.low) / self.step >= FEWEST_AMOUNTS

    def near(self, value: float, rng: Random) -> float:
        """Another number in place of this one. Nothing mostly stays nothing."""
        if not value and (rng.random() < 0.85 or not self._values):
            return value
        start = value or rng.choice(self._values)
        if not self.is_amount:
            return self._within(start + self.step * rng.choice((-1, 0, 0, 0, 1)))
        return self._of_split(start * exp(rng.gauss(0.0, _SPREAD)), rng)

    def anywhere(self, rng: Random, *, more: int = 0) -> float:
        """A number of the range, or up to `more` steps beyond what the seed has."""
        top = min(self.high + more * self.step, self._most)
        return self._of_split(rng.uniform(self.low, top), rng, top=top)

    def _of_split(self, wanted: float, rng: Random, *, top: float | None = None) -> float:
        """The nearest number, up or down by whole steps, that the split may use."""
        value = self._within(wanted, top)
        if not self.is_amount:
            return value
        if self._ending is not None and value > 2:
            value = self._within(int(value) + self._ending, top)
        way = rng.choice((1, -1))
        size = max(self.step, 1) if self._ending is not None else self.step
        for steps in range(200):
            for sign in (way, -way):
                found = self._within(value + sign * steps * size, top)
                if found and fits(found, self._split):
                    return found
        return value

    def _within(self, value: float, top: float | None = None) -> float:
        value = round(value / self.step) * self.step
        value = min(max(value, self.low), self.high if top is None else top)
        value = round(value, 3)
        return int(value) if self._integral or value == int(value) else value


def _step_of(values: Sequence[float]) -> float:
    """The coarsest step that nine in ten of the values are multiples of, and at most a third of the
    middle one; one without any."""
    if not values:
        return 1
    middle = sorted(map(abs, values))[len(values) // 2]
    whole = all(v == int(v) for v in values)
    for step in STEPS:
        if whole and step < 1:
            break
        fitting = sum(abs(v / step - round(v / step)) < 1e-6 for v in values)
        if step <= middle / 3 and fitting >= 0.9 * len(values):
            return step
    return 1 if whole else STEPS[-1]


def _ending_of(values: Sequence[float]) -> float | None:
    """What prices end in, such as .99, where a third of them do."""
    endings = [round(v % 1, 2) for v in values if v % 1]
    for ending in (0.99, 0.95, 0.9):
        if len(values) >= 3 and endings.count(ending) * 3 >= len(values):
            return ending
    return None
