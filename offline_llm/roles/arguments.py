"""The arguments of a goal: said, looked up, carried over from before, or still missing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from offline_llm.reading.conversation import Dialogue, UserGoal
from offline_llm.reading.filling import PLACES, Words, fill, leftover
from offline_llm.reading.lookups import Known, ReadCall, Unknown, Value, resolve
from offline_llm.reading.reading import Mention
from offline_llm.reading.toolbox import Param, Tool
from offline_llm.reading.words import ORDINALS, stem

_REFERS = re.compile(
    r"\b(?:it|its|them|their|they|her|his|him|he|she|same|again|this one|that one|just)\b",
    re.IGNORECASE,
)
_ORDINALS = [stem(word) for word in ORDINALS]
_NONE: frozenset[str] = frozenset()


@dataclass
class CallDraft:
    known: Known
    goal: UserGoal
    talk: Dialogue
    values: dict[str, Any] = field(default_factory=dict)
    missing: list[Param] = field(default_factory=list)
    """Required and neither said nor to be found."""
    reads: list[ReadCall] = field(default_factory=list)
    """Look-ups that bring it nearer, independent of each other."""
    choices: tuple[Any, ...] = ()
    """Candidates for the first missing identifier, when the words leave several."""
    optional: tuple[Param, ...] = ()
    """Plain optional parameters without a value."""


def arguments_for(tool: Tool, known: Known, goal: UserGoal, talk: Dialogue) -> CallDraft:
    draft = CallDraft(known, goal, talk)
    draft.values = _members(tool, known.words, draft)
    draft.reads = list({(r.tool.name, str(r.arguments)): r for r in draft.reads}.values())
    open_ones = [p for p in tool.params if p.name not in draft.values and not p.required]
    draft.optional = tuple(p for p in open_ones if not (p.is_id or p.is_cursor or p.parts))
    return draft


def _members(tool: Tool, words: Words, draft: CallDraft) -> dict[str, Any]:
    """Values for the parameters of a tool, or for the members of a nested object."""
    values = fill(tool, words, lookup=False)
    for param in tool.params:
        found: list[Any] = []
        if param.parts:
            found = _nested(param, tool, values, words, draft)
        elif param.name in values or not (param.required or _is_meant(param, words)):
            continue
        elif param.is_id:
            found = _identifiers(param, tool, values, words, draft)
        elif (carried := _carried(param, draft)) is not None:
            values[param.name] = carried
        elif param.required:
            draft.missing.append(param)
        if found:
            values[param.name] = found if param.kind == "array" else found[0]
    return values


def _nested(
    param: Param, tool: Tool, values: dict[str, Any], words: Words, draft: CallDraft
) -> list[dict[str, Any]]:
    """One object for each ordinal that the words number them with; one when they do not."""
    inner = replace(tool, params=param.parts, name_words=(), head_words=_NONE)
    nouns = {noun for p in tool.params if p.is_id for noun in p.nouns} - param.nouns
    free = [m for m in leftover(values, words) if not nouns & set(m.left)]
    rows = [_members(inner, group, draft) for group in _groups(param, words, free)]
    return [row for row in rows if row]


def _groups(param: Param, words: Words, free: list[Mention]) -> Iterator[Words]:
    """The mentions that belong to each element of a list."""
    own = [m for m in free if set(m.left) & param.name_words]
    ordinals = [o for o in _ORDINALS if any(o in m.left for m in own)]
    for ordinal in (ordinals or [""]) if param.required or own else []:
        yield words.only(m for m in (own if ordinal else free) if not ordinal or ordinal in m.left)


def _identifiers(
    param: Param, tool: Tool, values: dict[str, Any], words: Words, draft: CallDraft
) -> list[Any]:
    """Identifiers looked up: one, or for a list one for each numbered element."""
    groups = [words]
    if param.kind == "array":
        groups = list(_groups(param, words, leftover(values, words))) or groups
    found = []
    for group in groups:
        step = resolve(param, tool, replace(draft.known, words=group), values)
        if isinstance(step, Value):
            found.append(step.value)
        elif isinstance(step, ReadCall):
            draft.reads.append(step)
        elif (carried := _carried(param, draft)) is not None:
            found.append(carried)
        elif param.required and isinstance(step, Unknown):
            draft.missing.append(param)
            draft.choices = draft.choices or step.choices
    return found


def _is_meant(param: Param, words: Words) -> bool:
    """An optional identifier is looked up only when a value is said to be about it."""
    return any(param.nouns & set(mention.left) for mention in words.mentions)


def _carried(param: Param, draft: CallDraft) -> Any:
    """A value that holds on: of an earlier call with the same parameter when the words refer
    back or the user knows no better, a place that the system prompt names, or the default."""
    goal, place = draft.goal, bool(param.name_words & PLACES)
    refers = goal.index > 0 and (goal.unknown or bool(_REFERS.search(goal.text)))
    for call in reversed(draft.talk.calls if place or (param.is_id and refers) else []):
        row = call.value if isinstance(call.value, dict) else {}
        seen = row | call.arguments
        if not call.error and param.name in seen:
            return seen[param.name]
    if place:
        single = replace(param, required=True)
        reader = Tool("", "", (single,), _NONE, (), _NONE, _NONE, _NONE, False)
        spoken = fill(reader, Words(draft.talk.system, ""), lookup=True)
        if param.name in spoken:
            return spoken[param.name]
    return param.schema.get("default")
