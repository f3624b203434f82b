"""What the agent does about a call that fails for now: it waits a while and tries again, as long
as its patience lasts, where the person speaks of waiting and a tool to wait with is at hand.
"""

import re
from typing import Any

from offline_llm.reading.conversation import Dialogue, UserGoal
from offline_llm.reading.filling import Words
from offline_llm.reading.lookups import Known
from offline_llm.reading.results import PastCall
from offline_llm.reading.toolbox import Param, Tool
from offline_llm.reading.words import stem
from offline_llm.roles.arguments import arguments_for

MAX_WAITS = 12
"""Waits for one goal before it is given up."""
MINUTES = 15
"""What one wait lasts, as far as its tool allows."""

_WAITS = re.compile(r"\b(?:wait(?:s|ing)?|as soon as|once)\b", re.IGNORECASE)
_VERBS = frozenset({stem("wait"), stem("watch")})


def next_wait(
    goal: UserGoal, talk: Dialogue, tools: list[Tool], failed: PastCall, today: str
) -> tuple[Tool, dict[str, Any]] | None:
    """The call after one that failed: a wait, the look-up that it takes, or, after a wait, the same
    call again. None where there is nothing to wait for or with, or no more patience."""
    waiting = next((tool for tool in tools if tool.verbs & _VERBS), None)
    if waiting is None or failed.transient or not _WAITS.search(goal.text):
        return None
    length = next((p for p in waiting.params if "minut" in p.name), None)
    if (
        length is None
        or sum(c.name == waiting.name and not c.error for c in goal.calls) >= MAX_WAITS
    ):
        return None
    last = goal.calls[-1]
    if last.name == waiting.name:
        again = next((tool for tool in tools if tool.name == failed.name), None)
        return (again, failed.arguments) if again and not last.error else None
    draft = arguments_for(waiting, Known(tools, Words(goal.text, today), talk.calls), goal, talk)
    missing = [p for p in draft.missing if p.name != length.name]
    if draft.reads:
        read = draft.reads[0]
        made = any(c.name == read.tool.name and c.arguments == read.arguments for c in goal.calls)
        return None if made else (read.tool, read.arguments)
    return None if missing else (waiting, draft.values | {length.name: _minutes(length)})


def _minutes(length: Param) -> int:
    least, most = length.schema.get("minimum", 1), length.schema.get("maximum", MINUTES)
    return max(int(least), min(int(most), MINUTES))
