"""The agent: one assistant message from the conversation and the tools, and nothing else.

It plans by rule (see `planning`), so it works on tools it was not written for as far as their
names, descriptions and schemas speak plainly. On top of that it errs at declared rates.
"""

import json
from typing import Any

from synth.offline import replies
from synth.offline.conversation import Conversation, Wish, is_small_talk, read
from synth.offline.filling import Words, fill
from synth.offline.mistakes import Slips
from synth.offline.planning import Step, next_step
from synth.offline.reading import today_of
from synth.offline.sampling import sample
from synth.offline.settings import OfflineSettings
from synth.offline.toolbox import Tool, toolbox
from synth.openai_server.request import ChatRequest
from synth.openai_server.response import Answer


def agent(request: ChatRequest, settings: OfflineSettings) -> Answer:
    slips = Slips(
        settings.mistakes, factor=settings.models.get(request.model, 1.0), talk=request.talk
    )
    talk = read(request.messages)
    tools = [] if request.tool_choice == "none" else toolbox(request.tools_text)
    today = today_of(talk.system)
    if request.tool_choice not in ("auto", "none"):
        return _forced(request, tools, talk, today)
    if not talk.wishes or is_small_talk(talk.wishes[-1].text):
        return Answer(replies.greeting(slips))
    if talk.parting and talk.last_role == "user":
        return Answer(replies.goodbye(slips))
    for wish in _open_wishes(talk):
        step = next_step(wish, talk, tools, today)
        answer = _act(step, wish, tools, slips, parallel=request.parallel)
        if answer.calls or wish is talk.wishes[-1]:
            return answer
    return Answer(replies.goodbye(slips))


def _open_wishes(talk: Conversation) -> list[Wish]:
    return talk.wishes[-1:]


def _act(step: Step, wish: Wish, tools: list[Tool], slips: Slips, *, parallel: bool) -> Answer:
    where = str(wish.index)
    if step.kind == "call":
        return _call(step, wish, slips, where, parallel=parallel)
    if step.kind == "ask":
        return Answer(replies.question(step, tools, slips))
    if step.kind == "answer":
        return Answer(step.words)
    if step.kind == "refuse":
        return Answer(replies.refusal(step, slips))
    if step.kind == "no_tool":
        return Answer(replies.no_tool(tools, slips))
    if step.kind == "failed":
        return Answer(replies.failure(step, slips))
    bare = slips.happens("leaves_out_result", where)
    if slips.happens("extra_call", where) and (extra := _extra(tools, wish)):
        return extra
    return Answer(replies.report(step, slips, bare=bare))


def _call(step: Step, wish: Wish, slips: Slips, where: str, *, parallel: bool) -> Answer:
    calls = list(step.calls)
    goal = step.tool
    if wish.index > 0 and goal and not goal.reads and slips.happens("skips_step", where):
        return Answer(replies.pretence(goal, {}, slips))
    if step.lookup:
        if wish.calls and slips.happens("premature_end", where):
            return Answer(replies.failure(Step("failed"), slips))
        if guess := _guess(step, wish, slips, where):
            return guess
        sequential = slips.draw("one_at_a_time") < 0.35
        if not parallel or sequential:
            calls = calls[:1]
        return _answer(calls)
    if len(calls) > 1:
        return _answer(calls if parallel else calls[:1])
    tool, arguments = calls[0]
    tried = any(call.name == tool.name for call in wish.calls)
    if not tool.reads and not tried and slips.happens("claims_without_doing", where):
        return Answer(replies.pretence(tool, arguments, slips))
    if not tool.reads and slips.happens("wrong_value", where):
        arguments = slips.wrong_value(tool, arguments, where)
    if not tried and slips.happens("wrong_format", where):
        arguments = slips.wrong_format(tool, arguments, where)
    return _answer([(tool, arguments)])


def _guess(step: Step, wish: Wish, slips: Slips, where: str) -> Answer | None:
    """The goal called too early, with the user's own words where an identifier belongs."""
    goal = step.tool
    if goal is None or any(c.name == goal.name for c in wish.calls):
        return None
    if not slips.happens("guesses_id", where):
        return None
    words = Words(wish.text, "")
    arguments = fill(goal, words, lookup=False)
    named = next((m.text for m in words.mentions if m.kind in ("name", "quoted")), None)
    missing = [p for p in goal.required if p.name not in arguments]
    if named is None or not missing or any(not p.is_id or p.kind != "string" for p in missing):
        return None
    return _answer([(goal, arguments | {p.name: named for p in missing})])


def _extra(tools: list[Tool], wish: Wish) -> Answer | None:
    """A read that nothing needs: the first without required parameters that was not called."""
    called = {call.name for call in wish.calls}
    for tool in tools:
        if tool.reads and not tool.required and tool.name not in called:
            return _answer([(tool, {})])
    return None


def _forced(request: ChatRequest, tools: list[Tool], talk: Conversation, today: str) -> Answer:
    """A call whatever the plan says, because the request demands one."""
    wish = talk.wishes[-1] if talk.wishes else Wish(0, [""])
    tool = next((t for t in tools if t.name == request.tool_choice), None)
    step = next_step(wish, talk, [tool] if tool else tools, today)
    if step.kind == "call":
        return _answer(list(step.calls)[:1])
    chosen = tool or step.tool or tools[0]
    arguments = fill(chosen, Words(wish.text, today), lookup=False)
    for param in chosen.required:
        arguments.setdefault(param.name, sample(param.schema, wish.text))
    return _answer([(chosen, arguments)])


def _answer(calls: list[tuple[Tool, dict[str, Any]]]) -> Answer:
    made = tuple(
        (tool.name, json.dumps(arguments, ensure_ascii=False)) for tool, arguments in calls
    )
    return Answer("", made)
