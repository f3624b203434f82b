"""Recovery: whether an agent got over what went wrong with a call. Defined here and nowhere else.

Something went wrong with a call that returned an error, or that an outcome was injected into. It
was recovered from when a later call of the same tool in the same trajectory went well: without an
error, and where what went wrong was no error (an empty, partial or stale answer), without anything
injected either. Where permission was denied, saying so to the user in plain words is as good: there
the next words to the user must say no.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

DENIED = "permission_denied"

_REFUSAL = re.compile(
    r"\b(?:cannot|can't|can not|unable|not able|not allowed|may not|no way to|not possible|"
    r"impossible|sorry|won't|will not|refuse)\b",
    re.IGNORECASE,
)


def recoveries(
    calls: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]]
) -> list[bool | None]:
    """For each call of a trajectory, in call order: None where nothing went wrong with it. Calls of
    the user's own tools are nobody's to recover from."""
    found: list[bool | None] = []
    for index, call in enumerate(calls):
        if call["actor"] != "agent" or not (call["is_error"] or call["injected_outcome"]):
            found.append(None)
            continue
        later = [c for c in calls[index + 1 :] if c["name"] == call["name"]]
        later = [c for c in later if c["actor"] == "agent" and not c["is_error"]]
        well = later if call["is_error"] else [c for c in later if not c["injected_outcome"]]
        denied = DENIED in (call["injected_outcome"], call["error_code"])
        found.append(bool(well) or (denied and _owned_up(call, messages)))
    return found


def _owned_up(call: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the first words to the user after the call say no."""
    turn = 0
    for message in messages:
        if message["role"] != "assistant":
            continue
        turn += 1
        if turn > call["turn"] and not message.get("tool_calls"):
            return bool(_REFUSAL.search(message.get("content") or ""))
    return False
