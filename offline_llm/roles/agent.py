"""The agent: one assistant message from the conversation and the tools, and nothing else.

It plans by rule (see `planning`), so it works on tools it was not written for as far as their
names, descriptions and schemas speak plainly. On top of that it errs at declared rates.
"""

import json
from typing import Any

from offline_llm.code.agent import kit_of, mend
from offline_llm.reading.conversation import HeardConversation, UserGoal, is_small_talk, read
from offline_llm.reading.filling import Words, fill
from offline_llm.reading.reading import today_of
from offline_llm.reading.toolbox import OfferedTool, toolbox
from offline_llm.reading.unclear import OPEN
from offline_llm.roles import replies
from offline_llm.roles.clumsy import astray
from offline_llm.roles.dual_control import plea
from offline_llm.roles.planning import NextStep, next_step
from offline_llm.server.request import ChatRequest
from offline_llm.server.response import OfflineAnswer
from offline_llm.server.sampling import sample
from offline_llm.settings.mistakes import Slips
from offline_llm.settings.settings import OfflineSettings


def agent(request: ChatRequest, settings: OfflineSettings) -> OfflineAnswer:
    factor = settings.models.get(request.model, 1.0)
    slips = Slips(settings.mistakes, factor=factor, talk=request.talk)
    clumsy = settings.clumsiness.get(request.model)
    talk = read(request.messages)
    tools = [] if request.tool_choice == "none" else toolbox(request.tools_text)
    today = today_of(talk.system)
    if request.tool_choice not in ("auto", "none"):
        return _forced(request, tools, talk, today)
    if not talk.user_goals or is_small_talk(talk.user_goals[-1].text):
        return OfflineAnswer(replies.greeting(slips))
    if talk.parting and talk.last_role == "user":
        return OfflineAnswer(replies.goodbye(slips))
    if (kit := kit_of(tools)) is not None:
        return mend(request.messages, talk, kit, slips)
    planned = [
        (w, next_step(w, talk, tools, today)) for w in talk.user_goals[talk.user_goals[-1].first :]
    ]
    user_goal, step = next((pair for pair in planned if pair[1].kind in OPEN), planned[-1])
    if step.kind not in OPEN and len(planned) > 1:  # several at once: told together
        return OfflineAnswer(" ".join(replies.words_for(own, tools, slips) for _, own in planned))
    if call := astray(step, user_goal, tools, clumsy, slips, today):
        return call
    if step.kind == "look_up":
        return _look_up(step, user_goal, slips, parallel=request.parallel)
    if step.kind == "call":
        return _call(step, user_goal, slips)
    if step.kind == "done":
        extra = slips.happens("extra_call", str(user_goal.index)) and _extra(tools, user_goal)
        bare = slips.happens("leaves_out_result", str(user_goal.index))
        return extra or OfflineAnswer(replies.report(step, slips, bare=bare))
    return plea(step, user_goal, talk) or OfflineAnswer(replies.words_for(step, tools, slips))


def _look_up(step: NextStep, user_goal: UserGoal, slips: Slips, *, parallel: bool) -> OfflineAnswer:
    goal, where = step.tool, str(user_goal.index)
    if goal and not goal.reads and user_goal.index > 0 and slips.happens("skips_step", where):
        return OfflineAnswer(replies.pretence(goal, {}, slips))
    if user_goal.calls and slips.happens("premature_end", where):
        return OfflineAnswer(replies.failure(NextStep("failed"), slips))
    if guess := _guess(goal, user_goal, slips, where):
        return guess
    together = parallel and slips.draw("one_at_a_time") >= 0.35
    return _answer(*step.calls) if together else _answer(step.calls[0])


def _call(step: NextStep, user_goal: UserGoal, slips: Slips) -> OfflineAnswer:
    (tool, arguments), where = step.calls[0], str(user_goal.index)
    tried = any(call.name == tool.name for call in user_goal.calls)
    if not tool.reads and not tried:
        if user_goal.index > 0 and slips.happens("skips_step", where):
            return OfflineAnswer(replies.pretence(tool, {}, slips))
        if slips.happens("claims_without_doing", where):
            return OfflineAnswer(replies.pretence(tool, arguments, slips))
    if not tool.reads and slips.happens("wrong_value", where):
        arguments = slips.wrong_value(tool, arguments, where)
    if not tried and slips.happens("wrong_format", where):
        arguments = slips.wrong_format(tool, arguments, where)
    return _answer((tool, arguments))


def _guess(
    goal: OfferedTool | None, user_goal: UserGoal, slips: Slips, where: str
) -> OfflineAnswer | None:
    """The goal called too early, with the user's own words where an identifier belongs."""
    if goal is None or any(call.name == goal.name for call in user_goal.calls):
        return None
    words = Words(user_goal.text, "")
    arguments = fill(goal, words, lookup=False)
    named = next((m.text for m in words.mentions if m.kind in ("name", "quoted")), None)
    missing = [p for p in goal.required if p.name not in arguments]
    fits = named and missing and all(p.is_id and p.kind == "string" for p in missing)
    if not fits or not slips.happens("guesses_id", where):
        return None
    return _answer((goal, arguments | {p.name: named for p in missing}))


def _extra(tools: list[OfferedTool], user_goal: UserGoal) -> OfflineAnswer | None:
    """A read that nothing needs: the first without required parameters that was not called."""
    called = {call.name for call in user_goal.calls}
    free = (t for t in tools if t.reads and not t.required and t.name not in called)
    tool = next(free, None)
    return _answer((tool, {})) if tool else None


def _forced(
    request: ChatRequest, tools: list[OfferedTool], talk: HeardConversation, today: str
) -> OfflineAnswer:
    """A call whatever the plan says, because the request demands one."""
    user_goal = talk.user_goals[-1] if talk.user_goals else UserGoal(0, [""])
    tool = next((t for t in tools if t.name == request.tool_choice), None)
    step = next_step(user_goal, talk, [tool] if tool else tools, today)
    if step.calls:
        return _answer(step.calls[0])
    chosen = tool or step.tool or tools[0]
    arguments = fill(chosen, Words(user_goal.text, today), lookup=False)
    for param in chosen.required:
        arguments.setdefault(param.name, sample(param.schema, user_goal.text))
    return _answer((chosen, arguments))


def _answer(*calls: tuple[OfferedTool, dict[str, Any]]) -> OfflineAnswer:
    return OfflineAnswer("", tuple((t.name, json.dumps(a, ensure_ascii=False)) for t, a in calls))
