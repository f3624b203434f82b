"""What the agent says to the user: outcomes, questions, refusals. Values come from results only."""

import re
from typing import Any

from offline_llm.reading.conversation import UserGoal
from offline_llm.reading.filling import label_of
from offline_llm.reading.matching import request_of
from offline_llm.reading.results import PastCall, parsed
from offline_llm.reading.toolbox import Param, Tool
from offline_llm.reading.wording import definite, past, phrase_of, spoken
from offline_llm.reading.words import joined, plain
from offline_llm.roles.planning import Action
from offline_llm.settings.mistakes import Slips

_MAX_ROWS = 12
"""Rows of a list that are read out; of longer ones only the number of the rest is said."""
_MAX_LINES = 40
"""Lines of a plain text that are read out."""
_DONE = ("Done.", "That is done.", "All right, it's done.", "It worked.", "That went through.")
_FOUND = ("Here is what I found.", "I looked it up.", "This is what the records say.", "I checked.")
_MORE = (
    "Is there anything else I can do for you?",
    "Anything else?",
    "Can I help you with anything else?",
    "Let me know if you need anything else.",
)
_ASK = ("Could you tell me", "Please tell me", "To go on I need to know", "May I ask")
BYE = ("You're welcome. Have a good day!", "Glad I could help. Goodbye!", "You're welcome. Bye!")
HELLO = ("Hello! How can I help you?", "Hi, what can I do for you?")


def pick(options: tuple[str, ...], slips: Slips, where: str) -> str:
    return options[int(slips.draw("words", where) * len(options))]


def words_for(
    planned: list[tuple[UserGoal, Action]], tools: list[Tool], slips: Slips, *, bare: bool = False
) -> str:
    """What to say where no call is made: what came of each goal, `bare` without values."""
    step = planned[-1][1]
    if step.kind in ("ask", "which"):
        return step.words or question(step, tools, slips)
    alone, told = len(planned) == 1, []
    for goal, step in planned:
        so = "nothing was changed" if alone else f'this is not done: "{request_of(goal.text)}"'
        done = step.kind == "done"
        told.append(report(step, slips, bare=bare) if done else _outcome(step, f"so {so}"))
    if step.kind == "no_tool" and tools:
        can = [str(phrase_of(t.name, t.description)) for t in tools[:3]]
        told.append(f"What I can do is, for example, {joined(can, 'or')}.")
    return " ".join([*told, pick(_MORE, slips, step.kind)])


def _outcome(step: Action, so: str) -> str:
    """Why a goal was not reached, or an answer; `so` ends what has no other reason."""
    if step.kind == "answer":
        return step.words
    if step.kind == "refuse" and step.rule:
        rule = step.rule.text.rstrip(".")
        return f"I'm sorry, I'm not allowed to do that. The rule here says: {rule}."
    if step.kind == "failed":
        return _failure(step, so)
    return f"I'm sorry, I have no way to do that here, {so}."


def report(step: Action, slips: Slips, *, bare: bool) -> str:
    """The outcome of a finished goal with the values that came back; `bare` leaves them out."""
    tool, call = step.tool, step.result
    assert tool is not None
    assert call is not None
    where = f"report{call.number}"
    opening = pick(_FOUND if tool.reads else _DONE, slips, where)
    if not tool.reads:
        opening += f" {_claim(tool)}."
    facts = "" if bare else _facts(call, int(slips.draw("dates", where) * 3))
    return f"{opening} {facts}".strip()


def _claim(tool: Tool) -> str:
    phrase = phrase_of(tool.name, tool.description)
    return f"I have {past(phrase.verb)} {definite(phrase.rest)}"


def pretence(tool: Tool, arguments: dict[str, Any], slips: Slips) -> str:
    """Claims an outcome that no call brought about."""
    said = joined([f"the {_label(k)} is {spoken(v)}" for k, v in arguments.items()])
    claim = f"{_claim(tool)}: {said}" if said else _claim(tool)
    return f"{pick(_DONE, slips, 'pretence')} {claim}. {pick(_MORE, slips, 'pretence')}"


