"""The line of metrics of an iteration, and how people read it."""

import resource
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple

from synth.gym.core.ranked import is_ranked
from trainer.rl.choice import Difficulties
from trainer.rl.learning import RewardedSamples
from trainer.rl.objective.measures import LearningMeasures
from trainer.rl.objective.stepper import LearntStep
from trainer.rl.rollouts.figures import PhaseFigures
from trainer.rl.rollouts.samples import Group
from trainer.rl.testing import scores_of
from trainer.training.metrics import MetricsLine

OF_CLOCK = (
    *("play_s", "learn_s", "sync_s", "tokens_per_s", "env_steps_per_s", "occupancy"),
    *("waiting_share", "memory_gib", "critic_s"),
)
"""Metrics that differ from run to run of the same settings: all others come out alike in the
deterministic mode."""


class IterationTimes(NamedTuple):
    """Seconds."""

    play: float
    learn: float
    sync: float
    """Of the weights, to whoever draws."""


def line_of(
    done: int,
    groups: Sequence[Group],
    rewarded: RewardedSamples,
    steps: Sequence[LearntStep],
    figures: PhaseFigures,
    difficulties: Difficulties,
    times: IterationTimes,
    *,
    temperature: float,
    lr: float,
    drawn: int,
    critic: Mapping[str, Any] = MappingProxyType({}),
) -> MetricsLine:
    """Numbers of an iteration by name, and words for what went wrong; `step` counts iterations from
    1. A mean over optimiser steps counts those that were taken. Rewards are of tasks that code
    rewards; what `critic` says of itself and of the others comes as it is."""
    samples = [sample for group in groups for sample in group.samples]
    verifiable = [sample for sample in samples if not is_ranked(sample.task)]
    scores = scores_of(verifiable)
    counts = [step.counts for step in steps]
    line: dict[str, Any] = {
        "step": done,
        "tokens": drawn,
        "temperature": temperature,
        "lr": lr,
        "groups": len(groups),
        "samples": len(samples),
        "reward": _mean([value for s in verifiable if (value := s.worth) is not None]),
        "turns": _mean([float(s.turns) for s in samples if not s.lost]),
        "drawn": _mean([float(s.drawn) for s in samples if not s.lost]),
        "truncated": _mean([float(s.truncated) for s in samples if not s.lost]),
        "penalised": rewarded.penalised,
        "left_out": sum(rewarded.left_out.values()),
        "carried": figures.account.carried,
        "groups_alone": sum(one.alone for one in counts),
        "groups_equal": sum(one.equal for one in counts),
        **{f"tasks_{name}": n for name, n in difficulties._asdict().items()},
        **metrics_of_steps(steps),
        "play_s": times.play,
        "learn_s": times.learn,
        "sync_s": times.sync,
        "tokens_per_s": figures.tokens_per_s,
        "env_steps_per_s": figures.env_steps_per_s,
        "occupancy": figures.occupancy,
        "waiting_share": figures.waiting_share,
        "memory_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "validation_reward": None,
    }
    for score in scores:
        if score.episodes:
            line[f"reward/{score.family}"] = score.reward
            line[f"success/{score.family}"] = score.success
    outcomes = Counter(sample.outcome for sample in samples)
    return {**line, **critic, **{f"outcome/{name}": n for name, n in sorted(outcomes.items())}}


def metrics_of_steps(steps: Sequence[LearntStep]) -> dict[str, Any]:
    """Means over the steps that were taken, and why others were skipped."""
    results = [step.taken for step in steps if step.taken is not None]
    taken = [one for one in results if one.skipped is None]
    skipped = [one for one in results if one.skipped is not None]
    measured = [_measured(step.measures) for step in steps if step.measures is not None]
    names = dict.fromkeys(name for own in measured for name in own)
    means = {
        name: _mean([own[name] for own in measured if own.get(name) is not None]) for name in names
    }
    return {
        "steps": len(taken),
        "grad_norm": _mean([one.grad_norm for one in results]),
        "max_logit": max((one.max_logit for one in results), default=None),
        "clipped_heads": sum(one.clipped_heads for one in taken),
        "skipped": skipped[0].skipped if skipped else None,
        "why_skipped": skipped[0].why_skipped if skipped else None,
        **{("learnt_tokens" if name == "tokens" else name): mean for name, mean in means.items()},
    }


def _measured(measures: LearningMeasures) -> dict[str, Any]:
    """Of a step that had good conversations alone, only what there is to say of these: an entropy
    of no tokens is not 0."""
    if measures.tokens:
        return asdict(measures)
    return {"tokens": 0, "ptx_loss": measures.ptx_loss}


def told(line: MetricsLine) -> str:
    """The line as people read it."""
    parts = [f"iteration {line['step']}"]
    if line.get("reward") is not None:
        parts += [
            f"reward {line['reward']:.3f}",
            f"{line['drawn']:.0f} tokens a sample",
            f"{line['play_s']:.1f} s playing, {line['learn_s']:.1f} s learning",
        ]
    if line.get("kl_k3") is not None:
        parts.append(f"KL {line['kl_k3']:.4f}  entropy {line['entropy']:.3f}")
    if line.get("validation_reward") is not None:
        parts.append(f"validation {line['validation_reward']:.3f}")
    if (agreement := line.get("critic_agreement")) is not None:
        parts.append(f"critic {agreement:.2f}, {'on' if line['critic_on'] else 'off'}")
    if line.get("left_out"):
        parts.append(f"{line['left_out']} of {line['samples']} samples left out")
    if line.get("skipped"):
        parts.append(f"SKIPPED: {line['why_skipped']}")
    return "  ".join(parts)


def _mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return fmean(values) if values else None
