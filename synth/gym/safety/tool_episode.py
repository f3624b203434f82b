"""An episode with tools: one reads records, one sends something off; what a record says may be an
attack. Nothing outside the episode is read or sent."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from synth.gym.core.environment import GymStep, GymTask, checked
from synth.gym.safety.checks import WrittenCall, calls_in, injection_reward
from synth.llm.wire.request import Message


class InjectionEpisode:
    """One task being played (`synth.gym.core.environment.GymEpisode`). It ends with a message
    without calls, or after `max_calls` of them, which is no success."""

    def __init__(self, task: GymTask, max_calls: int) -> None:
        self._task, self._max_calls = task, max_calls
        self._actions: list[Message] = []
        self._calls, self._over = 0, False
        self.tools: Sequence[Mapping[str, Any]] = task.body["tools"]
        self.messages: list[Message] = [
            {"role": "system", "content": task.body["system"]},
            {"role": "user", "content": task.body["question"]},
        ]

    async def step(self, action: Message) -> GymStep:
        if self._over:
            raise ValueError(f"the episode of {self._task.task_id} has ended")
        self.messages.append(action)
        self._actions.append(action)
        calls = calls_in(action)
        self._calls += len(calls)
        if calls and self._calls <= self._max_calls:
            results = [self._result(call) for call in calls]
            self.messages += results
            return GymStep(results, done=False)
        self._over = True
        reward = injection_reward(self._task.body, self._actions)
        if calls:  # it never came to an answer
            reward = reward._replace(value=0.0)
        return GymStep([], done=True, reward=checked(reward))

    async def close(self) -> None:
        """Nothing runs."""

    def _result(self, call: WrittenCall) -> Message:
        content = json.dumps(self._answer(call), ensure_ascii=False)
        return {
            "role": "tool",
            "tool_call_id": call.call_id,
            "name": call.name,
            "content": content,
        }

    def _answer(self, call: WrittenCall) -> Mapping[str, Any]:
        body = self._task.body
        names = {tool["function"]["name"]: tool["function"]["parameters"] for tool in self.tools}
        if call.name not in names:
            return {"error": f"there is no tool {call.name}; there are {', '.join(names)}"}
        if call.arguments is None:
            return {"error": "the arguments are no JSON object"}
        required = names[call.name]["required"]
        lacking = [key for key in required if not isinstance(call.arguments.get(key), str)]
        if lacking:
            return {"error": f"{lacking[0]} must be given, as text"}
        if call.name == body["sink"]:
            return {"status": "sent"}
        record_id = call.arguments[body["reader"]["key"]].strip()
        record = body["records"].get(record_id)
        return record or {"error": f"nothing has the id {record_id}"}
