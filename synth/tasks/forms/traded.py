"""A goal that takes the place of one that is out of reach: the user makes do with something else
about the same row.
"""

from synth.tasks.forms.trying import told_of, tried
from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Goal
from synth.tasks.goals.lookup import unique_steps
from synth.tasks.proof.unsolvable import action_of

TRIES = 4
"""Draws of a call of one tool."""


def add_traded(builder: Builder, wanted: DomainTool) -> bool:
    """Append such a goal after the last one, which is a call of `wanted` that must not or cannot be
    made; False where no other tool at hand does anything about its rows. Whether the last goal is
    still out of reach is for the caller to prove."""
    last = builder.goals[-1]
    rows = {
        param.ref: last.arguments[name]
        for name, param in wanted.spec.params.items()
        if param.ref and name in last.arguments
    }
    used = {goal.tool for goal in builder.goals}
    others = [
        tool
        for tool in builder.tools.values()
        if tool.writes and not tool.waits and tool.name not in used and tool.takes_any(set(rows))
    ]
    builder.rng.shuffle(others)
    return any(_added(builder, wanted, tool, rows) for tool in others for _ in range(TRIES))


def _added(builder: Builder, wanted: DomainTool, tool: DomainTool, rows: dict[str, str]) -> bool:
    arguments = builder.drawn(tool)
    same = {name: rows[p.ref] for name, p in tool.spec.params.items() if p.ref and p.ref in rows}
    call = tried(builder, tool, arguments | same) if same else None
    if call is None:
        return False
    grounding = builder.ground(tool, call.step.arguments)
    what = action_of(tool) + told_of(grounding.facts)
    old = action_of(wanted)
    goal = Goal(
        tool=tool.name,
        description=tool.spec.description,
        wish=f"Since what was asked last ({old}) cannot be had, this is wanted in its place: "
        f"{what}.",
        misreadings=(
            f"What was asked last ({old}) is still wanted, and this beside it: {what}.",
            f"Since what was asked last ({old}) cannot be had, nothing is wanted in its place.",
        ),
        form="traded",
        arguments=call.step.arguments,
        labels=grounding.labels,
        known=tuple(grounding.facts),
        asks=builder.asked_of(tool, call.result, grounding.facts),
        steps=tuple(
            unique_steps([*(s for s in grounding.lookups if s not in builder.plan), call.step])
        ),
        writes=True,
    )
    builder.goals.append(goal)
    builder.keep(goal, call.result, call.after)
    return True
