"""The arguments of a goal: said, looked up, carried over from before, or still missing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from synth.offline.conversation import Conversation, Wish
from synth.offline.filling import PLACES, Words, fill, leftover
from synth.offline.lookups import Known, Read, Unknown, Value, resolve
from synth.offline.results import Call
from synth.offline.toolbox import Param, Tool
from synth.offline.words import ORDINALS, stem

_REFERS = re.compile(
    r"\b(?:it|its|them|their|they|her|his|him|he|she|same|again|this one|that one|just)\b",
    re.IGNORECASE,
)
_ORDINALS = [stem(word) for word in ORDINALS]


class Draft(NamedTuple):
    values: dict[str, Any]
    missing: list[Param]
    """Required and neither said nor to be found."""
    reads: list[Read]
    """Look-ups that bring it nearer, independent of each other."""
    choices: tuple[Any, ...]
    """Candidates for the first missing identifier, when the words leave several."""
    optional: tuple[Param, ...]
    """Plain optional parameters without a value."""


@dataclass
class _Collector:
    known: Known
    wish: Wish
    talk: Conversation
    missing: list[Param]
    reads: list[Read]
    choices: tuple[Any, ...] = ()


def arguments_for(tool: Tool, known: Known, wish: Wish, talk: Conversation) -> Draft:
    collector = _Collector(known, wish, talk, [], [])
    values = _members(tool, known.words, collector)
    reads = list({(r.tool.name, str(r.arguments)): r for r in collector.reads}.values())
    optional = tuple(
        p
        for p in tool.params
        if not (p.required or p.is_id or p.is_cursor or p.parts or p.name in values)
    )
    return Draft(values, collector.missing, reads, collector.choices, optional)


def _members(tool: Tool, words: Words, into: _Collector) -> dict[str, Any]:
    """Values for the parameters of a tool, or for the members of a nested object."""
    values = fill(tool, words, lookup=False)
    for param in tool.params:
        if param.parts:
            nested = _nested(param, tool, values, words, into)
            if nested:
                values[param.name] = nested if param.kind == "array" else nested[0]
            continue
        if param.name in values or not (param.required or _spoken_of(param, words)):
            continue
        if param.is_id:
            found = _identifiers(param, tool, values, words, into)
            if found:
                values[param.name] = found if param.kind == "array" else found[0]
        elif (carried := _carried(param, into)) is not None:
            values[param.name] = carried
        elif param.required:
            into.missing.append(param)
    return values


def _nested(
    param: Param, tool: Tool, values: dict[str, Any], words: Words, into: _Collector
) -> list[dict[str, Any]]:
    """One object for each ordinal that the words number them with; one when they do not."""
    none: frozenset[str] = frozenset()
    inner = replace(tool, params=param.parts, name_words=(), head_words=none)
    rows = []
    nouns = {noun for p in tool.params if p.is_id for noun in p.nouns} - param.nouns
    free = [m for m in leftover(values, words) if not nouns & set(m.left)]
    for group in _groups(param, words, free):
        row = _members(inner, group, into)
        if row:
            rows.append(row)
    return rows


def _groups(param: Param, words: Words, free: list[Any]) -> Iterator[Words]:
    """The mentions that belong to each element of a list."""
    own = [m for m in free if set(m.left) & param.name_words]
    ordinals = [o for o in _ORDINALS if any(o in m.left for m in own)]
    if param.required or own:
        for ordinal in ordinals or [""]:
            yield words.only(m for m in own or free if not ordinal or ordinal in m.left)


def _identifiers(
    param: Param, tool: Tool, values: dict[str, Any], words: Words, into: _Collector
) -> list[Any]:
    """Identifiers looked up: one, or for a list one for each numbered element."""
    groups = [words]
    if param.kind == "array":
        groups = list(_groups(param, words, leftover(values, words))) or groups
    found = []
    for group in groups:
        step = resolve(param, tool, replace(into.known, words=group), values)
        if isinstance(step, Value):
            found.append(step.value)
        elif isinstance(step, Read):
            into.reads.append(step)
        elif (carried := _carried(param, into)) is not None:
            found.append(carried)
        elif param.required:
            into.missing.append(param)
            into.choices = into.choices or step.choices if isinstance(step, Unknown) else ()
    return found


def _spoken_of(param: Param, words: Words) -> bool:
    """An optional identifier is looked up only when a value is said to be about it."""
    near = {word for mention in words.mentions for word in mention.left}
    return (param.is_id or bool(param.parts)) and bool(param.nouns & near)


def _own_fields(call: Call) -> list[tuple[str, Any]]:
    """The fields of a result that is a single row."""
    return list(call.value.items()) if isinstance(call.value, dict) else []


def _carried(param: Param, into: _Collector) -> Any:
    """A value that holds on: of an earlier call with the same parameter when the words refer
    back or the user knows no better, a place that the system prompt names, or the default."""
    wish = into.wish
    refers = wish.index > 0 and (wish.unknown or bool(_REFERS.search(wish.text)))
    place = bool(param.name_words & PLACES)
    if place or (param.is_id and refers):
        for call in reversed(into.talk.calls):
            seen = [*(call.arguments or {}).items(), *_own_fields(call)]
            for name, value in seen if not call.error else ():
                if name == param.name:
                    return value
    if place:
        none: frozenset[str] = frozenset()
        single = replace(param, required=True)
        reader = Tool("", "", (single,), none, (), none, none, none, False)
        spoken = fill(reader, Words(into.talk.system, ""), lookup=True)
        if param.name in spoken:
            return spoken[param.name]
    return param.schema.get("default")
