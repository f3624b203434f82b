"""The repair round: a tool and the sentences that say what is wrong with it, put right by them."""

import re
from copy import deepcopy
from difflib import get_close_matches
from typing import Any

from offline_llm.tools.draft import REFUSES, ToolWire

_UNREAD = re.compile(r"params\.([a-z0-9_]+): nothing in the semantics reads it")
_UNKNOWN = re.compile(r"semantics\[(\d+)\].*? has no field '(\w+)'; it has ([\w, ]+)")
_NEVER = re.compile(r"semantics\[(\d+)\] (\w+) never happened")
_IDLE = re.compile(r"without semantics\[(\d+)\] \(require (\w+)\)")
_IDLE_SET = re.compile(r"without semantics\[(\d+)\]\.set\.(\w+)")
_IDLE_TERM = re.compile(r"semantics\[(\d+)\]\.where without (['\"])(.*)\2 it does the same")


def mended(entry: dict[str, Any]) -> ToolWire | None:
    """The tool without what does nothing; None where the sentences say nothing to go by."""
    tool = entry.get("tool")
    if not isinstance(tool, dict):
        return None
    tool = deepcopy(tool)
    changed = False
    gone: set[int] = set()
    for problem in map(str, entry.get("problems") or ()):
        if found := _UNREAD.search(problem):
            tool["params"] = [p for p in tool["params"] if p["name"] != found[1]]
            changed = True
        elif found := _UNKNOWN.search(problem):
            changed |= _respelt(tool, int(found[1]), found[2], found[3])
        elif found := (_NEVER.search(problem) or _IDLE.search(problem)):
            gone.add(int(found[1]))
        elif found := _IDLE_SET.search(problem):
            changed |= _without_set(tool, int(found[1]), found[2])
        elif found := _IDLE_TERM.search(problem):
            changed |= _without_term(tool, int(found[1]), found[3])
    requires = [i for i, s in enumerate(tool["semantics"]) if s["op"] == "require"]
    dropped = [i for i in requires if i in gone]
    if not (changed or dropped):
        return None
    tool["description"] = _less_refusing(tool["description"], requires, dropped)
    tool["semantics"] = [s for i, s in enumerate(tool["semantics"]) if i not in dropped]
    return tool


def _respelt(tool: ToolWire, index: int, wrong: str, known: str) -> bool:
    near = get_close_matches(wrong, known.split(", "), n=1)
    step = tool["semantics"][index] if index < len(tool["semantics"]) else {}
    for entry in [*step.get("set", ()), *step.get("value", ())] if near else ():
        entry["value"] = re.sub(rf"\b{wrong}\b", near[0], entry["value"])
    return bool(near)


def _without_set(tool: ToolWire, index: int, field: str) -> bool:
    step = tool["semantics"][index]
    left = [entry for entry in step.get("set", ()) if entry["name"] != field]
    if not left:
        return False
    step["set"] = left
    return True


def _without_term(tool: ToolWire, index: int, term: str) -> bool:
    """A term of a filter that reads no argument: without it the parameters stay in use."""
    step = tool["semantics"][index]
    where = str(step.get("where", ""))
    shown = term.replace("\\'", "'")
    if "args." in shown or shown not in where:
        return False
    for text in (f" and ({shown})", f" and {shown}", f"({shown}) and ", f"{shown} and "):
        if text in where:
            step["where"] = where.replace(text, "", 1)
            return True
    return False


def _less_refusing(description: str, requires: list[int], dropped: list[int]) -> str:
    """The description without the clauses of preconditions that are gone."""
    head, sign, tail = description.partition(REFUSES)
    clauses = tail.rstrip(".").split("; ") if sign else []
    if len(clauses) != len(requires):
        return description
    left = [c for c, i in zip(clauses, requires, strict=True) if i not in dropped]
    return f"{head}{sign}{'; '.join(left)}." if left else head.strip()
