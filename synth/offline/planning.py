"""The agent's next step for one wish: calls to make, or what to say.

Nothing is remembered: the step follows from the tools, the words and the calls so far, so that
the agent recovers from an error by planning again with the error known.
"""

from dataclasses import dataclass, field
from typing import Any

from synth.offline.arguments import arguments_for
from synth.offline.batch import Planned, batch_of
from synth.offline.conversation import Conversation, Wish
from synth.offline.filling import Words, label_of
from synth.offline.lookups import Known
from synth.offline.matching import ranked
from synth.offline.policy import Rule, broken_rule
from synth.offline.reckoning import reckoned
from synth.offline.repair import repaired
from synth.offline.results import Call, Item, items_of
from synth.offline.toolbox import Param, Tool

MAX_TRIES = 4
"""Calls with the same arguments when they fail for a passing reason: the first and 3 more."""
MAX_READS = 10
"""Look-ups for one wish."""


@dataclass(frozen=True)
class Step:
    """What to do next. `kind`: call, ask, done, failed, refuse, no_tool, or answer in `words`."""

    kind: str
    calls: tuple[tuple[Tool, dict[str, Any]], ...] = ()
    tool: Tool | None = None
    results: tuple[Call, ...] = ()
    """The calls that did it, for done, or that failed."""
    missing: tuple[Param, ...] = ()
    optional: tuple[Param, ...] = ()
    """What may be asked for in the same breath as what is missing."""
    choices: tuple[Any, ...] = ()
    rule: Rule | None = None
    lookup: bool = False
    unfound: tuple[str, ...] = field(default=())
    """Labels of what could not be found, for failed."""
    words: str = ""


def next_step(wish: Wish, talk: Conversation, tools: list[Tool], today: str) -> Step:
    if answer := reckoned(Words(wish.text, today)):
        return Step("answer", words=answer)
    matches = ranked(wish.text, tools)
    if not matches:
        return Step("no_tool")
    tool = matches[0].tool
    made = [call for call in wish.calls if call.name == tool.name]
    known = Known(tools, Words(wish.text, today), talk.calls)
    draft = arguments_for(tool, known, wish, talk)
    arguments, missing, reads = draft.values, draft.missing, draft.reads
    batch = (
        [(tool, arguments)] if missing or reads else batch_of(tool, arguments, known.words, tools)
    )
    if len(batch) > 1:
        return _through(batch, tool, wish)
    if made and not made[-1].error and not _is_lookup_still(tool, made[-1], arguments, missing):
        return Step("done", tool=tool, results=(made[-1],))
    if made and made[-1].error:
        again = _after_error(tool, made, arguments)
        if again:
            return again
    num_reads = len([c for c in wish.calls if c.name != tool.name])
    if reads and num_reads < MAX_READS:
        return Step("call", tuple((r.tool, r.arguments) for r in reads), tool=tool, lookup=True)
    if reads:  # looked for in vain
        missing = [p for p in tool.required if p.name not in arguments]
    about = _about(arguments, talk)
    rule = broken_rule(tool, tools, arguments, about, system=talk.system, today=today)
    if rule:
        return Step("refuse", tool=tool, rule=rule)
    if missing:
        if wish.unknown or len(wish.asked) >= 3:
            return Step("failed", tool=tool, unfound=tuple(label_of(p) for p in missing))
        return Step(
            "ask", tool=tool, missing=tuple(missing), optional=draft.optional, choices=draft.choices
        )
    if made and made[-1].error and made[-1].arguments == arguments:
        return Step("failed", tool=tool, results=(made[-1],))
    return Step("call", ((tool, arguments),), tool=tool)


def _through(batch: list[Planned], goal: Tool, wish: Wish) -> Step:
    """One call after the other, reads together; the first that fails for good ends it."""
    open_calls: list[Planned] = []
    results: list[Call] = []
    for tool, arguments in batch:
        made = [c for c in wish.calls if c.name == tool.name and c.arguments == arguments]
        if made and not made[-1].error:
            results.append(made[-1])
        elif made and not (made[-1].transient and len(made) < MAX_TRIES):
            return Step("failed", tool=tool, results=(made[-1],))
        else:
            open_calls.append((tool, arguments))
    if not open_calls:
        return Step("done", tool=goal, results=tuple(results))
    together = all(tool.reads for tool, _ in open_calls)
    return Step("call", tuple(open_calls if together else open_calls[:1]), tool=goal)


def _is_lookup_still(
    tool: Tool, call: Call, arguments: dict[str, Any], missing: list[Param]
) -> bool:
    """The goal's tool was called only on the way: with other values than are known now."""
    needed = {p.name for p in tool.params if p.required or not p.is_id}
    made = call.arguments or {}
    other = any(made.get(k) != v for k, v in arguments.items() if k in needed or k in made)
    return tool.reads and not missing and other


def _about(arguments: dict[str, Any], talk: Conversation) -> list[Item]:
    """The newest rows that the arguments identify, and those that these refer to."""
    rows = {item.key: item for call in talk.calls for item in items_of(call)}
    values = [v for v in arguments.values() if isinstance(v, str | int)]
    direct = [rows[str(value)] for value in values if str(value) in rows]
    further = [rows[str(v)] for row in direct for v in row.fields.values() if str(v) in rows]
    return list({id(row): row for row in direct + further}.values())


def _after_error(tool: Tool, made: list[Call], arguments: dict[str, Any]) -> Step | None:
    """Try again, put right, or None to plan on; an error that says no for good is the outcome."""
    last = made[-1]
    same = [call for call in made if call.arguments == last.arguments]
    if last.transient:
        if len(same) < MAX_TRIES:
            return Step("call", ((tool, last.arguments or arguments),), tool=tool)
        return Step("failed", tool=tool, results=(last,))
    if arguments and arguments != last.arguments:
        return None
    fixed = repaired(tool, last)
    if fixed is not None and all(call.arguments != fixed for call in made):
        return Step("call", ((tool, fixed),), tool=tool)
    return Step("failed", tool=tool, results=(last,))
