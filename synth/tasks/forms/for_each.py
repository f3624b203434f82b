"""A goal for every row of a set that is told by its filter alone."""

from typing import Any

from synth.tasks.forms.listings import ShownRows, listings, takers
from synth.tasks.forms.trying import TriedCall, told_of, tried, without
from synth.tasks.goals.building import Builder
from synth.tasks.goals.domain_tools import DomainTool
from synth.tasks.goals.goals import Goal
from synth.tasks.goals.knowledge import words_of
from synth.tasks.goals.lookup import unique_steps
from synth.tasks.proof.unsolvable import action_of

LEAST, MOST = 2, 8
"""Rows of a set."""


def add_for_each(builder: Builder) -> bool:
    """Append such a goal; False where the state and the tools at hand give none."""
    for listing in listings(builder, LEAST):
        sets = _sets(builder, listing)
        for tool, param in takers(builder, listing.entity):
            if tool.read_only:
                continue
            for told, keys in sets:
                if LEAST <= len(keys) <= MOST and _add(builder, listing, tool, param, told, keys):
                    return True
    return False


def _sets(builder: Builder, listing: ShownRows) -> list[tuple[str, list[str]]]:
    """(what tells them apart, keys): rows of one value of a shown field of few values, and last
    all rows of a list that was narrowed."""
    fields = builder.domain.entities[listing.entity].fields
    found: list[tuple[str, list[str]]] = []
    for name, field in fields.items():
        if field.type not in ("enum", "boolean") or not all(name in row for row in listing.rows):
            continue
        for value in sorted({row[name] for row in listing.rows if row[name] is not None}, key=str):
            keys = [row[listing.key] for row in listing.rows if row[name] == value]
            if len(keys) < len(listing.rows):
                said = {True: "yes", False: "no"}.get(value, value)
                found.append((f"whose {words_of(name)} is {said}, ", keys))
    builder.rng.shuffle(found)
    if listing.step.arguments:
        found.append(("", [row[listing.key] for row in listing.rows]))
    return found


def _add(
    builder: Builder, listing: ShownRows, tool: DomainTool, param: str, told: str, keys: list[str]
) -> bool:
    arguments = builder.drawn(tool)
    calls = _calls(builder, tool, [arguments | {param: key} for key in keys])
    if calls is None:
        return False
    said = without(arguments, param)
    grounding = builder.ground(tool, said)
    facts = [*listing.facts, *(f for f in grounding.facts if f not in listing.facts)]
    what = action_of(tool) + told_of(grounding.facts)
    start = f"{what[:1].upper()}{what[1:]}. This is wanted"
    goal = Goal(
        tool=tool.name,
        description=tool.spec.description,
        wish=f"{start} for every one, {told}of {listing.words}, and for no other.",
        misreadings=(
            f"{start} for one alone, {told}of {listing.words}.",
            f"{start} for every one, {told}of {listing.words}, but for the first.",
            f"{start} for every {words_of(listing.entity)} there is.",
        ),
        form="for_each",
        arguments=said,
        labels=grounding.labels,
        known=tuple(facts),
        steps=tuple(
            unique_steps(
                [
                    *(s for s in listing.grounding.lookups if s not in builder.plan),
                    listing.step,
                    *(s for s in grounding.lookups if s not in builder.plan),
                    *(call.step for call in calls),
                ]
            )
        ),
        writes=True,
    )
    builder.goals.append(goal)
    for call in calls:
        builder.keep(goal, call.result, call.after)
    return True


def _calls(
    builder: Builder, tool: DomainTool, arguments: list[dict[str, Any]]
) -> list[TriedCall] | None:
    """The calls one after another; None where one of them fails, in this order or the other, or
    brings about nothing beside the rest."""
    orders = [_in_order(builder, tool, order) for order in (arguments[::-1], arguments)]
    made = orders[1]
    if made is None or orders[0] is None:
        return None
    for left_out in arguments:
        rest = _in_order(builder, tool, [given for given in arguments if given is not left_out])
        if rest is not None and rest[-1].after.state_hash == made[-1].after.state_hash:
            return None
    return made


def _in_order(
    builder: Builder, tool: DomainTool, arguments: list[dict[str, Any]]
) -> list[TriedCall] | None:
    made: list[TriedCall] = []
    for given in arguments:
        call = tried(builder, tool, given, made[-1].after if made else None)
        if call is None:
            return None
        made.append(call)
    return made
