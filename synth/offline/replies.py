"""What the agent says to the user: outcomes, questions, refusals. Values come from results only."""

import re
from typing import Any

from synth.offline.filling import label_of
from synth.offline.mistakes import Slips
from synth.offline.planning import Step
from synth.offline.results import Call, parsed
from synth.offline.toolbox import Param, Tool
from synth.offline.wording import definite, past, phrase_of, spoken
from synth.offline.words import joined, plain

_MAX_ROWS = 12
"""Rows of a list that are read out; of longer ones only the number of the rest is said."""
_DONE = ("Done.", "That is done.", "All right, it's done.", "It worked.", "That went through.")
_FOUND = ("Here is what I found.", "I looked it up.", "This is what the records say.", "I checked.")
_MORE = (
    "Is there anything else I can do for you?",
    "Anything else?",
    "Can I help you with anything else?",
    "Let me know if you need anything else.",
)
_BYE = (
    "You're welcome. Have a good day!",
    "Glad I could help. Goodbye!",
    "You're welcome. Take care!",
)


def report(step: Step, slips: Slips, *, bare: bool = False) -> str:
    """The outcome of a finished wish with the values that came back; `bare` leaves them out."""
    tool, calls = step.tool, step.results
    assert tool is not None
    where = f"report{calls[-1].index}"
    style = int(slips.draw("dates", where) * 3)
    phrase = phrase_of(tool.name, tool.description)
    if tool.reads:
        opening = _pick(_FOUND, slips, where)
    else:
        acted = f"I have {past(phrase.verb)} {definite(phrase.rest)}."
        opening = f"{_pick(_DONE, slips, where)} {acted}"
    facts = "" if bare else " ".join(_facts(call, style) for call in calls)
    return " ".join(part for part in (opening, facts, _pick(_MORE, slips, where)) if part)


def _facts(call: Call, style: int) -> str:
    value = call.value
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, list) and all(isinstance(v, dict) for v in value) and _is_text(call):
        return _quote(call.result)
    if value in ({}, []):
        return "The result is empty."
    return _sentences(value, style)


def _is_text(call: Call) -> bool:
    return not call.result.lstrip().startswith(("{", "["))


