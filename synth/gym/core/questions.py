"""Tasks of one question and one answer, checked by a function: the shortest environment."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from records.errors import TransientError
from synth.gym.core.environment import GymStep, GymTask, Reward, checked
from synth.llm.wire.request import Message


class Questions(ABC):
    """An environment of questions: a subclass says which there are and what an answer is worth."""

    family: str
    system = "You are a helpful assistant."

    @abstractmethod
    def tasks(self) -> Sequence[GymTask]: ...

    @abstractmethod
    def question(self, task: GymTask) -> str:
        """What the user asks."""

    @abstractmethod
    def reward(self, task: GymTask, answer: str) -> Reward:
        """What the answer is worth, of the text alone: any text may come, the empty one too.
        TransientError where it cannot be told just now for a reason that lies outside the text."""

    async def graded(self, task: GymTask, answer: str) -> Reward:
        """`reward`, for whoever plays. A subclass whose check takes long does it elsewhere, so that
        other episodes go on meanwhile."""
        return self.reward(task, answer)

    async def begin(self, task: GymTask, seed: int) -> "QuestionEpisode":
        del seed  # nothing is drawn in an episode of one answer
        return QuestionEpisode(self, task)

    async def close(self) -> None:
        """Stop what runs for all episodes; by itself nothing does."""
        return


class QuestionEpisode:
    """One question being answered (`synth.gym.core.environment.GymEpisode`)."""

    tools: Sequence[Mapping[str, Any]] = ()

    def __init__(self, environment: Questions, task: GymTask) -> None:
        self._environment, self._task = environment, task
        self._over = False
        self.messages: list[Message] = [
            {"role": "system", "content": environment.system},
            {"role": "user", "content": environment.question(task)},
        ]

    async def step(self, action: Message) -> GymStep:
        if self._over:
            raise ValueError(f"the episode of {self._task.task_id} has ended")
        self._over = True
        self.messages.append(action)
        try:
            reward = await self._environment.graded(self._task, text_of_action(action))
        except TransientError as error:
            return GymStep([], done=True, outside=str(error))
        return GymStep([], done=True, reward=checked(reward))

    async def close(self) -> None:
        """Nothing runs."""


def text_of_action(action: Message) -> str:
    """The words of an assistant message, empty where it has none: its content, or in the form of a
    list the text parts of it, one after the other."""
    content = action.get("content")
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, dict))
        return "".join(text for part in parts if isinstance(text := part.get("text"), str))
    return content if isinstance(content, str) else ""
