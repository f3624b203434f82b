"""A goal whose row is not named but chosen by comparison: the cheapest, the latest, the fewest."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from synth.tasks.forms.listings import ShownRows, listings, takers
from synth.tasks.forms.trying import TriedCall, told_of, tried, without
from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Goal
from synth.tasks.goals.knowledge import words_of
from synth.tasks.goals.lookup import unique_steps
from synth.tasks.proof.unsolvable import action_of

LEAST_ROWS = 3
"""Rows among which a choice is one."""


def add_chosen(builder: Builder) -> bool:
    """Append such a goal; False where the state and the tools at hand give none."""
    for listing in listings(builder, LEAST_ROWS):
        fields = comparable(builder, listing)
        builder.rng.shuffle(fields)
        for tool, param in takers(builder, listing.entity):
            for field in fields:
                for most in builder.rng.sample((True, False), 2):
                    goal = _goal(builder, listing, tool, param, field, most=most)
                    if goal is not None:
                        return True
    return False


def comparable(builder: Builder, listing: ShownRows) -> list[str]:
    """Fields of the entity that every row shows as they are, numbers or moments."""
    fields = builder.domain.entities[listing.entity].fields
    kept = [builder.environment.get(listing.entity, row[listing.key]) for row in listing.rows]
    return [
        name
        for name in fields
        if all(
            name in shown and _is_ordered(shown[name]) and shown[name] == (row or {}).get(name)
            for shown, row in zip(listing.rows, kept, strict=True)
        )
    ]


def _is_ordered(value: Any) -> bool:
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)


def _goal(
    builder: Builder, listing: ShownRows, tool: DomainTool, param: str, field: str, *, most: bool
) -> Goal | None:
    values = [row[field] for row in listing.rows]
    best = max(values) if most else min(values)
    if values.count(best) != 1:
        return None
    chosen = listing.rows[values.index(best)][listing.key]
    arguments = builder.drawn(tool) | {param: chosen}
    call = tried(builder, tool, arguments)
    if call is None or not any(_others(builder, listing, tool, arguments, param, chosen)):
        return None
    said = without(arguments, param)
    grounding = builder.ground(tool, said)
    facts = [*listing.facts, *(f for f in grounding.facts if f not in listing.facts)]
    asks = builder.asked_of(tool, call.result, facts)
    if tool.read_only and not asks:
        return None
    what = action_of(tool) + told_of(grounding.facts)
    which = extreme(field, values, most=most)
    other = extreme(field, values, most=not most)
    entity = words_of(listing.entity)
    start = f"{what[:1].upper()}{what[1:]}. The {entity} is the one"
    goal = Goal(
        tool=tool.name,
        description=tool.spec.description,
        wish=f"{start} with the {which} of {listing.words}.",
        misreadings=(
            f"{start} with the {other} of {listing.words}.",
            f"{what[:1].upper()}{what[1:]}. Any {entity} will do, of {listing.words}.",
            f"{what[:1].upper()}{what[1:]}. This is meant for every one of {listing.words}.",
        ),
        form="chosen",
        arguments=said,
        labels=grounding.labels,
        known=tuple(facts),
        asks=asks,
        steps=tuple(
            unique_steps(
                [
                    *(s for s in listing.grounding.lookups if s not in builder.plan),
                    listing.step,
                    *(s for s in grounding.lookups if s not in builder.plan),
                    call.step,
                ]
            )
        ),
        writes=not tool.read_only,
    )
    builder.goals.append(goal)
    builder.keep(goal, call.result, call.after)
    return goal


def _others(
    builder: Builder,
    listing: ShownRows,
    tool: DomainTool,
    arguments: dict[str, Any],
    param: str,
    chosen: str,
) -> Iterator[TriedCall]:
    """The same call for other rows of the list, where it would work as well."""
    for row in listing.rows:
        if row[listing.key] != chosen:
            call = tried(builder, tool, arguments | {param: row[listing.key]})
            if call is not None:
                yield call


def extreme(field: str, values: list[Any], *, most: bool) -> str:
    """`latest due on`, `lowest price`."""
    if isinstance(values[0], str):
        return f"{'latest' if most else 'earliest'} {words_of(field)}"
    return f"{'highest' if most else 'lowest'} {words_of(field)}"
