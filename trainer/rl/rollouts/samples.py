"""What comes of rollouts: a sample is one episode, a group the samples of one task."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from records.errors import ConfigError
from synth.gym.core.environment import GymTask, Reward
from synth.gym.core.ranked import is_ranked
from synth.llm.wire.request import Message
from trainer.inference.episode_tokens import EpisodeTokens
from trainer.rl.rollouts.outcomes import LOST, EpisodeOutcome


class RolloutSample(NamedTuple):
    task: GymTask
    number: int
    """Which of the group's it is, from 0."""
    seed: int
    """Decides the episode and every token of it, with task and weights; it follows from the run's,
    the task, the number and the iteration for which it was asked."""
    tokens: list[EpisodeTokens]
    """What the policy read and drew, a conversation each."""
    messages: list[Message]
    """The whole conversation; empty where the environment never began."""
    tools: list[Mapping[str, Any]]
    reward: Reward | None
    """None: nothing is learnt from it (`trainer.rl.rollouts.outcomes`), unless its answer is yet to
    be ranked."""
    outcome: EpisodeOutcome
    detail: str
    """Why it was lost, in words; else empty."""
    truncated: bool
    """Whether the policy was cut."""
    turns: int
    """Answers of the policy."""
    begun: int
    """Iteration for which it was asked."""
    ended: int
    """Iteration in which it ended."""

    @property
    def drawn(self) -> int:
        """Tokens that the policy drew."""
        return drawn_in(self.tokens)

    @property
    def lost(self) -> bool:
        """Whether the end says nothing about the policy."""
        return self.outcome in LOST

    @property
    def awaits_rank(self) -> bool:
        """Whether its answer can be ranked against others of its task, and has not been."""
        answered = self.outcome in ("completed", "truncated", "repeats")
        return answered and self.reward is None and is_ranked(self.task)

    @property
    def worth(self) -> float | None:
        """What it counts as where the policy is measured: nothing where the policy wrote nothing or
        never stopped, though nothing is learnt from that. None where it is lost, or awaits its
        rank."""
        if self.reward is None:
            return None if self.lost or self.awaits_rank else 0.0
        return float(self.reward.value)


class GroupKey(NamedTuple):
    begun: int
    task_id: str


class Group(NamedTuple):
    task: GymTask
    begun: int
    """Iteration for which it was asked."""
    samples: list[RolloutSample]
    """All of them, in their order, those without a reward too."""


def drawn_in(tokens: Sequence[EpisodeTokens]) -> int:
    """Tokens that the policy drew, those of an answer that is not over among them."""
    drawn = 0
    for own in tokens:  # counted by answers, as this is asked behind every chunk
        drawn += sum(answer.end - answer.begin for answer in own.answers) + drawn_in(own.earlier)
        drawn += 0 if own.begun_at is None else len(own.ids) - own.begun_at
    return drawn


def sample_to_json(sample: RolloutSample) -> dict[str, Any]:
    """For `sample_of_json`, in this process or another."""
    return {
        **sample._asdict(),
        "task": task_to_json(sample.task),
        "tokens": [own.to_json() for own in sample.tokens],
        "reward": None
        if sample.reward is None
        else [sample.reward.value, dict(sample.reward.parts)],
    }


def sample_of_json(told: Mapping[str, Any]) -> RolloutSample:
    """ConfigError for what `sample_to_json` did not write."""
    try:
        reward = told["reward"]
        own = {
            "task": task_of_json(told["task"]),
            "tokens": [EpisodeTokens.of_json(text) for text in told["tokens"]],
            "reward": None if reward is None else Reward(reward[0], reward[1]),
        }
        return RolloutSample(**{**told, **own})
    except (KeyError, TypeError, IndexError) as error:
        raise ConfigError(f"this is no stored sample: {error!r}") from error


def task_to_json(task: GymTask) -> dict[str, Any]:
    return {**task._asdict(), "body": dict(task.body)}


def task_of_json(told: Mapping[str, Any]) -> GymTask:
    return GymTask(**{**told, "tags": tuple(told["tags"])})
