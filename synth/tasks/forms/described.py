"""A goal whose row is not named but described by what sets it apart: the loan that is overdue, the
doctor of the appointment in the east wing. How the person puts it is theirs; readers who see the
other rows' descriptions must know it again.
"""

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from synth.tasks.forms.listings import ShownRows, listings, takers
from synth.tasks.forms.picking import PickedRow, add_about
from synth.tasks.goals.building import Builder
from synth.tasks.goals.knowledge import words_of

LEAST_ROWS = 3
"""Rows among which one has to be found."""

MOST_WORDS = 4
"""Words of a value by which a row is described; more are a text to be quoted."""

DESCRIPTIONS = 3
"""Descriptions tried for each list and tool."""

OTHERS_SHOWN = 2
"""Rows that a reader is shown beside the one that is meant."""

_IN_ORDER = ("enum", "boolean", "string", "date", "datetime", "integer", "number")
"""Types of fields by which rows are described, those that people would use first."""

_CODE = re.compile(r"^[A-Za-z]+[-_/]?\d|\d{4,}|@|://|^\+")
"""Names of rows and addresses: they name, and do not describe."""


class Description(NamedTuple):
    row: dict[str, Any]
    fields: tuple[str, ...]

    def words_for(self, row: dict[str, Any]) -> str:
        """`status overdue and on Sundays no`, of the row in the fields of this description."""
        return " and ".join(f"{words_of(name)} {_said(row[name])}" for name in self.fields)


def add_described(builder: Builder) -> bool:
    """Append such a goal; False where the state and the tools at hand give none."""
    for listing in listings(builder, LEAST_ROWS):
        found = descriptions(builder, listing)[:DESCRIPTIONS]
        if not found:
            continue
        for entity, field in _leading_to(builder, listing):
            for tool, param in takers(builder, entity):
                for description in found:
                    picked = _picked(listing, description, entity, field, param)
                    if picked and add_about(builder, listing, tool, picked, "described"):
                        return True
    return False


def descriptions(builder: Builder, listing: ShownRows) -> list[Description]:
    """What sets a row of the list apart from all others: one field where one does, else two; those
    that people would use first come first, in a seeded order."""
    fields = list(_describing(builder, listing))
    found: list[tuple[int, float, Description]] = []
    for count in (1, 2):
        for names in combinations(fields, count):
            values = [tuple(row[name] for name in names) for row in listing.rows]
            rank = max(_rank(builder, listing, name) for name in names)
            found += [
                (rank + len(_IN_ORDER) * (count - 1), builder.rng.random(), Description(row, names))
                for row, own in zip(listing.rows, values, strict=True)
                if values.count(own) == 1 and None not in own
            ]
        if found:
            break
    return [description for *_, description in sorted(found, key=lambda entry: entry[:2])]


def _describing(builder: Builder, listing: ShownRows) -> Iterator[str]:
    """Fields that every row shows as it is kept, and that name no row."""
    spec = builder.domain.entities[listing.entity]
    kept = [builder.environment.get(listing.entity, row[listing.key]) or {} for row in listing.rows]
    for name, field in spec.fields.items():
        if name == spec.key or name in spec.natural or field.type not in _IN_ORDER:
            continue
        pairs = [
            (row.get(name), own.get(name)) for row, own in zip(listing.rows, kept, strict=True)
        ]
        if all(name in row for row in listing.rows) and all(
            shown == own and _describes(shown) for shown, own in pairs
        ):
            yield name


def _describes(value: Any) -> bool:
    is_text = isinstance(value, str)
    return not is_text or (0 < len(value.split()) <= MOST_WORDS and not _is_code(value))


def _is_code(value: str) -> bool:
    is_moment = re.match(r"\d{4}-\d\d-\d\d", value) is not None
    return not is_moment and _CODE.search(value) is not None


def _rank(builder: Builder, listing: ShownRows, name: str) -> int:
    return _IN_ORDER.index(builder.domain.entities[listing.entity].fields[name].type)


def _leading_to(builder: Builder, listing: ShownRows) -> list[tuple[str, str]]:
    """(entity, field of the list's rows that holds its key), in a seeded order: the rows
    themselves, and those that each of them names."""
    spec = builder.domain.entities[listing.entity]
    found = [(listing.entity, listing.key)]
    for name, field in spec.fields.items():
        if field.type == "ref" and field.to and all(row.get(name) for row in listing.rows):
            found.append((field.to, name))
    return builder.rng.sample(found, len(found))


def _picked(
    listing: ShownRows, description: Description, entity: str, field: str, param: str
) -> PickedRow | None:
    key = description.row[field]
    others = [row for row in listing.rows if row[field] != key]
    if not others:
        return None
    what, listed = words_of(entity), words_of(listing.entity)
    one = "is the one" if field == listing.key else f"is that of the {listed}"

    def which(row: dict[str, Any]) -> str:
        return f"The {what} {one} with {description.words_for(row)}, of {listing.words}."

    return PickedRow(
        param=param,
        key=key,
        others=tuple(dict.fromkeys(row[field] for row in others)),
        which=which(description.row),
        misread=(
            *dict.fromkeys(which(row) for row in others[:OTHERS_SHOWN]),
            f"Any {what} will do, of {listing.words}.",
        ),
    )


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return words_of(value) if isinstance(value, str) else str(value)
