"""The agent's next step for one goal: calls to make, or what to say.

Nothing is remembered: the step follows from the tools, the words and the calls so far, so that
the agent recovers from an error by planning again with the error known.
"""

from typing import Any, NamedTuple

from offline_llm.reading.conversation import Dialogue, UserGoal
from offline_llm.reading.filling import Words, label_of
from offline_llm.reading.lookups import Known
from offline_llm.reading.matching import ranked
from offline_llm.reading.policy import Case, Rule, broken_rule
from offline_llm.reading.reckoning import reckoned
from offline_llm.reading.results import PastCall
from offline_llm.reading.toolbox import Param, Tool
from offline_llm.reading.unclear import readings, which
from offline_llm.roles.arguments import CallDraft, arguments_for
from offline_llm.roles.repair import next_wait, repaired

MAX_TRIES = 4
"""Calls with the same arguments when they fail for a passing reason: the first and 3 more."""
MAX_READS = 10
"""Look-ups for one goal."""
MAX_QUESTIONS = 3


class Action(NamedTuple):
    """What to do next. `kind`: call, look_up, ask, which, done, failed, refuse, no_tool, answer."""

    kind: str
    tool: Tool | None = None
    calls: tuple[tuple[Tool, dict[str, Any]], ...] = ()
    result: PastCall | None = None
    """The goal's call, for done and failed."""
    missing: tuple[Param, ...] = ()
    optional: tuple[Param, ...] = ()
    """What may be asked for in the same breath as what is missing."""
    choices: tuple[Any, ...] = ()
    rule: Rule | None = None
    unfound: tuple[str, ...] = ()
    """Labels of what could not be found, for failed."""
    words: str = ""


def next_step(goal: UserGoal, talk: Dialogue, tools: list[Tool], today: str) -> Action:
    words = Words(goal.text, today)
    if answer := reckoned(words):
        return Action("answer", words=answer)
    matches = ranked(words, tools)
    if not matches:
        several = () if goal.asked else tuple(readings(words.text, tools))
        return Action("which", words=which(several)) if len(several) > 1 else Action("no_tool")
    tool = matches[0]
    made = [call for call in goal.calls if call.name == tool.name]
    draft = arguments_for(tool, Known(tools, words, talk.calls), goal, talk)
    missing = draft.missing
    if made and not made[-1].error and not (tool.reads and _is_other(made[-1], draft, tool)):
        return Action("done", tool, result=made[-1])
    if made and made[-1].error and (step := next_wait(goal, talk, tools, made[-1], today)):
        return Action("look_up" if step[0].reads else "call", tool, (step,))
    if made and made[-1].error and (again := _after_error(tool, made, draft)):
        return again
    if draft.reads and len(goal.calls) - len(made) < MAX_READS:
        return Action("look_up", tool, tuple(draft.reads))
    if draft.reads:  # looked for in vain
        missing = [p for p in tool.required if p.name not in draft.values]
    case = Case.of(tool, draft.values, talk.calls, today)
    rule = broken_rule(case, tools, talk.system, complete=not missing)
    if rule:
        return Action("refuse", tool, rule=rule)
    if missing and (goal.unknown or len(goal.asked) >= MAX_QUESTIONS):
        return Action("failed", tool, unfound=tuple(label_of(p) for p in missing))
    if missing:
        ask = Action("ask", tool, missing=tuple(missing), choices=draft.choices)
        return ask._replace(optional=draft.optional)
    return Action("call", tool, ((tool, draft.values),))


def _is_other(call: PastCall, draft: CallDraft, tool: Tool) -> bool:
    """The goal's tool was called only on the way: with other values than are known now."""
    needed = {p.name for p in tool.params if p.required or not p.is_id}
    made = call.arguments
    other = any(made.get(k) != v for k, v in draft.values.items() if k in needed or k in made)
    return other and not draft.missing


def _after_error(tool: Tool, made: list[PastCall], draft: CallDraft) -> Action | None:
    """Try again, put right, or None to plan on; an error that says no for good is the outcome."""
    last = made[-1]
    if last.transient:
        if sum(call.arguments == last.arguments for call in made) < MAX_TRIES:
            return Action("call", tool, ((tool, last.arguments),))
        return Action("failed", tool, result=last)
    if len(made) <= MAX_TRIES and (
        (draft.values != last.arguments and (draft.values or draft.reads))
        or any(p.name not in last.arguments for p in tool.required)
    ):
        return None
    fixed = repaired(tool, last)
    if fixed is not None and all(call.arguments != fixed for call in made):
        return Action("call", tool, ((tool, fixed),))
    return Action("failed", tool, result=last)
