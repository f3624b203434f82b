"""The interface of environments with verifiable rewards, after Gymnasium and as
`synth.episode.environment`: an action is one assistant message, an observation the messages that it
causes.

An episode is decided by its task, its seed and the actions: whoever has these three plays it again
to the same observations and the same reward, and so brings back one that was interrupted.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from records.errors import SynthError
from synth.llm.wire.request import Message

GymSplit = Literal["train", "validation", "heldout"]
"""`train` is learnt from, `validation` chooses a checkpoint, `heldout` is scored at the end."""


class GymTask(NamedTuple):
    task_id: str
    """Digest of what decides the task."""
    family: str
    """Of the environment that plays it."""
    split: GymSplit
    tags: tuple[str, ...]
    """What the task is about, for coverage: `domain:...`, `kind:...`, `level:...`."""
    body: Mapping[str, Any]
    """What the environment plays it by and checks it by, as JSON."""


class Reward(NamedTuple):
    value: float
    """From 0 to 1."""
    parts: Mapping[str, float] = MappingProxyType({})
    """What the value is made of, by name: a column of its own in the dataset."""


class RewardError(SynthError):
    """A reward that is none. It costs its episode and never reaches the weights."""

    def __init__(self, reason: Literal["reward_no_number", "reward_out_of_range"], value: object):
        super().__init__(f"{reason}: {value!r}; a reward is a number from 0 to 1")
        self.reason = reason


class GymStep(NamedTuple):
    observation: list[Message]
    """What the policy reads next; empty at the end."""
    done: bool
    reward: Reward | None = None
    """At the end only; None as well where `outside` says why there is none, and always of a task
    whose answers are ranked (`synth.gym.core.ranked`)."""
    outside: str | None = None
    """Why the episode ended without saying anything about the policy, such as a server that is
    down."""
    truncated: bool = False
    """Whether the environment ended it for its length, such as a limit of turns. It has a reward
    all the same."""


class GymEpisode(Protocol):
    """One task being played. Not for concurrent steps."""

    messages: list[Message]
    """All so far: at the beginning the prompt, then actions and observations."""
    tools: Sequence[Mapping[str, Any]]
    """In OpenAI's form; empty where the task has none."""

    async def step(self, action: Message) -> GymStep:
        """Play one assistant message. What the policy does wrong is an observation or a reward,
        never an error. ValueError after the end."""
        ...

    async def close(self) -> None:
        """Stop what the episode runs; may be called twice."""
        ...


class GymEnvironment(Protocol):
    """Tasks of one family, and how they are played. Episodes may run beside each other."""

    family: str

    def tasks(self) -> Sequence[GymTask]:
        """All of them, in an order that does not change."""
        ...

    async def begin(self, task: GymTask, seed: int) -> GymEpisode:
        """An episode at its beginning. TransientError for a failure that may be gone the next
        time."""
        ...

    async def close(self) -> None: ...


def checked(reward: Reward) -> Reward:
    """The reward as it is. RewardError for a value or part that is no number, and for a value
    outside its range."""
    for value in (reward.value, *reward.parts.values()):
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise RewardError("reward_no_number", value)
    if not 0 <= reward.value <= 1:
        raise RewardError("reward_out_of_range", reward.value)
    return reward