def _facts(call: PastCall, style: int) -> str:
    value = call.value
    if not call.result.lstrip().startswith(("{", "[")):
        lines = [line.strip() for line in call.result.splitlines() if line.strip()]
        return "; ".join(lines[:_MAX_LINES]).rstrip(".") + "."
    if isinstance(value, dict) and value:
        return _sentences(value, style)
    if not value:
        return "The result is empty."
    return _rows("results", value, style) if isinstance(value, list) else f"It says: {value}."


def _sentences(row: dict[str, Any], style: int) -> str:
    single, told = [], []
    for name, part in row.items():
        label = _label(name)
        if isinstance(part, list) and part and all(isinstance(p, dict) for p in part):
            told.append(_rows(name, part, style))
        elif isinstance(part, dict) and part:
            told.append(f"{label.capitalize()}: {_row(part, style)}.")
        elif part == []:
            told.append(f"There are no {label}.")
        else:
            single.append(f"the {label} is {spoken(part, style)}")
    first = joined(single)
    return " ".join([first[:1].upper() + first[1:] + "."] * bool(single) + told)


def _rows(name: str, rows: list[Any], style: int) -> str:
    shown = [_row(row, style) if isinstance(row, dict) else spoken(row, style) for row in rows]
    label = _label(name)
    if len(rows) == 1:
        return f"There is one entry under {label}: {shown[0]}."
    listed = "; ".join(f"({i}) {text}" for i, text in enumerate(shown[:_MAX_ROWS], 1))
    more = f" and {len(rows) - _MAX_ROWS} more" if len(rows) > _MAX_ROWS else ""
    return f"There are {len(rows)} {label}: {listed}{more}."


def _row(row: dict[str, Any], style: int) -> str:
    said = {k: v for k, v in row.items() if v not in (None, [], {})}
    return ", ".join(f"{_label(k)} {spoken(v, style)}" for k, v in said.items())


def _label(name: str) -> str:
    return re.sub(r"\bid\b", "ID", plain(str(name)).lower())


def question(step: Action, tools: list[Tool], slips: Slips) -> str:
    """Asks for what is missing, in words that a person can answer."""
    first = step.missing[0]
    if len(step.choices) > 1:
        options = joined([spoken(c) for c in step.choices[:4]], "or")
        which = f"Which {label_of(first)} do you mean? Anything more that you know would help."
        return f"I found several that fit: {options}. {which}"
    asked = [_asked(param, tools) for param in step.missing[:3]]
    asked += [f"if you like {_asked(param, tools)}" for param in step.optional[:2]]
    return f"{pick(_ASK, slips, first.name)} {joined(asked)}?"


def _asked(param: Param, tools: list[Tool]) -> str:
    label = label_of(param)
    if param.is_id:
        hints = joined(_hints(param, tools), "or")
        return f"which {label} you mean" + (f", for example its {hints}" if hints else "")
    if param.kind == "boolean":
        return f"whether {label} is yes or no"
    options = joined([spoken(value) for value in param.enum[:8]], "or")
    return f"the {label} ({options})" if options else f"the {label}"


def _hints(param: Param, tools: list[Tool]) -> list[str]:
    """What the reading tools for this identifier can search by."""
    found: list[str] = []
    for tool in tools:
        if tool.reads and param.nouns & {*tool.name_words, *tool.head_words}:
            found += [plain(p.name).lower() for p in tool.params if p.is_text or p.enum]
    return list(dict.fromkeys(found))[:4]


def gives_up(slips: Slips) -> str:
    """Says that a goal was not reached and not why."""
    return f"I'm sorry, I could not do this. {pick(_MORE, slips, 'failure')}"


def _failure(step: Action, so: str) -> str:
    """Says plainly that and why a goal could not be carried out."""
    if step.unfound:
        what = joined([f"the {label}" for label in step.unfound])
        return f"I'm sorry, I can't do this without {what}, {so}."
    assert step.tool is not None
    assert step.result is not None
    phrase, value = phrase_of(step.tool.name, step.tool.description), parsed(step.result.result)
    error = value.get("error") if isinstance(value, dict) else None
    reason = error.get("message") if isinstance(error, dict) else None
    said = str(reason or step.result.error).rstrip(".")
    return f"I'm sorry, I could not {phrase.verb} {definite(phrase.rest)}: {said}."
