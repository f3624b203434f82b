"""Calls that cannot be, as small models make them: of a tool that is not there, or incomplete. The
environment turns them down, and what follows shows how they are put right."""

import json
import re
from typing import Any

from offline_llm.reading.conversation import UserGoal
from offline_llm.reading.filling import Words, fill
from offline_llm.reading.toolbox import Tool
from offline_llm.roles.planning import Action
from offline_llm.server.response import Reply
from offline_llm.settings.mistakes import Slips
from offline_llm.settings.rates import Clumsiness

BEFORE = ("call", "ask", "no_tool")
"""Steps that such a call may come before."""

_LAST_WORD = re.compile(r"(?<=[a-z0-9])(?:[_.\-/][A-Za-z0-9]+|[A-Z][a-z0-9]*)$")
"""With what joins it to the name: `_patient`, `Patient`."""


def astray(
    step: Action, goal: UserGoal, tools: list[Tool], odds: Clumsiness | None, slips: Slips, day: str
) -> Reply | None:
    """Such a call, once for a goal; the step itself comes after it."""
    where, target, declared = str(goal.index), step.tool, {tool.name for tool in tools}
    if odds is None or step.kind not in BEFORE:
        return None
    if any(call.name not in declared or call.error for call in goal.calls):
        return None
    arguments = dict(step.calls[0][1]) if step.calls else {}
    if slips.draw("unknown_tool", where) < odds.unknown_tool and (
        name := _mixed_up(target, tools, slips.draw("mixed_up", where))
    ):
        return _answer(name, arguments)
    if (
        target
        and target.required
        and slips.draw("leaves_out_argument", where) < odds.leaves_out_argument
    ):
        known = arguments or fill(target, Words(goal.text, day), lookup=False)
        return _answer(target.name, _incomplete(target, known, slips.draw("incomplete", where)))
    return None


def _mixed_up(target: Tool | None, tools: list[Tool], draw: float) -> str | None:
    """A name that no tool has: the goal's, or any tool's, with the last word of another's."""
    names = [
        _LAST_WORD.sub("", one.name) + ending.group()
        for one in ([target] if target else tools)
        for other in tools
        if (ending := _LAST_WORD.search(other.name))
    ]
    wrong = [name for name in names if name not in {tool.name for tool in tools}]
    return wrong[int(draw * len(wrong))] if wrong else None


def _incomplete(target: Tool, known: dict[str, Any], draw: float) -> dict[str, Any]:
    """The arguments without one that is required, unless one is missing already."""
    required = [p.name for p in target.required]
    if any(name not in known for name in required):
        return known
    left_out = required[int(draw * len(required))]
    return {name: value for name, value in known.items() if name != left_out}


def _answer(name: str, arguments: dict[str, Any]) -> Reply:
    return Reply("", ((name, json.dumps(arguments, ensure_ascii=False)),))
