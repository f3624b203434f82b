"""An episode to perturb, and what an edit of one may do.

Nothing is executed, so what an edited call returns is what a tool of that kind could have returned.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from records.tables.schemas import Row
from synth.rubrics.criteria import Criterion, Rubric
from synth.rubrics.episode import own_changes
from synth.rubrics.reading.messages import text_of
from synth.rubrics.reward import rubric_of
from synth.rubrics.telling import replies_in


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


def report_in(messages: Sequence[Mapping[str, Any]]) -> int | None:
    """Place of the reply that reports: the longest one since the last call, so that no farewell is
    taken for it. None where the agent said nothing since."""
    last = max((i for i, m in enumerate(messages) if m["role"] == "tool"), default=-1)
    since = [(len(text), i) for i, text in replies_in(messages) if i > last]
    return max(since)[1] if since else None


def reported_in(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the reply that reports says."""
    place = report_in(messages)
    return "" if place is None else text_of(messages[place])


def said_in(messages: Sequence[Mapping[str, Any]]) -> str:
    """All that the agent told the user, a reply a paragraph."""
    return "\n\n".join(text for _, text in replies_in(messages))


@dataclass
class EpisodeEdit:
    """An episode that is being edited. Its rows are copies, whose fields are replaced and never
    changed in themselves."""

    source: PassedEpisode
    rng: Random
    messages: list[Row] = field(init=False)
    calls: list[Row] = field(init=False)

    def __post_init__(self) -> None:
        self.messages = [dict(message) for message in self.source.trajectory["messages"]]
        self.calls = [dict(call) for call in self.source.calls]

    def criterion(self, kind: str, fits: Callable[[Criterion], bool] = bool) -> Criterion | None:
        return next((c for c in self.source.rubric.criteria if c.kind == kind and fits(c)), None)

    def writes(self) -> list[Row]:
        """The agent's calls that changed something."""
        mine = [c for c in self.calls if own_changes(c["state_diff"]) and not c["is_error"]]
        return [c for c in mine if c["actor"] == "agent"]

    def replies(self) -> list[int]:
        """Places of what the agent told the user."""
        return [place for place, _ in replies_in(self.messages)]

    def say(self, text: str, *, instead: bool = False) -> bool:
        """Add to the agent's last words, or replace them. False where it said nothing."""
        if not (places := self.replies()):
            return False
        last = self.messages[places[-1]]
        before = "" if instead else text_of(last).rstrip() + " "
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

    def answer(self, call: Row, observation: str, **values: Any) -> None:
        """Have the call return something else, in its row and in the messages."""
        call.update(values, observation=observation)
        for message in self.messages:
            if message.get("tool_call_id") == call["tool_call_id"]:
                message["content"] = observation


Perturbation = Callable[[EpisodeEdit], tuple[str | None, str]]
"""Edits an episode: the id of the standing criterion that must now fail, None where it has no place
for the failure, and what was done, in words."""