def _quote(text: str) -> str:
    """Plain text of a server as running text."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    shown = "; ".join(lines[:40])
    return shown if shown.endswith(".") else f"{shown}."


def _sentences(value: Any, style: int) -> str:
    if isinstance(value, list):
        return _rows("results", value, style)
    if not isinstance(value, dict):
        return f"The result is {spoken(value, style)}."
    plain_parts, told = [], []
    for name, part in value.items():
        if isinstance(part, list) and part and all(isinstance(p, dict) for p in part):
            told.append(_rows(name, part, style))
        elif isinstance(part, dict) and part:
            told.append(f"{_label(name).capitalize()}: {_row(part, style)}.")
        elif isinstance(part, list) and not part:
            told.append(f"There are no {_label(name)}.")
        else:
            plain_parts.append(f"the {_label(name)} is {spoken(part, style)}")
    if plain_parts:
        told.insert(0, joined(plain_parts)[:1].upper() + joined(plain_parts)[1:] + ".")
    return " ".join(told)


def _rows(name: str, rows: list[Any], style: int) -> str:
    shown = [_row(row, style) if isinstance(row, dict) else spoken(row, style) for row in rows]
    label = _label(name)
    more = f" and {len(rows) - _MAX_ROWS} more" if len(rows) > _MAX_ROWS else ""
    if len(rows) == 1:
        return f"There is one entry under {label}: {shown[0]}."
    listed = " ".join(f"({i}) {text};" for i, text in enumerate(shown[:_MAX_ROWS], 1))
    return f"There are {len(rows)} {label}: {listed.rstrip(';')}{more}."


def _row(row: dict[str, Any], style: int) -> str:
    return ", ".join(
        f"{_label(k)} {spoken(v, style)}" for k, v in row.items() if v not in (None, [], {})
    )


def _label(name: str) -> str:
    words = plain(str(name)).lower()
    return re.sub(r"\bid\b", "ID", words)


def question(step: Step, tools: list[Tool], slips: Slips) -> str:
    """Asks for what is missing, in words that a person can answer."""
    first = step.missing[0]
    if step.choices and len(step.choices) > 1:
        options = joined([spoken(c) for c in step.choices[:4]], "or")
        return (
            f"I found several that fit: {options}. Which {label_of(first)} do you mean? Anything"
            " more that you know about it would help."
        )
    asked = [_asked(param, tools) for param in step.missing[:3]]
    asked += [f"if you like {_asked(param, tools)}" for param in step.optional[:2]]
    opening = ("Could you tell me", "Please tell me", "To go on I need to know", "May I ask")
    return f"{_pick(opening, slips, first.name)} {joined(asked)}?"


def _asked(param: Param, tools: list[Tool]) -> str:
    label = label_of(param)
    if param.is_id:
        noun = plain(label) or "record"
        hints = _hints(param, tools)
        known = f", for example its {joined(hints, 'or')}" if hints else ""
        return f"which {noun} you mean{known}"
    if param.kind == "boolean":
        return f"whether {label} is yes or no"
    if param.enum:
        options = joined([spoken(e) for e in param.enum[:8]], "or")
        return f"the {label} ({options})"
    return f"the {label}"


def _hints(param: Param, tools: list[Tool]) -> list[str]:
    """What the reading tools for this identifier can search by."""
    found: list[str] = []
    for tool in tools:
        if tool.reads and param.nouns & {*tool.name_words, *tool.head_words}:
            found += [plain(p.name).lower() for p in tool.params if not p.is_id and not p.is_cursor]
    return list(dict.fromkeys(found))[:4]


def failure(step: Step, slips: Slips) -> str:
    """Says plainly that and why a wish could not be carried out."""
    more = _pick(_MORE, slips, "failure")
    if step.unfound:
        what = joined([f"the {label}" for label in step.unfound])
        return f"I'm sorry, I can't do this without {what}, so I have changed nothing. {more}"
    if step.tool is None or not step.results:
        return f"I'm sorry, I could not do this. {more}"
    phrase = phrase_of(step.tool.name, step.tool.description)
    reason = _reason(step.results[0].result) or step.results[0].error
    wanted = f"{phrase.verb} {definite(phrase.rest)}"
    return f"I'm sorry, I could not {wanted}: {reason.rstrip('.')}. {more}"


def _reason(result: str) -> str:
    value = parsed(result)
    error = value.get("error") if isinstance(value, dict) else None
    return str(error.get("message", "")) if isinstance(error, dict) else ""


def refusal(step: Step, slips: Slips) -> str:
    assert step.rule is not None
    rule = step.rule.text.rstrip(".")
    more = _pick(_MORE, slips, "refusal")
    return f"I'm sorry, I'm not allowed to do that. The rule here says: {rule}. {more}"


def no_tool(tools: list[Tool], slips: Slips) -> str:
    more = _pick(_MORE, slips, "none")
    can = [str(phrase_of(t.name, t.description)) for t in tools[:3]]
    offer = f" What I can do is, for example, {joined(can, 'or')}." if can else ""
    return f"I'm sorry, I have no way to do that here, so nothing was changed.{offer} {more}"


def goodbye(slips: Slips) -> str:
    return _pick(_BYE, slips, "bye")


def greeting(slips: Slips) -> str:
    return _pick(("Hello! How can I help you?", "Hi, what can I do for you?"), slips, "hello")


def pretence(tool: Tool, arguments: dict[str, Any], slips: Slips) -> str:
    """Claims an outcome that no call brought about."""
    phrase = phrase_of(tool.name, tool.description)
    said = joined([f"{_label(k)} {spoken(v)}" for k, v in arguments.items()])
    more = _pick(_MORE, slips, "pretence")
    return f"Done. I have {past(phrase.verb)} {definite(phrase.rest)} ({said}). {more}"


def _pick(options: tuple[str, ...], slips: Slips, where: str) -> str:
    return options[int(slips.draw("words", where) * len(options))]
