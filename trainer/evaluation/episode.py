"""One episode of an evaluation: what is asked in it, and what is counted of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from records.digest import canonical_json
from records.seeds import seed_of
from records.tables.schemas import Row
from synth.episode.environment import OUTSIDE, EnvironmentStep, EpisodeEnvironment
from synth.episode.tools.calls import FORMAT_ERRORS
from synth.rubrics.reward import decide_by_code, rubric_of
from trainer.data.chat import AssistantAnswer
from trainer.evaluation.scores import EpisodeScore
from trainer.inference.policies import Policy, PolicyRequest, num_calls


class Chosen(NamedTuple):
    task: Row
    attempt: int

    @property
    def item(self) -> str:
        """Seeds hang on it."""
        return f"{self.task['task_id']}-{self.attempt}"


@dataclass
class PlayedEpisode:
    chosen: Chosen
    env: EpisodeEnvironment
    tools: Sequence[Mapping[str, Any]]
    prompt_tokens: int = 0
    broken: int = 0
    """Answers that did not keep the template."""
    last: EnvironmentStep | None = None

    def asked(self, policy: Policy) -> PolicyRequest:
        state = self.env.state
        asked = PolicyRequest(
            state.conversation, self.tools, seed_of(self.chosen.item, "answer", state.turn)
        )
        if not self.prompt_tokens:
            self.prompt_tokens = policy.prompt_tokens(asked)
        return asked

    async def step(self, answer: AssistantAnswer) -> None:
        """Play the answer. One that breaks the template counts as a call that is not valid, unless
        a call of it counts so already."""
        self.last = await self.env.step(_message(answer, num_calls(self.env.state.messages)))
        refused = any(r.error_code in FORMAT_ERRORS for r in self.last.info["calls"])
        self.broken += answer.broken is not None and not refused

    def counted(self) -> EpisodeScore:
        state, task = self.env.state, self.chosen.task
        assert state.reason is not None
        records = [r for r in state.caller.records if r.actor == "agent"]
        valid = [r for r in records if r.error_code not in FORMAT_ERRORS]
        wanted = Counter(_spelt(c["tool"], c["arguments"]) for c in task["reference_plan"])
        made = Counter(_spelt(r.name, r.arguments) for r in valid)
        return EpisodeScore(
            task_id=task["task_id"],
            split=task["split"],
            solvable=task["solvable"],
            ended=state.reason,
            success=self._succeeded(),
            reward=self.last.reward if self.last else 0.0,
            calls=len(records) + self.broken,
            valid_calls=len(valid),
            wanted_calls=wanted.total(),
            exact_calls=(wanted & made).total(),
            breaches=sum(bool(r.policy_violations) for r in records),
            turns=state.turn,
            prompt_tokens=self.prompt_tokens,
        )

    def _succeeded(self) -> bool:
        if self.env.state.reason in OUTSIDE or self.last is None:
            return False
        verdicts = self.last.info.get("verdicts") or {}
        return decide_by_code(rubric_of(self.chosen.task), verdicts).accepted

    def told(self) -> dict[str, Any]:
        state = self.env.state
        return {
            "task_id": self.chosen.task["task_id"],
            "split": self.chosen.task["split"],
            "ended": state.reason,
            "success": self._succeeded(),
            "tools": [tool["function"]["name"] for tool in self.tools],
            "messages": state.messages,
        }


async def begun(env: EpisodeEnvironment, chosen: Chosen) -> PlayedEpisode:
    """The episode of a task at its start; its draws hang on `chosen.item`."""
    _, info = await env.reset(chosen.task, seed_of(chosen.item, "episode"))
    return PlayedEpisode(chosen, env, info["tools"])


def _message(answer: AssistantAnswer, before: int) -> dict[str, Any]:
    """Calls are numbered over the conversation, as the template has them. Reasoning stays with its
    answer: a turn that goes on with results of calls is shown it."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.content}
    if answer.reasoning_content:
        message["reasoning_content"] = answer.reasoning_content
    if answer.tool_calls:
        message["tool_calls"] = [
            {"id": f"call_{before + n}", "type": "function", "function": call["function"]}
            for n, call in enumerate(answer.tool_calls)
        ]
    return message


def _spelt(tool: str, arguments: Any) -> str:
    return canonical_json([tool, arguments])
