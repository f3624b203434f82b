"""Calls that cannot be, as small models make them: of a tool that is not there, or incomplete. The
environment turns them down, and what follows shows how they are put right."""

import json
import re
from typing import Any

from offline_llm.reading.conversation import UserGoal
from offline_llm.reading.filling import Words, fill
from offline_llm.reading.toolbox import OfferedTool
from offline_llm.roles.planning import NextStep
from offline_llm.server.response import OfflineAnswer
from offline_llm.settings.mistakes import Slips
from offline_llm.settings.rates import Clumsiness

BEFORE = ("call", "ask", "no_tool")
"""Steps that such a call may come before."""

_LAST_WORD = re.compile(r"(?<=[a-z0-9])(?:[_.\-/][A-Za-z0-9]+|[A-Z][a-z0-9]*)$")
"""With what joins it to the name: `_patient`, `Patient`."""


def astray(
    step: NextStep,
    user_goal: UserGoal,
    tools: list[OfferedTool],
    rates: Clumsiness | None,
    slips: Slips,
    today: str,
) -> OfflineAnswer | None:
    """Such a call, once for a user goal; the step itself comes after it."""
    where, goal, declared = str(user_goal.index), step.tool, {tool.name for tool in tools}
    if rates is None or step.kind not in BEFORE:
        return None
    if any(call.name not in declared or call.error for call in user_goal.calls):
        return None
    arguments = dict(step.calls[0][1]) if step.calls else {}
    if slips.draw("unknown_tool", where) < rates.unknown_tool and (
        name := _mixed_up(goal, tools, slips.draw("mixed_up", where))
    ):
        return _answer(name, arguments)
    if (
        goal
        and goal.required
        and slips.draw("leaves_out_argument", where) < rates.leaves_out_argument
    ):
        known = arguments or fill(goal, Words(user_goal.text, today), lookup=False)
        return _answer(goal.name, _incomplete(goal, known, slips.draw("incomplete", where)))
    return None


def _mixed_up(goal: OfferedTool | None, tools: list[OfferedTool], draw: float) -> str | None:
    """A name that no tool has: the goal's, or any tool's, with the last word of another's."""
    names = [
        _LAST_WORD.sub("", one.name) + ending.group()
        for one in ([goal] if goal else tools)
        for other in tools
        if (ending := _LAST_WORD.search(other.name))
    ]
    wrong = [name for name in names if name not in {tool.name for tool in tools}]
    return wrong[int(draw * len(wrong))] if wrong else None


def _incomplete(goal: OfferedTool, known: dict[str, Any], draw: float) -> dict[str, Any]:
    """The arguments without one that is required, unless one is missing already."""
    required = [p.name for p in goal.required]
    if any(name not in known for name in required):
        return known
    left_out = required[int(draw * len(required))]
    return {name: value for name, value in known.items() if name != left_out}


def _answer(name: str, arguments: dict[str, Any]) -> OfflineAnswer:
    return OfflineAnswer("", ((name, json.dumps(arguments, ensure_ascii=False)),))
