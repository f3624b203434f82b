"""A goal that sets anew what an earlier one has set: the user has had second thoughts."""

from collections.abc import Iterable, Mapping
from typing import Any

from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Goal, Step
from synth.tasks.proof.unsolvable import action_of
from tool_specs.domains.interpreter import policy_violations

TRIES = 8
"""Draws of another value."""


def add_corrected(builder: Builder) -> bool:
    """Append such a goal; False where no earlier goal set a value that can be set again."""
    plain = [goal for goal in builder.goals if goal.writes and goal.form == "plain"]
    for before in builder.rng.sample(plain, len(plain)):
        tool = builder.tools.get(before.tool)
        if tool is not None:
            for name in _settable(tool, before):
                if _added(builder, tool, before, name):
                    return True
    return False


def _settable(tool: DomainTool, goal: Goal) -> list[str]:
    return sorted(name for name in goal.arguments if not tool.spec.params[name].ref)


def _places(diff: Iterable[Mapping[str, Any]]) -> set[tuple[str, str, str]]:
    """(entity, key, field) of all that was updated; a row made or gone is a place of its own."""
    return {
        (change["entity"], change["id"], field)
        for change in diff
        for field in (change["after"] or {} if change["op"] == "update" else (change["op"],))
    }


def _added(builder: Builder, tool: DomainTool, before: Goal, name: str) -> bool:
    old = before.arguments[name]
    for _ in range(TRIES):
        new = builder.drawn(tool).get(name)
        if new is None or new == old:
            continue
        arguments = before.arguments | {name: new}
        if policy_violations(builder.environment, tool.name, arguments):
            continue
        after = builder.environment.snapshot()
        result = after.call(tool.name, arguments)
        changed = _places(result.diff)
        if result.is_error or not changed or not changed <= _places(builder.diffs):
            continue
        fact = next((f for f in builder.ground(tool, arguments).facts if f.param == name), None)
        if fact is None:
            return False
        what, label = action_of(tool), fact.label
        goal = Goal(
            tool=tool.name,
            description=tool.spec.description,
            wish=f"Second thoughts about what was asked before ({what}): the {label} is to be "
            f"{new} after all, in place of {old}; all else as it was asked.",
            misreadings=(
                f"What was asked before ({what}) is wanted a second time, for something else, with "
                f"the {label} {new}.",
                f"What was asked before ({what}) is to be undone, and nothing put in its place.",
            ),
            form="corrected",
            arguments=arguments,
            labels=before.labels,
            known=(fact.model_copy(update={"label": f"{label}, on second thoughts"}),),
            asks=builder.asked_of(tool, result, [fact]),
            steps=(Step(tool=tool.name, arguments=arguments),),
            writes=True,
        )
        builder.goals.append(goal)
        builder.keep(goal, result, after)
        return True
    return False
