"""A stored conversation put together to be read: turns, and calls with their results.

Texts are as they were written; what shows them makes them safe (synth.render.foreign_text,
autoescape).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from records.tables.schemas import Row

OWN_TOOLS = "user's own tools"
"""Role of turns that show what the user did unseen by the agent."""

LINE_CHARS = 100
"""Longer JSON is spread over lines."""


class ShownField(NamedTuple):
    name: str
    before: str | None
    """None: there was none."""
    after: str | None


class ShownChange(NamedTuple):
    """What a call, or a job that fell due meanwhile, did to one row of the environment."""

    op: str
    entity: str
    id: str
    fields: tuple[ShownField, ...]
    """Those that changed; empty where the id says all there is."""
    job: str
    """What changed it by itself; empty for the call."""


class ShownCall(NamedTuple):
    name: str
    arguments: str
    """Indented JSON, or the model's own text where that is no JSON."""
    result: str | None
    """None: the episode ended before an answer."""
    is_error: bool
    marks: tuple[str, ...]
    """What the log knows of the call: who executed it, error code, injected fault, rules broken,
    jobs that ran meanwhile."""
    changes: tuple[ShownChange, ...] | None
    """None: the log does not know the call."""
    call_index: int | None
    """Among the calls of the episode, from 0; None where the log does not know the call."""


class ShownTurn(NamedTuple):
    role: str
    text: str
    reasoning: str
    calls: tuple[ShownCall, ...]
    trained: bool | None
    """Whether the turn carries loss; None where that was never decided."""
    place: int | None
    """In the conversation's messages; None for what the user did unseen by the agent."""


def turns_of(
    messages: Sequence[Mapping[str, Any]],
    log: Sequence[Row],
    train_turns: Sequence[bool] | None,
) -> list[ShownTurn]:
    """Turns with the results of their calls inside; `log` are rows of `tool_calls`. What the user
    did with its own tools stands in turns of their own, before what it said then."""
    calls = {call["tool_call_id"]: call for call in log}
    own: dict[int, list[Row]] = {}
    for call in log:
        if call["actor"] == "user":
            own.setdefault(call["turn"], []).append(call)
    agents = 0
    results = {m.get("tool_call_id"): m for m in messages if m.get("role") == "tool"}
    turns: list[ShownTurn] = []
    shown: set[Any] = set()
    for index, message in enumerate(messages):
        if message.get("role") == "tool" and message.get("tool_call_id") in shown:
            continue
        if message.get("role") == "user" and agents in own:
            turns.append(_own_turn(own.pop(agents)))
        agents += message.get("role") == "assistant"
        asked = message.get("tool_calls") or ()
        shown.update(call.get("id") for call in asked)
        trained = train_turns[index] if train_turns and index < len(train_turns) else None
        turns.append(
            ShownTurn(
                str(message.get("role")),
                _text(message.get("content")),
                _text(message.get("reasoning_content")),
                tuple(_call(call, results, calls) for call in asked),
                trained,
                index,
            )
        )
    return turns + [_own_turn(calls) for calls in own.values()]


def _own_turn(calls: Sequence[Row]) -> ShownTurn:
    made = tuple(
        ShownCall(
            name=_text(call["name"]),
            arguments=pretty(call["arguments"]),
            result=pretty(call["observation"]),
            is_error=bool(call["is_error"]),
            marks=("by the user, unseen by the agent", *_marks(call)),
            changes=changes_shown(call["state_diff"] or ()),
            call_index=call["call_index"],
        )
        for call in calls
    )
    return ShownTurn(OWN_TOOLS, "", "", made, None, None)


def _call(
    asked: Mapping[str, Any], results: Mapping[Any, Any], log: Mapping[str, Row]
) -> ShownCall:
    row, result = log.get(asked.get("id") or ""), results.get(asked.get("id"))
    function = asked.get("function") or {}
    return ShownCall(
        name=_text(function.get("name")),
        arguments=pretty(function.get("arguments")),
        result=None if result is None else pretty(result.get("content")),
        is_error=bool(row and row["is_error"]),
        marks=_marks(row) if row else (),
        changes=changes_shown(row["state_diff"] or ()) if row else None,
        call_index=row["call_index"] if row else None,
    )


def changes_shown(diff: Sequence[Mapping[str, Any]]) -> tuple[ShownChange, ...]:
    """The changes of a `state_diff`, field by field."""
    return tuple(
        ShownChange(
            str(change.get("op")),
            str(change.get("entity")),
            str(change.get("id")),
            tuple(_fields(change)),
            str(change.get("job") or ""),
        )
        for change in diff
    )


def _fields(change: Mapping[str, Any]) -> Iterator[ShownField]:
    before, after = change.get("before") or {}, change.get("after") or {}
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        yield ShownField("", pretty(before), pretty(after))
        return
    row_id = str(change.get("id"))
    for name in dict.fromkeys([*before, *after]):
        if any(name in side and str(side[name]) != row_id for side in (before, after)):
            # a row of a file is its own id, which has been said
            sides = [pretty(side[name]) if name in side else None for side in (before, after)]
            yield ShownField(name, *sides)


LONG_FIELD = 200
"""Characters from which of a changed text only the place is shown that changed."""

BESIDE = 60
"""Characters shown before and after that place."""


def where_they_differ(before: str | None, after: str | None) -> tuple[str | None, str | None]:
    """Both sides of a field, of long texts without what they begin and end with alike."""
    if before is None or after is None or min(len(before), len(after)) <= LONG_FIELD:
        return before, after
    most = min(len(before), len(after))
    head = _alike(before, after)
    tail = min(_alike(before[::-1], after[::-1]), most - head)
    start, end = max(0, head - BESIDE), max(0, tail - BESIDE)
    first, second = (
        f"{'... ' if start else ''}{text[start : len(text) - end]}{' ...' if end else ''}"
        for text in (before, after)
    )
    return first, second


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _marks(row: Row) -> tuple[str, ...]:
    marks = [row["executed_by"]] if row["executed_by"] else []
    if row["injected_outcome"]:
        marks.append(f"injected: {row['injected_outcome']}")
    if row["error_code"]:
        marks.append(f"error: {row['error_code']}")
    marks += [f"breaks rule: {rule}" for rule in row["policy_violations"] or ()]
    jobs = (c for c in row["state_diff"] or () if "job" in c)
    runs = (f"meanwhile: {c['job']} on {c['entity']} {c['id']} at {c['at']}" for c in jobs)
    return (*marks, *dict.fromkeys(runs))


def pretty(value: Any) -> str:
    """JSON, also inside text, on one line where it fits one; any other text as it is, and numbers
    too: an id such as 12e4567 is none."""
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            return value
        if isinstance(parsed, int | float):
            return value
        value = parsed
    line = _text(value)
    if isinstance(value, str) or len(line) <= LINE_CHARS:
        return line
    return json.dumps(value, indent=2, ensure_ascii=False)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
