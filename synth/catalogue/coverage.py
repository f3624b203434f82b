"""What the catalogue of a dataset covers, for the command line and the report."""

from collections import Counter
from typing import NamedTuple

from records.store.dataset import Dataset
from tool_specs.coverage.coverage import (
    Category,
    CoverageCell,
    Overlap,
    categories,
    cells,
    overlaps,
    points,
)
from tool_specs.coverage.coverage_map import map_svg

_COMPARED = (
    "tool_id", "name", "source", "category", "domain_id", "server", "description", "input_schema",
    "drop_reason",
)  # fmt: skip


class Coverage(NamedTuple):
    cells: list[CoverageCell]
    categories: list[Category]
    overlaps: list[Overlap]
    """None where there are too few tools to compare."""
    svg: str | None
    """The map; None where there are too few tools to draw, or it was not asked for."""


def coverage_of(dataset: Dataset, *, draw: bool = True, seed: int = 0) -> Coverage:
    """For 26,000 tools a minute, most of it the map."""
    tools = dataset.rows("tools", _COMPARED)
    found = cells(tools, dataset.rows("domains", ("domain_id", "name", "category")))
    drawn = points(tools, seed=seed) if draw else []
    totals = Counter(tool["source"] for tool in tools if not tool["drop_reason"])
    svg = map_svg(drawn, totals=dict(totals)) if drawn else None
    return Coverage(found, categories(found), overlaps(tools), svg)
