"""The outer form of a conversation: how its messages follow one another, and whether its calls fit.

Of an episode that was played here the form is known; one that was made elsewhere has to show it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from synth.rubrics.criteria import FitCheck, TurnsCheck
from synth.rubrics.episode import Episode, Verdict

ROLES = ("system", "developer", "user", "assistant", "tool")

UNKNOWN_TOOL = "unknown_tool"
INVALID_ARGUMENTS = "invalid_arguments"
UNFIT = (UNKNOWN_TOOL, INVALID_ARGUMENTS)
"""Error codes of calls that name no tool that was offered, or do not fit its schema."""

MOST_NAMED = 3
"""Calls that the evidence names."""


def what_is_wrong(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Why no trainer could take the conversation; None when one can.

    It must end with the agent's words, the user must never speak twice in a row, and each call must
    be answered, once, before anything else is said.
    """
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES:
            return f"has message {index} of role {role!r}; allowed: {', '.join(ROLES)}"
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                return f"has a tool result, message {index}, that answers no open call"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"goes on at message {index} with {len(waiting)} calls unanswered"
        if role == "user" and index and messages[index - 1].get("role") == "user":
            return f"has two user messages in a row, the second at {index}"
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        waiting = set(calls)
        if len(waiting) < len(calls):
            return f"has several calls of one id in message {index}"
    if not messages or messages[-1]["role"] != "assistant" or waiting:
        return "does not end with words of the agent"
    return None


def check_turns(_: TurnsCheck, episode: Episode) -> Verdict:
    fault = what_is_wrong(episode.messages)
    expected = "Expected every call to be answered once, before anything else is said"
    seen = "seen" if fault is None else f"the conversation {fault}"
    return Verdict(fault is None, float(fault is None), f"{expected}; {seen}.")


def check_fit(_: FitCheck, episode: Episode) -> Verdict:
    """A call that does not fit and was refused is a mistake that was met as one: it is no fault."""
    accepted = [
        f"call {index} of {call.tool}: {call.error_code}"
        for index, call in enumerate(episode.calls)
        if call.actor == "agent" and call.error_code in UNFIT and not call.is_error
    ]
    expected = "Expected every call that was carried out to name an offered tool and fit its schema"
    if not accepted:
        return Verdict(True, 1.0, f"{expected}; seen {len(episode.calls)} calls.")
    more = len(accepted) - MOST_NAMED
    seen = [*accepted[:MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
    return Verdict(False, 0.0, f"{expected}; {'; '.join(seen)}.")
