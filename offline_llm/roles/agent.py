"""The agent: one assistant message from the conversation and the tools, and nothing else.

It plans by rule (see `planning`), so it works on tools it was not written for as far as their
names, descriptions and schemas speak plainly. On top of that it errs at declared rates.
"""

import json
from typing import Any

from offline_llm.code.agent import kit_of, mend
from offline_llm.reading.conversation import Dialogue, UserGoal, is_parting, is_small_talk, read
from offline_llm.reading.filling import Words, fill
from offline_llm.reading.reading import today_of
from offline_llm.reading.toolbox import Tool, toolbox
from offline_llm.reading.unclear import OPEN
from offline_llm.roles import replies
from offline_llm.roles.clumsy import astray
from offline_llm.roles.dual_control import plea
from offline_llm.roles.planning import Action, next_step
from offline_llm.server.request import ChatRequest
from offline_llm.server.response import Reply
from offline_llm.server.sampling import sample
from offline_llm.settings.mistakes import Slips
from offline_llm.settings.settings import OfflineSettings


def agent(request: ChatRequest, settings: OfflineSettings) -> Reply:
    factor = settings.models.get(request.model, 1.0)
    slips = Slips(settings.mistakes, factor=factor, talk=request.talk)
    clumsy = settings.clumsiness.get(request.model)
    talk = read(request.messages)
    tools = [] if request.tool_choice == "none" else toolbox(request.tools_text)
    today = today_of(talk.system)
    if request.tool_choice not in ("auto", "none"):
        return _forced(request, tools, talk, today)
    if not talk.goals or is_small_talk(talk.goals[-1].text):
        return Reply(replies.pick(replies.HELLO, slips, "hello"))
    if is_parting(talk.goals[-1].texts[-1]) and talk.last_role == "user":
        return Reply(replies.pick(replies.BYE, slips, "bye"))
    if (kit := kit_of(tools)) is not None:
        return mend(request.messages, kit, slips)
    planned = [(w, next_step(w, talk, tools, today)) for w in talk.goals[talk.goals[-1].first :]]
    goal, step = next((pair for pair in planned if pair[1].kind in OPEN), planned[-1])
    if step.kind not in OPEN and len(planned) > 1:  # several at once: told together
        return Reply(replies.words_for(planned, tools, slips))
    if call := astray(step, goal, tools, clumsy, slips, today):
        return call
    if step.kind == "look_up":
        return _look_up(step, goal, slips, parallel=request.parallel)
    if step.kind == "call":
        return _call(step, goal, slips)
    if step.kind == "done":
        extra = slips.happens("extra_call", str(goal.index)) and _extra(tools, goal)
        bare = slips.happens("leaves_out_result", str(goal.index))
        return extra or Reply(replies.words_for([(goal, step)], tools, slips, bare=bare))
    return plea(step, goal, talk) or Reply(replies.words_for([(goal, step)], tools, slips))


def _look_up(step: Action, goal: UserGoal, slips: Slips, *, parallel: bool) -> Reply:
    target, where = step.tool, str(goal.index)
    if target and not target.reads and goal.index > 0 and slips.happens("skips_step", where):
        return Reply(replies.pretence(target, {}, slips))
    if goal.calls and slips.happens("premature_end", where):
        return Reply(replies.gives_up(slips))
    if guess := _guess(target, goal, slips, where):
        return guess
    together = parallel and slips.draw("one_at_a_time") >= 0.35
    return _answer(*step.calls) if together else _answer(step.calls[0])


def _call(step: Action, goal: UserGoal, slips: Slips) -> Reply:
    (tool, arguments), where = step.calls[0], str(goal.index)
    tried = any(call.name == tool.name for call in goal.calls)
    if not tool.reads and not tried:
        if goal.index > 0 and slips.happens("skips_step", where):
            return Reply(replies.pretence(tool, {}, slips))
        if slips.happens("claims_without_doing", where):
            return Reply(replies.pretence(tool, arguments, slips))
    if not tool.reads and slips.happens("wrong_value", where):
        arguments = slips.wrong_value(tool, arguments, where)
    if not tried and slips.happens("wrong_format", where):
        arguments = slips.wrong_format(tool, arguments, where)
    return _answer((tool, arguments))


def _guess(target: Tool | None, goal: UserGoal, slips: Slips, where: str) -> Reply | None:
    """The goal called too early, with the user's own words where an identifier belongs."""
    if target is None or any(call.name == target.name for call in goal.calls):
        return None
    words = Words(goal.text, "")
    arguments = fill(target, words, lookup=False)
    named = next((m.text for m in words.mentions if m.kind in ("name", "quoted")), None)
    missing = [p for p in target.required if p.name not in arguments]
    fits = named and missing and all(p.is_id and p.kind == "string" for p in missing)
    if not fits or not slips.happens("guesses_id", where):
        return None
    return _answer((target, arguments | {p.name: named for p in missing}))


def _extra(tools: list[Tool], goal: UserGoal) -> Reply | None:
    """A read that nothing needs: the first without required parameters that was not called."""
    called = {call.name for call in goal.calls}
    free = (t for t in tools if t.reads and not t.required and t.name not in called)
    tool = next(free, None)
    return _answer((tool, {})) if tool else None


def _forced(request: ChatRequest, tools: list[Tool], talk: Dialogue, today: str) -> Reply:
    """A call whatever the plan says, because the request demands one."""
    goal = talk.goals[-1] if talk.goals else UserGoal(0, [""])
    tool = next((t for t in tools if t.name == request.tool_choice), None)
    step = next_step(goal, talk, [tool] if tool else tools, today)
    if step.calls:
        return _answer(step.calls[0])
    chosen = tool or step.tool or tools[0]
    arguments = fill(chosen, Words(goal.text, today), lookup=False)
    for param in chosen.required:
        arguments.setdefault(param.name, sample(param.schema, goal.text))
    return _answer((chosen, arguments))


def _answer(*calls: tuple[Tool, dict[str, Any]]) -> Reply:
    return Reply("", tuple((t.name, json.dumps(a, ensure_ascii=False)) for t, a in calls))
