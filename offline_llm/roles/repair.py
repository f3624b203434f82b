"""What the agent does about a call that failed. Arguments are put right by what the error says: a
value of the allowed list, another spelling. Where the person speaks of waiting and a tool to wait
with is at hand, the agent waits a while and tries again, as long as its patience lasts.
"""

import re
from difflib import get_close_matches
from typing import Any

from offline_llm.reading.conversation import Dialogue, UserGoal
from offline_llm.reading.filling import Words
from offline_llm.reading.lookups import Known
from offline_llm.reading.results import PastCall
from offline_llm.reading.toolbox import Param, Tool
from offline_llm.reading.words import plain, stem
from offline_llm.roles.arguments import arguments_for

MAX_WAITS = 12
"""Waits for one goal before it is given up."""
MINUTES = 15
"""What one wait lasts, as far as its tool allows."""

_WAITS = re.compile(r"\b(?:wait(?:s|ing)?|as soon as|once)\b", re.IGNORECASE)
_VERBS = frozenset({stem("wait"), stem("watch")})
_LISTED = re.compile(r"(?:one of|allowed|must be|either|expected|not)\b[^\[({]*[\[({]([^\])}]+)")
_DAY_FIRST = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4})")


def repaired(tool: Tool, call: PastCall) -> dict[str, Any] | None:
    """The same call with the blamed argument put right, or None when nothing better is known."""
    arguments = dict(call.arguments)
    blamed = [p for p in tool.params if p.name in arguments and _is_blamed(p, arguments, call)]
    for param in blamed or [p for p in tool.params if p.name in arguments]:
        better = _better(param, arguments[param.name], call.error)
        if better is not None and better != arguments[param.name]:
            return arguments | {param.name: better}
    extra = [name for name in arguments if not tool.param(name)]
    return {k: v for k, v in arguments.items() if k not in extra} if extra else None


def _is_blamed(param: Param, arguments: dict[str, Any], call: PastCall) -> bool:
    value = str(arguments[param.name])
    return bool(re.search(rf"\b{re.escape(param.name)}\b", call.error)) or (
        len(value) > 1 and value in call.error
    )


def _better(param: Param, value: Any, error: str) -> Any:
    allowed = [str(v) for v in param.enum] or _listed(error)
    if allowed and isinstance(value, str):
        near = get_close_matches(plain(value).lower(), [plain(a).lower() for a in allowed], n=1)
        return next((a for a in allowed if near and plain(a).lower() == near[0]), None)
    if param.kind in ("number", "integer") and isinstance(value, str):
        digits = re.search(r"-?\d+(?:\.\d+)?", value)
        number = float(digits.group()) if digits else None
        return int(number) if number is not None and number.is_integer() else number
    if param.kind == "array" and not isinstance(value, list):
        return [value]
    if param.kind == "string" and isinstance(value, str) and (day := _DAY_FIRST.search(value)):
        return f"{day.group(3)}-{int(day.group(2)):02d}-{int(day.group(1)):02d}"
    if param.kind == "string" and isinstance(value, int | float):
        return str(value)
    return None


def _listed(error: str) -> list[str]:
    found = _LISTED.search(error)
    values = re.split(r"[,|]|\bor\b", found.group(1)) if found else []
    return [value.strip(" '\"") for value in values]


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
