"""A goal about one row of a list that is not named: how the row is to be found is in the wish."""

from typing import Literal, NamedTuple

from synth.tasks.forms.listings import ShownRows
from synth.tasks.forms.trying import told_of, tried, without
from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Fact, Goal, Step
from synth.tasks.goals.lookup import unique_steps
from synth.tasks.proof.unsolvable import action_of


class PickedRow(NamedTuple):
    """The row that a call is about, as a parameter takes it, and which one that is in words."""

    param: str
    key: str
    others: tuple[str, ...]
    """Keys that the parameter could be given in its place."""
    which: str
    """A sentence: `The slot is the one with the lowest price of ...`."""
    misread: tuple[str, ...]
    """Sentences of the same kind for other rows, for any, for all."""
    facts: tuple[Fact, ...] = ()
    """What the person has to say beside the values of the call."""


def add_about(
    builder: Builder,
    listing: ShownRows,
    tool: DomainTool,
    picked: PickedRow,
    form: Literal["chosen", "described", "within"],
) -> bool:
    """Append a goal whose call is about the row; False where the call does not work, or for no
    other one: a goal that only one row allows needs no choice."""
    arguments = builder.drawn(tool) | {picked.param: picked.key}
    call = tried(builder, tool, arguments)
    if call is None or not any(
        tried(builder, tool, arguments | {picked.param: other}) for other in picked.others
    ):
        return False
    said = without(arguments, picked.param)
    grounding = builder.ground(tool, said)
    given = [*picked.facts, *listing.facts]
    facts = [*given, *(fact for fact in grounding.facts if fact not in given)]
    asks = builder.asked_of(tool, call.result, facts)
    if tool.read_only and not asks:
        return False
    what = action_of(tool) + told_of(grounding.facts)
    start = f"{what[:1].upper()}{what[1:]}."
    goal = Goal(
        tool=tool.name,
        description=tool.spec.description,
        wish=f"{start} {picked.which}",
        misreadings=tuple(f"{start} {sentence}" for sentence in picked.misread),
        form=form,
        arguments=said,
        labels=grounding.labels,
        known=tuple(facts),
        asks=asks,
        steps=_steps(builder, listing, [*grounding.lookups, call.step]),
        writes=not tool.read_only,
    )
    builder.goals.append(goal)
    builder.keep(goal, call.result, call.after)
    return True


def _steps(builder: Builder, listing: ShownRows, last: list[Step]) -> tuple[Step, ...]:
    """The look-ups for the list, the list itself, then these; none that has been made already."""
    *lookups, call = last
    return tuple(
        unique_steps(
            [
                *(step for step in listing.grounding.lookups if step not in builder.plan),
                listing.step,
                *(step for step in lookups if step not in builder.plan),
                call,
            ]
        )
    )
