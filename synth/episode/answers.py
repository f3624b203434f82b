"""Answers of models as messages of an episode, and the tokens that they took."""

from synth.episode.endings import FILTERED
from synth.llm.client import Completion
from synth.llm.wire.request import Message


class EpisodeUsage:
    """Reported tokens by role; an answer from the cache counts like the one that was paid."""

    def __init__(self, *roles: str) -> None:
        """`roles` are told of also where they were never asked."""
        self.by_role = {role: {"prompt": 0, "completion": 0} for role in roles}

    def add(self, role: str, answer: Completion) -> None:
        used = self.by_role.setdefault(role, {"prompt": 0, "completion": 0})
        used["prompt"] += answer.prompt_tokens
        used["completion"] += answer.completion_tokens


def assistant_message(completion: Completion, *, num_calls: int, prefix: str = "call") -> Message:
    """The answer as a chat message; `num_calls` is how many calls came before it, of those whose
    ids begin with `prefix`.

    Servers number calls in their own ways, some give every call the same id: ours count up over
    the trajectory. Arguments stay the text that the model wrote.
    """
    message: Message = {"role": "assistant", "content": completion.content}
    if completion.reasoning:
        message["reasoning_content"] = completion.reasoning
    if completion.finish_reason == "content_filter":
        message["refusal"] = message["content"] or FILTERED
    if completion.tool_calls:
        message["tool_calls"] = [
            {
                "id": f"{prefix}_{num_calls + i}",
                "type": "function",
                "function": call["function"],
            }
            for i, call in enumerate(completion.tool_calls)
        ]
    return message
