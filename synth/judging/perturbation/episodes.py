"""An episode to perturb, and what an edit of one may do.

Nothing is executed, so what an edited call returns is what a tool of that kind could have returned.
"""

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from records.tables.schemas import Row
from synth.rubrics.criteria import Criterion, Rubric
from synth.rubrics.reward import rubric_of


@dataclass(frozen=True, slots=True)
class PassedEpisode:
    """A stored episode that passed by code."""

    trajectory: Row
    calls: Sequence[Row]
    """In call order."""
    task: Row
    tools: Sequence[Row]
    """What the agent was offered."""

    @property
    def rubric(self) -> Rubric:
        return rubric_of(self.task)


@dataclass
class EpisodeEdit:
    """An episode that is being edited."""

    source: PassedEpisode
    rng: Random
    messages: list[Row] = field(init=False)
    calls: list[Row] = field(init=False)

    def __post_init__(self) -> None:
        self.messages = copy.deepcopy(list(self.source.trajectory["messages"]))
        self.calls = copy.deepcopy(list(self.source.calls))

    def criterion(self, kind: str, fits: Callable[[Criterion], bool] = bool) -> Criterion | None:
        return next((c for c in self.source.rubric.criteria if c.kind == kind and fits(c)), None)

    def writes(self) -> list[Row]:
        """The agent's calls that changed something."""
        mine = [c for c in self.calls if c["state_diff"] and not c["is_error"]]
        return [c for c in mine if c["actor"] == "agent"]

    def replies(self) -> list[int]:
        """Places of what the agent told the user."""
        return [
            i
            for i, m in enumerate(self.messages)
            if m["role"] == "assistant" and not m.get("tool_calls")
        ]

    def say(self, text: str, *, instead: bool = False) -> bool:
        """Add to the agent's last words, or replace them. False where it said nothing."""
        if not (places := self.replies()):
            return False
        last = self.messages[places[-1]]
        before = "" if instead else (last.get("content") or "").rstrip() + " "
        last["content"] = before + text
        return True

    def remove(self, call: Row) -> None:
        """The call, its result, and the message that held nothing else."""
        self.calls.remove(call)
        wanted = call["tool_call_id"]
        kept = []
        for message in self.messages:
            if message.get("tool_call_id") == wanted:
                continue
            if asked := message.get("tool_calls"):
                rest = [c for c in asked if c["id"] != wanted]
                if not rest:
                    continue
                message["tool_calls"] = rest
            kept.append(message)
        self.messages = kept

    def rewrite(self, call: Row, **values: Any) -> None:
        """Change a call's row and what the messages show of it."""
        call.update(values)
        for message in self.messages:
            if message.get("tool_call_id") == call["tool_call_id"]:
                message["content"] = call["observation"]
            for asked in message.get("tool_calls") or ():
                if asked["id"] == call["tool_call_id"]:
                    shown = json.dumps(call["arguments"], ensure_ascii=False)
                    asked["function"] = {"name": call["name"], "arguments": shown}

    def add(self, name: str, arguments: Any, observation: Any, **values: Any) -> bool:
        """A further call before the agent's last words. False where there are none."""
        if not (places := self.replies()):
            return False
        call_id = f"call_{max((c['call_index'] for c in self.calls), default=-1) + 1}_more"
        text = json.dumps(observation, ensure_ascii=False)
        shown = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        asked = {"id": call_id, "type": "function", "function": shown}
        self.messages[places[-1] : places[-1]] = [
            {"role": "assistant", "content": "", "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": call_id, "name": name, "content": text},
        ]
        before = self.messages[: places[-1] + 1]
        row = {
            "call_index": len(self.calls),
            "turn": sum(message["role"] == "assistant" for message in before),
            "tool_call_id": call_id,
            "name": name,
            "arguments": arguments,
            "observation": text,
            "is_error": False,
            "policy_violations": [],
            "actor": "agent",
            "state_diff": [],
        }
        self.calls.append(row | values)
        return True


Perturbation = Callable[[EpisodeEdit], tuple[Criterion | None, str]]
"""Edits an episode: the criterion that must now fail, None where it has no place for the failure,
and what was done, in words."""
