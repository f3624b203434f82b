"""How many steps fit into the minutes that are left, by the pace of a few."""

import json
import statistics
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from trainer.training.metrics import read_metrics

TRIED = 12
"""Steps that a pace is taken of; the first ones, which are slower, do not count."""

WARM_UP = 4

SCORING_MINUTES = 20.5
"""What playing the tasks takes on two cores: all policies, all kinds, whatever the budget."""

STEPS_SHARE = 0.85
"""Of a training's time; the rest goes into reading, validations and checkpoints, of which the pace
of a few steps has none."""

PRETRAINING = 0.35
"""Share of the training time that may go into the texts before any conversation: copying, which is
learnt there, sets in late."""

DRILLING = 0.25
"""Share of what is left then that may go into made-up conversations."""

LEAST_STEPS = 50
"""However little time is left: a budget shrinks training, and never what is checked."""


class Steps(NamedTuple):
    fit: int
    """At this pace."""
    wanted: int
    """By the config."""

    @property
    def taken(self) -> int:
        return max(min(self.fit, self.wanted), min(LEAST_STEPS, self.wanted))


def step_seconds(folder: Path) -> float:
    """Of one step of a run, the median."""
    lines = read_metrics(folder)
    took = [
        (line["tokens"] - before["tokens"]) / line["tokens_per_s"]
        for before, line in pairwise(lines[WARM_UP:])
    ]
    return statistics.median(took)


def steps_within(minutes: float, step_s: float, wanted: int) -> Steps:
    return Steps(int(max(0.0, minutes) * 60 * STEPS_SHARE / step_s), wanted)


def kept_steps(path: Path) -> dict[str, int]:
    """What was decided when the run began: one that goes on takes as many."""
    return json.loads(path.read_text()) if path.exists() else {}
