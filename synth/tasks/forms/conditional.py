"""A goal that hangs on what is found: done if a figure is above a limit, else left undone."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from synth.tasks.forms.listings import TRIES, promises_less
from synth.tasks.forms.trying import TriedCall, told_of, tried
from synth.tasks.forms.twins import twin_by_patch, twin_by_row
from synth.tasks.goals.asking import told_label
from synth.tasks.goals.building import Builder, Grounding
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Asked, Fact, Goal, Step
from synth.tasks.goals.lookup import unique_steps
from synth.tasks.proof.unsolvable import action_of

LEAST_FIGURE = 3
"""Smaller figures are told by chance too often."""

CALL_TRIES = 6
"""Draws of a call that may hang on a figure."""


class FoundFigure(NamedTuple):
    """A figure that a read shows and nobody has said."""

    tool: DomainTool
    step: Step
    grounding: Grounding
    field: str
    value: int | float
    about: dict[str, str]
    """Entity -> key of the rows that the read names or shows as its own."""


def add_conditional(builder: Builder) -> bool:
    """Append such a goal; False where the state and the tools at hand give none."""
    writes = [t for t in builder.tools.values() if not t.read_only and not t.waits]
    for found in findings(builder):
        for tool in builder.rng.sample(writes, min(len(writes), CALL_TRIES)):
            arguments = builder.drawn(tool)
            same = [
                n for n, p in tool.spec.params.items() if p.ref in found.about and n in arguments
            ]
            if found.step.arguments and not same:
                continue  # a figure of one row matters to what is done with that row
            for name in same:
                arguments[name] = found.about[str(tool.spec.params[name].ref)]
            call = tried(builder, tool, arguments)
            if call is not None and _add(builder, found, tool, call):
                return True
    return False


def findings(builder: Builder) -> Iterator[FoundFigure]:
    known = {str(f.value) for goal in builder.goals for f in goal.known}
    reads = [t for t in builder.tools.values() if t.read_only and not t.waits]
    for _ in range(TRIES if reads else 0):
        tool = builder.rng.choice(reads)
        step = Step(tool=tool.name, arguments=builder.drawn(tool))
        call = tried(builder, tool, step.arguments)
        if (
            call is None
            or not isinstance(call.result.observation, dict)
            or promises_less(tool, step.arguments)
        ):
            continue
        figures = [
            (name, value)
            for name, value in call.result.observation.items()
            if _is_figure(value) and str(value) not in known
        ]
        if figures:
            field, value = builder.rng.choice(figures)
            grounding = builder.ground(tool, step.arguments)
            about = _about(builder, tool, step, call.result.observation)
            yield FoundFigure(tool, step, grounding, field, value, about)


def _about(
    builder: Builder, tool: DomainTool, step: Step, observation: dict[str, Any]
) -> dict[str, str]:
    named = {
        param.ref: step.arguments[name]
        for name, param in tool.spec.params.items()
        if param.ref and name in step.arguments
    }
    shown = {
        entity: observation[spec.key]
        for entity, spec in builder.domain.entities.items()
        if isinstance(observation.get(spec.key), str)
    }
    return shown | named


def _is_figure(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and value >= LEAST_FIGURE


def limit_for(value: float, *, holds: bool) -> int:
    """A round limit that the value is above, or is not."""
    distance = max(1, round(value * 0.2))
    limit = int(value) - distance if holds else int(value) + distance
    step = 10 if limit > 40 else 1
    return limit // step * step if holds else -(-limit // step) * step


def _add(builder: Builder, found: FoundFigure, tool: DomainTool, call: TriedCall) -> bool:
    holds = builder.rng.random() < 0.5
    limit = limit_for(found.value, holds=holds)
    twin = _twin(builder, found, tool, call, limit, holds=holds)
    if twin is None:
        return False
    label = told_label(found.field, found.value)
    unit = _unit(builder, found.field)
    in_unit, much = (f" in {unit}", f"{limit} {unit}") if unit else ("", str(limit))
    grounding = builder.ground(tool, call.step.arguments)
    shown = list(found.grounding.facts)
    facts = [
        Fact(label=f"limit of {label}{in_unit}", value=limit, param="", needed=False),
        *shown,
        *(fact for fact in grounding.facts if fact not in shown),
    ]
    what = action_of(tool) + told_of(grounding.facts)
    where = f"the {label} shown when you {action_of(found.tool)}{told_of(shown)}"
    # a figure that the call itself changes has two answers, before and after
    stays = _shown_after(found, call) == found.value
    tell = f" In either case, say what the {label} is." if stays else ""
    goal = Goal(
        tool=tool.name,
        description=tool.spec.description,
        wish=f"Only if {where} is more than {much}, do this: {what}. Otherwise leave it.{tell}",
        misreadings=(
            f"Only if {where} is less than {much}, do this: {what}. Otherwise leave it.{tell}",
            f"Whatever {where} is, do this: {what}.{tell}",
            f"If {where} is more than {much}, leave this: {what}. Do it at once otherwise.{tell}",
        ),
        form="conditional",
        arguments=call.step.arguments,
        labels=grounding.labels,
        known=tuple(facts),
        asks=(Asked(label=label, values=(found.value,)),) if stays else (),
        twin=twin,
        steps=tuple(
            unique_steps(
                [
                    *(s for s in found.grounding.lookups if s not in builder.plan),
                    found.step,
                    *(s for s in grounding.lookups if holds and s not in builder.plan),
                    *([call.step] if holds else []),
                ]
            )
        ),
        writes=holds,
    )
    builder.goals.append(goal)
    if holds:
        builder.keep(goal, call.result, call.after)
    return True


def _unit(builder: Builder, field: str) -> str | None:
    """Of the fields of that name, where all of them have the same."""
    units = {
        spec.fields[field].unit for spec in builder.domain.entities.values() if field in spec.fields
    }
    return units.pop() if len(units) == 1 else None


def _shown_after(found: FoundFigure, call: TriedCall) -> Any:
    again = call.after.snapshot().call(found.step.tool, found.step.arguments)
    return None if again.is_error else again.observation.get(found.field)


def _twin(
    builder: Builder,
    found: FoundFigure,
    tool: DomainTool,
    call: TriedCall,
    limit: int,
    *,
    holds: bool,
) -> dict[str, Any] | None:
    given = found.step.arguments
    shared = {
        name: tuple(
            other
            for other, theirs in tool.spec.params.items()
            if theirs.ref == param.ref and call.step.arguments.get(other) == given[name]
        )
        for name, param in found.tool.spec.params.items()
        if param.ref and name in given
    }
    where = (builder, found.step, found.field, limit, call.step)
    return twin_by_patch(*where, holds=holds) or twin_by_row(*where, shared, holds=holds)
