"""Which domains get a batch next: those with the fewest tools, of the categories with the fewest.

Pure: counts in, names out.
"""

from collections.abc import Sequence
from typing import NamedTuple

from records.seeds import share_of

FIRST_YIELD = 0.9
"""Share of the tools asked for that is expected to be kept before any batch has shown it."""


class CellCount(NamedTuple):
    """A cell of the catalogue: a domain of a category."""

    category: str
    domain_id: str
    tools: int


def next_cells(
    cells: Sequence[CellCount], *, missing: int, per_batch: float, seed: int
) -> list[str]:
    """Ids of the domains that get a batch, at most one each, until `missing` tools are in sight.

    `per_batch` is how many tools a batch is expected to give. An empty cell always comes before
    one that is not; among equals the category with fewer tools, then by draw.
    """
    expected: dict[str, float] = {}
    for cell in cells:
        expected[cell.category] = expected.get(cell.category, 0.0) + cell.tools
    order = {cell.domain_id: share_of(cell.domain_id, f"quota:{seed}") for cell in cells}
    open_ = {cell.domain_id: cell for cell in cells}
    in_sight, chosen = 0.0, []
    while open_ and in_sight < missing:
        cell = min(
            open_.values(), key=lambda c: (c.tools, expected[c.category], order[c.domain_id])
        )
        del open_[cell.domain_id]
        chosen.append(cell.domain_id)
        expected[cell.category] += per_batch
        in_sight += per_batch
    return chosen
