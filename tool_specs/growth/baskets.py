"""Lists of things with numbers, such as the lines of an order, and the total that they come to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from tool_specs.execution.state import EntityRow
from tool_specs.language.domain_file import DomainFile, EntitySpec

Rows = Mapping[str, Mapping[str, EntityRow]]
"""Entity -> key -> row."""

_FEWEST = 4
"""Rows that show what a total is."""


class Basket(NamedTuple):
    """`total` of a row is the sum of `amount` times the `price` of the row that `item` names, over
    the parts in `field`."""

    field: str
    item: str
    to: str
    amount: str
    price: str
    total: str


def basket_of(
    entity: EntitySpec, rows: Sequence[EntityRow], file: DomainFile, seed: Rows
) -> Basket | None:
    """The basket that rows of the entity are, where their seed shows one. Parts that name no row
    any more are left aside."""
    for basket in _baskets(entity, file):
        sums = [_sum(row, basket, seed) for row in rows]
        known = [(row[basket.total], s) for row, s in zip(rows, sums, strict=True) if s is not None]
        if len(known) >= _FEWEST and all(a is not None and abs(a - b) < 0.006 for a, b in known):
            return basket
    return None


def fill(
    row: EntityRow,
    basket: Basket,
    rows: Rows,
    sibling: Callable[[str, str], str],
    rng: Random,
) -> None:
    """Other things in the basket, each a `sibling` of what is there, and their total."""
    parts = []
    for part in row[basket.field]:
        key = sibling(basket.to, part[basket.item])
        amount = part[basket.amount] if rng.random() < 0.7 else rng.randint(1, 3)
        parts.append(part | {basket.item: key, basket.amount: amount})
    filled = row | {basket.field: parts}
    total = _sum(filled, basket, rows)
    if total is not None:
        row |= filled | {basket.total: int(total) if total == int(total) else total}


def _sum(row: EntityRow, basket: Basket, rows: Rows) -> float | None:
    targets = [rows[basket.to].get(part[basket.item]) for part in row[basket.field] or ()]
    if not targets or None in targets:
        return None
    pairs = zip(row[basket.field], targets, strict=True)
    return round(sum(part[basket.amount] * t[basket.price] for part, t in pairs if t), 2)


def _baskets(entity: EntitySpec, file: DomainFile) -> Iterator[Basket]:
    totals = [n for n, f in entity.fields.items() if f.type in ("integer", "number")]
    for field, spec in entity.fields.items():
        members = spec.properties or {} if spec.type == "list" else {}
        amounts = [n for n, f in members.items() if f.type == "integer"]
        for item in (n for n, f in members.items() if f.type in ("string", "ref")):
            for to, other in file.entities.items():
                if other.key != item and members[item].to != to:
                    continue
                prices = [n for n, f in other.fields.items() if f.type == "number"]
                for amount in amounts:
                    for price in prices:
                        yield from (Basket(field, item, to, amount, price, t) for t in totals)
