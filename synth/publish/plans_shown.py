"""The reference plan of a task beside the calls that were made.

The plan is one way to the goal, and no check looks at it: another way counts as well. It shows a
reader what is missing where something is.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from records.tables.schemas import Row
from synth.publish.numbering import call_anchor, call_words
from synth.render.transcript import ShownTurn, pretty
from synth.rubrics.values import same_value

PlanFate = Literal["made", "made with other arguments", "made and refused", "missing"]


class MadeCall(NamedTuple):
    """A call of the episode as it is named beside a plan."""

    words: str
    """Its number on the page and its tool."""
    anchor: str
    """Empty for a call of another conversation of the episode."""
    arguments: str
    note: str
    """What came of it, in short."""


class PlannedCall(NamedTuple):
    tool: str
    arguments: str
    by_user: bool
    fate: PlanFate
    made: MadeCall | None


class ShownPlan(NamedTuple):
    steps: tuple[PlannedCall, ...]
    extra: tuple[MadeCall, ...]
    """Calls that the plan does not have, in order."""

    @property
    def words(self) -> str:
        """How far the plan was followed, as a sentence."""
        if not self.steps:
            return f"The reference plan makes no call; {_counted(len(self.extra))} made."
        tools: dict[PlanFate, list[str]] = {}
        for step in self.steps:
            tools.setdefault(step.fate, []).append(step.tool)
        parts = [_part(fate, tools[fate]) for fate in FATES if fate in tools]
        n = len(self.steps)
        told = f"Of the {n} calls" if n > 1 else "The one call"
        told = f"{told} of the reference plan: {', '.join(parts)}"
        if self.extra:
            calls = "1 call" if len(self.extra) == 1 else f"{len(self.extra)} calls"
            told += f"; besides, {calls} that the plan does not have"
        return f"{told}."


FATES: tuple[PlanFate, ...] = (
    "made",
    "made with other arguments",
    "made and refused",
    "missing",
)
"""In the order in which they are told."""


def _part(fate: PlanFate, tools: Sequence[str]) -> str:
    """How many steps became what, and of which tools where that is not what was planned."""
    if fate == "made":
        return f"{len(tools)} as planned"
    words = fate.removeprefix("made ").replace("and refused", "refused")
    return f"{len(tools)} {words} ({', '.join(dict.fromkeys(tools))})"


def _counted(n: int) -> str:
    return "1 call was" if n == 1 else f"{n} calls were"


def plan_beside(
    plan: Sequence[Mapping[str, Any]], calls: Sequence[Row], turns: Sequence[ShownTurn]
) -> ShownPlan:
    """`calls`: rows of `tool_calls` of the whole episode, in call order; `turns`: those of the
    conversation that is shown. Each call stands for one step at most: for one that it makes as it
    is planned, else for one with its tool, a call that went well before one that was refused."""
    shown = {
        made.call_index: (call_words(t, c, made.name), call_anchor(t, c))
        for t, turn in enumerate(turns)
        for c, made in enumerate(turn.calls)
    }
    left = [_Call(row, shown) for row in calls if row["executed_by"] != "notes"]
    found: dict[int, tuple[PlanFate, MadeCall]] = {}
    for fate, fits in _WAYS:
        for number, step in enumerate(plan):
            if number in found:
                continue
            call = next((c for c in left if c.is_of(step) and fits(c, step)), None)
            if call is not None:
                left.remove(call)
                found[number] = fate, call.made
    steps = [
        PlannedCall(
            str(step.get("tool")),
            pretty(step.get("arguments")),
            _actor(step) == "user",
            *found.get(number, ("missing", None)),
        )
        for number, step in enumerate(plan)
    ]
    return ShownPlan(tuple(steps), tuple(call.made for call in left))


class _Call:
    """A row of `tool_calls`, and how it is named."""

    def __init__(self, row: Row, shown: Mapping[int | None, tuple[str, str]]) -> None:
        self.row = row
        elsewhere = f"{row['name']}, in another conversation of the episode", ""
        words, anchor = shown.get(row["call_index"], elsewhere)
        by = "by the user, " if row["actor"] == "user" else ""
        self.made = MadeCall(words, anchor, pretty(row["arguments"]), by + self._note())

    def _note(self) -> str:
        if self.row["is_error"]:
            return f"refused: {self.row['error_code']}" if self.row["error_code"] else "refused"
        return "changed something" if self.row["state_diff"] else "changed nothing"

    def is_of(self, step: Mapping[str, Any]) -> bool:
        return (self.row["name"], self.row["actor"]) == (step.get("tool"), _actor(step))

    def has_arguments_of(self, step: Mapping[str, Any]) -> bool:
        try:
            given = json.loads(self.row["arguments"] or "null")
        except (ValueError, RecursionError):
            return False
        return same_value(step.get("arguments"), given, ordered=False)


def _actor(step: Mapping[str, Any]) -> str:
    return str(step.get("actor", "agent"))


_WAYS: tuple[tuple[PlanFate, Callable[[_Call, Mapping[str, Any]], bool]], ...] = (
    ("made", lambda call, step: not call.row["is_error"] and call.has_arguments_of(step)),
    ("made with other arguments", lambda call, _: not call.row["is_error"]),
    ("made and refused", lambda call, step: call.has_arguments_of(step)),
    ("made and refused", lambda _call, _step: True),
)
"""In which order a step looks for its call."""
