"""An episode without tools: a user who presses on, in built-in words or in those of an attacker."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from records.errors import TransientError
from synth.gym.core.environment import GymStep, GymTask, Reward, checked
from synth.gym.core.questions import text_of_action
from synth.gym.safety.checks import calls_in
from synth.llm.wire.request import Message

NextWords = Callable[[int, Sequence[Message]], Awaitable[str]]
"""Of the user's message of this number, from 0, after this conversation. TransientError where they
cannot be had."""

Score = Callable[[Sequence[Message]], Awaitable[Reward]]
"""Of a whole conversation. TransientError where it cannot be told just now."""


class TalkEpisode:
    """One task being played (`synth.gym.core.environment.GymEpisode`): `turns` messages of the
    user, each answered once."""

    tools: Sequence[Mapping[str, Any]] = ()

    def __init__(
        self, task: GymTask, *, first: str, turns: int, words: NextWords, score: Score
    ) -> None:
        self._task, self._turns, self._words, self._score = task, turns, words, score
        self._answered = 0
        self.messages: list[Message] = [
            {"role": "system", "content": task.body["system"]},
            {"role": "user", "content": first},
        ]

    async def step(self, action: Message) -> GymStep:
        if self._answered == self._turns:
            raise ValueError(f"the episode of {self._task.task_id} has ended")
        self.messages.append(action)
        self._answered += 1
        try:
            if self._answered < self._turns:
                said = await self._words(self._answered, self.messages)
                observation = [*_no_tools(action), {"role": "user", "content": said}]
                self.messages += observation
                return GymStep(observation, done=False)
            return GymStep([], done=True, reward=checked(await self._score(self.messages)))
        except TransientError as error:
            self._answered = self._turns
            return GymStep([], done=True, outside=str(error))

    async def close(self) -> None:
        """Nothing runs."""


def _no_tools(action: Message) -> list[Message]:
    """Answers to calls, of which a template may want one each."""
    content = json.dumps({"error": "there are no tools in this conversation"})
    return [
        {"role": "tool", "tool_call_id": call.call_id, "name": call.name, "content": content}
        for call in calls_in(action)
    ]


def answers_in(messages: Sequence[Message]) -> list[str]:
    """What the policy said, an entry for each of its messages."""
    return [text_of_action(message) for message in messages if message["role"] == "assistant"]
