"""What a policy reaches on tasks that nothing is learnt from, and with which episodes.

Episodes are played as in learning, so they survive a kill, and in the deterministic way: the same
weights come to the same scores.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from records.seeds import share_of
from synth.gym.core.environment import GymEnvironment, GymSplit, GymTask
from synth.gym.core.ranked import is_ranked
from trainer.inference.drawing import Sampling
from trainer.inference.policies import ModelPolicy
from trainer.rl.rollouts.rollouts import Rollouts
from trainer.rl.rollouts.samples import RolloutSample
from trainer.rl.rollouts.settings import RolloutSettings
from trainer.rl.rollouts.table import write_samples
from trainer.rl.settings import TestSettings

SUCCESS = 1.0 - 1e-9
"""A reward from which an episode counts as a success: all of it, but for rounding."""


class FamilyScore(NamedTuple):
    """Episodes of one family."""

    family: str
    tasks: int
    episodes: int
    """That say something about the policy. One in which it wrote nothing, or never stopped, has no
    reward to learn from, and counts as 0 here."""
    lost: int
    """Others."""
    reward: float
    """Mean."""
    success: float
    """Share of the episodes with the whole reward."""
    truncated: float
    """Share of those that were cut."""
    drawn: float
    """Tokens that the policy drew in an episode, mean."""
    parts: Mapping[str, float]
    """Mean of each part of the reward, over the episodes that have it."""


def chosen_tasks(tasks: Iterable[GymTask], split: GymSplit, most: int) -> list[GymTask]:
    """Of each family so many, by digest, the families in their order; none whose answers are only
    ranked against each other, which says nothing of how good they are."""
    by_family: dict[str, list[GymTask]] = {}
    for task in tasks:
        if task.split == split and not is_ranked(task):
            by_family.setdefault(task.family, []).append(task)
    return [
        task
        for own in by_family.values()
        for task in sorted(own, key=lambda one: share_of(one.task_id, "rl-test"))[:most]
    ]


async def play_test(
    policy: ModelPolicy,
    environments: Sequence[GymEnvironment],
    tasks: Sequence[GymTask],
    settings: TestSettings,
    rollouts: RolloutSettings,
    sampling: Sampling,
    folder: Path,
) -> list[FamilyScore]:
    """Play the tasks to their end by the weights that the policy has; `folder` then has the
    episodes, as `samples.parquet`."""
    policy.sampling = sampling
    played = Rollouts(policy, environments, _to_the_end(rollouts, settings, policy), folder)
    try:
        groups = await played.play(tasks, 0)
    finally:
        await played.close()
    write_samples(folder / "samples.parquet", groups)
    return scores_of([sample for group in groups for sample in group.samples])


def _to_the_end(
    rollouts: RolloutSettings, settings: TestSettings, policy: ModelPolicy
) -> RolloutSettings:
    """The limits of an episode in learning, and none of an iteration."""
    return rollouts.model_copy(
        update={
            "samples": settings.samples,
            "in_flight": policy.slots,
            "deterministic": True,
            "segment_tokens": None,
            "phase_tokens": None,
            "phase_s": None,
        }
    )


def scores_of(samples: Sequence[RolloutSample]) -> list[FamilyScore]:
    """By family, in the order of their names."""
    families = sorted({sample.task.family for sample in samples})
    return [
        _score(family, [sample for sample in samples if sample.task.family == family])
        for family in families
    ]


def mean_reward(scores: Sequence[FamilyScore]) -> float | None:
    """Of the families alike. None where one of them has no episode: a mean over the others would be
    compared with means over all."""
    whole = bool(scores) and all(score.episodes for score in scores)
    return fmean(score.reward for score in scores) if whole else None


def scores_table(before: Sequence[FamilyScore], after: Sequence[FamilyScore]) -> str:
    """Held-out tasks before and after, in Markdown."""
    lines = ["| held-out tasks | episodes | reward before | after | success before | after |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    known = {one.family: one for one in before}
    for one in after:
        then = known[one.family]
        lines.append(
            f"| {one.family} | {one.episodes} | {then.reward:.3f} | {one.reward:.3f} "
            f"| {then.success:.3f} | {one.success:.3f} |"
        )
    return "\n".join(lines)


def score_to_json(score: FamilyScore) -> dict[str, Any]:
    return {**score._asdict(), "parts": dict(score.parts)}


def _score(family: str, samples: Sequence[RolloutSample]) -> FamilyScore:
    played = [one for one in samples if not one.lost]
    summed: dict[str, float] = {}
    having: Counter[str] = Counter()
    for one in played:
        parts = one.reward.parts if one.reward is not None else {}
        having.update(parts.keys())
        for name, value in parts.items():
            summed[name] = summed.get(name, 0.0) + value
    values = [value for one in samples if (value := one.worth) is not None]
    return FamilyScore(
        family=family,
        tasks=len({one.task.task_id for one in samples}),
        episodes=len(played),
        lost=len(samples) - len(played),
        reward=_mean(values),
        success=_mean([float(value >= SUCCESS) for value in values]),
        truncated=_mean([float(one.truncated) for one in played]),
        drawn=_mean([float(one.drawn) for one in played]),
        parts={name: summed[name] / having[name] for name in sorted(having)},
    )


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
