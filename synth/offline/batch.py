"""Wishes that take more than one call: the same tool for several values, or a second tool.

Only for goals whose arguments are all said and none looked up; there, what was said beside the
arguments describes what is looked for.
"""

from typing import Any

from synth.offline.filling import PLACES, Words, assign, typed
from synth.offline.reading import Mention
from synth.offline.toolbox import Tool

Planned = tuple[Tool, dict[str, Any]]


def batch_of(goal: Tool, values: dict[str, Any], words: Words, tools: list[Tool]) -> list[Planned]:
    """All calls that the wish takes, the goal's own among them, in the order to make them."""
    if any(param.is_id or param.parts for param in goal.params):
        return [(goal, values)]
    used = assign(goal, words, lookup=False).used
    free = [m for m in words.mentions if not any(m in taken for taken in used.values())]
    repeated = _repeated(goal, values, used, free)
    said = {(m.text, m.left) for taken in used.values() for m in taken}
    free = [m for m in free if (m.text, m.left) not in said]
    gone = [str(v) for _, other in repeated for v in other.values() if v not in values.values()]
    second = _second(goal, values, words.only(m for m in free if m.text not in gone), tools)
    return [*second, (goal, values), *repeated]


def _repeated(
    goal: Tool, values: dict[str, Any], used: dict[str, list[Mention]], free: list[Mention]
) -> list[Planned]:
    """The goal again for each further value of the kind and label of one that it took."""
    calls: list[Planned] = []
    for mention in free:
        known = [str(v) for _, other in [(goal, values), *calls] for v in other.values()]
        if mention.text in known:
            continue
        for param in reversed(goal.params):
            like = [
                m
                for m in used.get(param.name, [])
                if (m.kind, m.left) == (mention.kind, mention.left)
            ]
            if like and param.kind == "string":
                calls.append((goal, values | {param.name: typed(param, mention)}))
                break
    return calls


def _second(goal: Tool, values: dict[str, Any], free: Words, tools: list[Tool]) -> list[Planned]:
    """Another tool whose required parameters the labels of the left-over values name."""
    best: tuple[int, list[Planned]] = (0, [])
    for tool in tools:
        filled = assign(tool, free, lookup=False)
        labelled = [
            name
            for name, taken in filled.used.items()
            if any(set(m.left) & _words_of(tool, name) for m in taken)
        ]
        places = [p.name for p in tool.params if p.name in values and p.name_words & PLACES]
        arguments = {name: values[name] for name in places} | filled.values
        complete = all(p.name in arguments for p in tool.required)
        if tool.name != goal.name and complete and len(labelled) > best[0]:
            best = (len(labelled), [(tool, arguments)])
    return best[1]


def _words_of(tool: Tool, name: str) -> frozenset[str]:
    param = tool.param(name)
    return param.name_words - {"from", "to"} if param else frozenset()
