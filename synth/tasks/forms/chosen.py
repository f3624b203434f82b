"""A goal whose row is not named but chosen by comparison: the cheapest, the latest, the fewest."""

from datetime import datetime
from typing import Any

from synth.tasks.forms.listings import ShownRows, listings, takers
from synth.tasks.forms.picking import PickedRow, add_about
from synth.tasks.goals.building import Builder
from synth.tasks.goals.knowledge import words_of

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
                    picked = _best(listing, param, field, most=most)
                    if picked and add_about(builder, listing, tool, picked, "chosen"):
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


def _best(listing: ShownRows, param: str, field: str, *, most: bool) -> PickedRow | None:
    values = [row[field] for row in listing.rows]
    best = max(values) if most else min(values)
    if values.count(best) != 1:
        return None
    key = listing.rows[values.index(best)][listing.key]
    entity = words_of(listing.entity)
    which, other = extreme(field, values, most=most), extreme(field, values, most=not most)
    return PickedRow(
        param=param,
        key=key,
        others=tuple(row[listing.key] for row in listing.rows if row[listing.key] != key),
        which=f"The {entity} is the one with the {which} of {listing.words}.",
        misread=(
            f"The {entity} is the one with the {other} of {listing.words}.",
            f"Any {entity} will do, of {listing.words}.",
            f"This is meant for every one of {listing.words}.",
        ),
    )


def extreme(field: str, values: list[Any], *, most: bool) -> str:
    """`latest due on`, `lowest price`."""
    if isinstance(values[0], str):
        return f"{'latest' if most else 'earliest'} {words_of(field)}"
    return f"{'highest' if most else 'lowest'} {words_of(field)}"
