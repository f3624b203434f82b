"""Learning rate by tokens seen: warm-up, then phases, each constant, linear or cosine (WSD)."""

import math
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from records.config import Config


class Phase(Config):
    tokens: int = Field(ge=1)
    """How long it lasts."""
    to: float = Field(gt=0.0)
    """Learning rate at its end."""
    shape: Literal["constant", "linear", "cosine"] = "constant"
    """Way from the rate before to `to`; constant jumps there at once."""


class Schedule(Config):
    """Kimi K2's, for instance: warm-up, 10T constant at 2e-4, 5.5T cosine to 2e-5, then 460B of
    annealing to 7e-6."""

    warmup_tokens: int = Field(default=0, ge=0)
    """Linear from 0 to the first phase's rate, before the first phase."""
    phases: tuple[Phase, ...] = Field(min_length=1)
    """One after another; the last one ends the training."""

    @model_validator(mode="after")
    def _first_phase_has_a_start(self) -> Self:
        if self.phases[0].shape != "constant":
            raise ValueError(
                f"phases[0].shape must be constant (warm-up leads to its rate), got "
                f"{self.phases[0].shape!r}"
            )
        return self

    def lr_at(self, tokens: int) -> float:
        """Rate of a step that begins after so many tokens. At the end and beyond it, the last
        one; at 0 with warm-up it is 0."""
        if tokens < self.warmup_tokens:
            return self.phases[0].to * tokens / self.warmup_tokens
        left = tokens - self.warmup_tokens
        before = self.phases[0].to
        for phase, following in pairwise((*self.phases, None)):
            assert phase is not None
            if left < phase.tokens or following is None:
                return _within(phase, before, min(left / phase.tokens, 1.0))
            left, before = left - phase.tokens, phase.to
        raise AssertionError("a schedule has phases")


def _within(phase: Phase, before: float, share: float) -> float:
    match phase.shape:
        case "constant":
            return phase.to
        case "linear":
            return before + (phase.to - before) * share
        case "cosine":
            return phase.to + (before - phase.to) * (1 + math.cos(math.pi * share)) / 2


WARMUP, DECAY, FLOOR = 0.02, 0.3, 0.1
"""Shares of a run that warm up and decay, and its last rate as a share of the peak."""

REWARMING = 0.1
"""Share of the new steps over which a rate that had decayed rises again."""

RateExtension = Literal["hold", "redecay"]
"""How the rate goes on where a run takes more steps than its schedule was made for."""


def wsd(
    peak: float,
    total_tokens: int,
    *,
    warmup: float = WARMUP,
    decay: float = DECAY,
    floor: float = FLOOR,
) -> Schedule:
    """Warm-up and cosine decay as shares of the whole; the last rate as a share of the peak."""
    warmup_tokens = int(warmup * total_tokens)
    decay_tokens = max(1, int(decay * total_tokens))
    stable = max(1, total_tokens - warmup_tokens - decay_tokens)
    return Schedule(
        warmup_tokens=warmup_tokens,
        phases=(
            Phase(tokens=stable, to=peak),
            Phase(tokens=decay_tokens, to=peak * floor, shape="cosine"),
        ),
    )


def extended(
    schedule: Schedule, tokens: int, way: RateExtension, *, peak: float, decay: float = DECAY
) -> Schedule:
    """The schedule with so many tokens more behind it; up to its end nothing of it changes.

    With r for the rate at its end, x for tokens behind it, n for `tokens`, and d = `decay` n:

        hold:     lr = r
        redecay:  lr = r + (peak - r) x / w                    x < w = REWARMING n  (re-warming)
                  lr = peak                                    w <= x < n - d       (stable)
                  lr = f + (peak - f) (1 + cos(pi y)) / 2      y = (x - n + d) / d, f = FLOOR peak

    The rate is continuous, is r at x = 0, and at x = n is r or f.
    """
    last = schedule.phases[-1].to
    if way == "hold":
        more = (Phase(tokens=tokens, to=last),)
    else:
        again = wsd(peak, tokens, warmup=REWARMING, decay=decay)
        rewarming = Phase(tokens=max(1, again.warmup_tokens), to=peak, shape="linear")
        more = (rewarming, *again.phases)
    return Schedule(warmup_tokens=schedule.warmup_tokens, phases=(*schedule.phases, *more))
