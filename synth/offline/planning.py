"""The agent's next step for one wish: calls to make, or what to say.

Nothing is remembered: the step follows from the tools, the words and the calls so far, so that
the agent recovers from an error by planning again with the error known.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from synth.offline.conversation import Conversation, Wish
from synth.offline.filling import Words, fill, label_of
from synth.offline.lookups import Known, Read, Unknown, Value, resolve
from synth.offline.matching import Match, ranked
from synth.offline.policy import Rule, broken_rule
from synth.offline.repair import repaired
from synth.offline.results import Call, Item, items_of
from synth.offline.toolbox import Param, Tool

_REFERS = re.compile(
    r"\b(?:it|its|them|their|they|her|his|him|he|she|same|again|this one|that one|just)\b",
    re.IGNORECASE,
)
MAX_TRIES = 4
"""Calls with the same arguments when they fail for a passing reason: the first and 3 more."""
MAX_READS = 10
"""Look-ups for one wish."""


@dataclass(frozen=True)
class Step:
    """What to do next. `kind`: call, ask, done, failed, refuse or no_tool."""

    kind: str
    calls: tuple[tuple[Tool, dict[str, Any]], ...] = ()
    tool: Tool | None = None
    result: Call | None = None
    """The goal's call, for done and failed."""
    missing: tuple[Param, ...] = ()
    choices: tuple[Any, ...] = ()
    rule: Rule | None = None
    lookup: bool = False
    unfound: tuple[str, ...] = field(default=())
    """Labels of what could not be found, for failed."""


def next_step(wish: Wish, talk: Conversation, tools: list[Tool], today: str) -> Step:
    matches = ranked(wish.text, tools)
    if not matches:
        return Step("no_tool")
    tool = _goal(wish, matches)
    made = [call for call in wish.calls if call.name == tool.name]
    arguments, missing, reads, choices = _arguments(tool, wish, talk, tools, today)
    if made and not made[-1].error and not _is_lookup_still(tool, made[-1], arguments, missing):
        return Step("done", tool=tool, result=made[-1])
    if made and made[-1].error:
        again = _after_error(tool, made, arguments)
        if again:
            return again
    num_reads = len([c for c in wish.calls if c.name != tool.name])
    if reads and num_reads < MAX_READS:
        return Step("call", tuple((r.tool, r.arguments) for r in reads), tool=tool, lookup=True)
    about = _about(arguments, talk)
    rule = broken_rule(tool, arguments, about, system=talk.system, today=today, text=wish.text)
    if rule:
        return Step("refuse", tool=tool, rule=rule)
    if missing:
        if wish.unknown or len(wish.asked) >= 3:
            return Step("failed", tool=tool, unfound=tuple(label_of(p) for p in missing))
        return Step("ask", tool=tool, missing=tuple(missing), choices=choices)
    if made and made[-1].error and made[-1].arguments == arguments:
        return Step("failed", tool=tool, result=made[-1])
    return Step("call", ((tool, arguments),), tool=tool)


def _goal(wish: Wish, matches: list[Match]) -> Tool:
    return matches[0].tool


def _is_lookup_still(
    tool: Tool, call: Call, arguments: dict[str, Any], missing: list[Param]
) -> bool:
    """The goal's tool was called only on the way: with other values than are known now."""
    needed = {p.name for p in tool.params if p.required or not p.is_id}
    made = call.arguments or {}
    other = any(made.get(k) != v for k, v in arguments.items() if k in needed or k in made)
    return tool.reads and not missing and other


def _arguments(
    tool: Tool, wish: Wish, talk: Conversation, tools: list[Tool], today: str
) -> tuple[dict[str, Any], list[Param], list[Read], tuple[Any, ...]]:
    """Arguments as far as they are known, what is missing, and the reads that may find it."""
    known = Known(tools, Words(wish.text, today), talk.calls)
    arguments = fill(tool, known.words, lookup=False)
    missing: list[Param] = []
    reads: list[Read] = []
    choices: tuple[Any, ...] = ()
    for param in tool.params:
        if param.name in arguments or not (param.required or _spoken_of(param, wish)):
            continue
        step = resolve(param, tool, known, arguments) if param.is_id else Unknown()
        if isinstance(step, Value):
            arguments[param.name] = [step.value] if param.kind == "array" else step.value
        elif isinstance(step, Read):
            reads.append(step)
        elif (carried := _carried(param, talk, wish)) is not None:
            arguments[param.name] = carried
        elif param.required:
            missing.append(param)
            choices = choices or step.choices
    unique = list({(r.tool.name, str(r.arguments)): r for r in reads}.values())
    return arguments, missing, unique, choices


def _spoken_of(param: Param, wish: Wish) -> bool:
    """An optional identifier is looked up only when the wish names what it identifies."""
    words = Words(wish.text, "")
    near = {word for m in words.mentions for word in m.left[-3:]}
    return param.is_id and bool(param.nouns & near)


def _carried(param: Param, talk: Conversation, wish: Wish) -> Any:
    """A value that holds for the whole conversation: one that the system prompt or an earlier
    wish gave for the same parameter, or the newest identifier of that kind that a call made."""
    refers = wish.unknown or bool(_REFERS.search(wish.text))
    for call in reversed(talk.calls):
        if not call.error and param.name in (call.arguments or {}):
            if param.is_id and call not in wish.calls and wish.index > 0 and refers:
                return (call.arguments or {})[param.name]
            if not param.is_id and param.name_words & {"path", "repo", "repositori", "directori"}:
                return (call.arguments or {})[param.name]
    for text in (*(t for w in [wish] for t in w.texts), talk.system):
        spoken = fill(_only(param), Words(text, ""), lookup=True)
        if param.name in spoken and _is_place(param):
            return spoken[param.name]
    return param.schema.get("default")


def _is_place(param: Param) -> bool:
    return bool(param.name_words & {"path", "repo", "repositori", "directori", "timezon", "zon"})


def _only(param: Param) -> Tool:
    """A tool with just this parameter, to read one value out of a text."""
    none: frozenset[str] = frozenset()
    single = replace(param, required=True)
    return Tool("", "", (single,), none, (), none, none, none, False)


def _about(arguments: dict[str, Any], talk: Conversation) -> list[Item]:
    """Newest rows whose own identifier is among the arguments, so that rules can be checked."""
    values = {str(v) for v in arguments.values() if isinstance(v, str | int)}
    rows: dict[str, Item] = {}
    for call in talk.calls:
        for item in items_of(call):
            first = next(iter(item.fields.values()), None)
            if str(first) in values:
                rows[str(first)] = item
    return list(rows.values())


def _after_error(tool: Tool, made: list[Call], arguments: dict[str, Any]) -> Step | None:
    """Try again, put right, or None to plan on; an error that says no for good is the outcome."""
    last = made[-1]
    same = [call for call in made if call.arguments == last.arguments]
    if last.transient:
        if len(same) < MAX_TRIES:
            return Step("call", ((tool, last.arguments or arguments),), tool=tool)
        return Step("failed", tool=tool, result=last)
    if arguments and arguments != last.arguments:
        return None
    fixed = repaired(tool, last)
    if fixed is not None and all(call.arguments != fixed for call in made):
        return Step("call", ((tool, fixed),), tool=tool)
    return Step("failed", tool=tool, result=last)
