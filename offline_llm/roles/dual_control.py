"""What only the person served can do: the agent asks for it, the simulated user does it.

The agent reads from its system prompt what the user can do, and asks for the thing that the words
of a failed call speak of. The user owns tools for it and calls the one that it was asked for, with
values that it knows or was told. Both go by words alone.
"""

import json
import re
from typing import Any

from offline_llm.reading.conversation import Dialogue, UserGoal, question_in
from offline_llm.reading.filling import Words, fill
from offline_llm.reading.sections import sections
from offline_llm.reading.toolbox import Param, Tool, toolbox
from offline_llm.reading.words import stem_set
from offline_llm.roles.planning import Action
from offline_llm.server.request import ChatRequest
from offline_llm.server.response import Reply

_HEADING = "what the user can do"
_PLEA = "yourself and tell me when it is done?"
_KNOWN = re.compile(
    r"^-\s*(.+?):\s*(.*?)\s*\((?:say it at once|only when asked)\)\s*$", re.MULTILINE
)
DONE = "Yes, that is done now."
FAILED = "I tried, but it did not work."


def users_turn(request: ChatRequest) -> bool:
    """Whether the request is to the user and offers its own tools, rather than to an agent."""
    return bool(request.tools) and {"persona", "what you want"} <= sections(request).keys()


def act(request: ChatRequest) -> Reply:
    """The call that the agent's last words ask for; no call where they ask for none, or when the
    user has just made one."""
    heard = request.messages[-1]
    if heard["role"] != "user":
        return Reply("")
    question = question_in(heard["content"])
    if _PLEA not in question and not re.search(r"\b(?:please|can you|could you)\b", question, re.I):
        return Reply("")
    asked = stem_set(heard["content"])
    tools = toolbox(request.tools_text)
    scored = [(len(asked & set(tool.name_words)) / len(tool.name_words), tool) for tool in tools]
    share, tool = max(scored, key=lambda pair: pair[0])
    if share < 0.5:
        return Reply("")
    arguments = {p.name: v for p in tool.params if (v := _value(p, request)) is not None}
    if any(param.name not in arguments for param in tool.required):
        return Reply("")
    return Reply("", ((tool.name, json.dumps(arguments, ensure_ascii=False)),))


def _value(param: Param, request: ChatRequest) -> Any:
    """What the person knows and the agent spoke of, before what else suits the label."""
    known = _KNOWN.findall(sections(request).get("what you know", ""))
    heard = request.messages[-1]["content"].casefold()
    fitting = [value for label, value in known if stem_set(label) & param.name_words]
    told = [value for value in fitting if value.casefold() in heard]
    spare = told or fitting
    if spare:
        return spare[0]
    tool = Tool("", "", (param,), frozenset(), (), frozenset(), frozenset(), frozenset(), False)
    return fill(tool, Words(request.messages[-1]["content"], ""), lookup=False).get(param.name)


def outcome(request: ChatRequest) -> str:
    """What the user says right after a call of its own; empty when it made none."""
    last = request.messages[-1]
    if last["role"] != "tool":
        return ""
    return FAILED if '"error"' in last["content"][:12] else DONE


def plea(step: Action, goal: UserGoal, talk: Dialogue) -> Reply | None:
    """Instead of giving up: the user is asked to do its part, then the call is made again."""
    part = _users_part(talk.system)
    if not part or step.kind != "failed" or step.result is None or step.tool is None:
        return None
    if any(_PLEA in question for question in goal.asked):
        failures = [c for c in goal.calls if c.name == step.tool.name and c.error]
        again = [c for c in failures if c.arguments == step.result.arguments and not c.transient]
        if len(again) != 1 or FAILED in goal.text:
            return None
        arguments = json.dumps(step.result.arguments, ensure_ascii=False)
        return Reply("", ((step.tool.name, arguments),))
    reason = step.result.error.partition(": ")[2].rstrip(".") or step.result.error
    words = stem_set(reason)
    best = max(part, key=lambda line: len(words & stem_set(line)))
    if not words & stem_set(best):
        return None
    action = re.split(r"[.,;](?:\s|$)", best)[0]
    action = action[:1].lower() + action[1:]
    return Reply(f"I cannot go on yet: {reason}. Could you please {action} {_PLEA}")


def _users_part(system: str) -> list[str]:
    """The lines that say what the user can do."""
    _, _, rest = system.lower().partition(f"## {_HEADING}")
    body = system[len(system) - len(rest) :] if rest else ""
    return re.findall(r"^- (.*\S)$", body.partition("\n## ")[0], re.MULTILINE)
