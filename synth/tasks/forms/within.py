"""A goal whose row is the best one within a limit: the fastest that costs at most 40. The best one
of all is beyond the limit, so that it has to be let go."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

from synth.tasks.forms.chosen import comparable, extreme
from synth.tasks.forms.listings import ShownRows, listings, takers
from synth.tasks.forms.picking import PickedRow, add_about
from synth.tasks.goals.building import Builder
from synth.tasks.goals.goals import Fact
from synth.tasks.goals.knowledge import words_of

LEAST_ROWS = 3
"""Rows among which a choice is one."""

LIMITS = 3
"""Limits tried for each list and tool."""


def add_within(builder: Builder) -> bool:
    """Append such a goal; False where the state and the tools at hand give none."""
    for listing in listings(builder, LEAST_ROWS):
        found = list(_within(builder, listing))
        builder.rng.shuffle(found)
        for tool, param in takers(builder, listing.entity):
            for picked in found[:LIMITS]:
                if add_about(builder, listing, tool, picked._replace(param=param), "within"):
                    return True
    return False


def _within(builder: Builder, listing: ShownRows) -> Iterator[PickedRow]:
    """Rows that are the best of those within a limit on another field, the best of all being
    beyond it, and at least two within it."""
    for field, bound in permutations(comparable(builder, listing), 2):
        if isinstance(listing.rows[0][bound], str):
            continue  # a limit is an amount
        for most in (True, False):
            best = _only_best(listing.rows, field, most=most)
            if best is None:
                continue
            lower = sorted({row[bound] for row in listing.rows if row[bound] < best[bound]})
            for limit in lower[1:]:
                left = [row for row in listing.rows if row[bound] <= limit]
                second = _only_best(left, field, most=most)
                if second is not None:
                    yield _picked(listing, second, field, bound, limit, most=most)


def _only_best(rows: list[dict[str, Any]], field: str, *, most: bool) -> dict[str, Any] | None:
    values = [row[field] for row in rows]
    best = max(values) if most else min(values)
    return rows[values.index(best)] if values.count(best) == 1 else None


def _picked(
    listing: ShownRows,
    second: dict[str, Any],
    field: str,
    bound: str,
    limit: float,
    *,
    most: bool,
) -> PickedRow:
    entity, what = words_of(listing.entity), words_of(bound)
    values = [row[field] for row in listing.rows]
    which, other = extreme(field, values, most=most), extreme(field, values, most=not most)
    start = f"The {entity} is the one with the"
    return PickedRow(
        param="",
        key=second[listing.key],
        others=tuple(r[listing.key] for r in listing.rows if r is not second),
        which=f"{start} {which} among those whose {what} is at most {limit}, of {listing.words}.",
        misread=(
            f"{start} {which}, whatever its {what}, of {listing.words}.",
            f"{start} {other} among those whose {what} is at most {limit}, of {listing.words}.",
            f"{start} {which} among those whose {what} is more than {limit}, of {listing.words}.",
            f"{start} highest {what} that is at most {limit}, of {listing.words}.",
        ),
        facts=(Fact(label=f"most {what}", value=limit, param="", needed=False),),
    )
