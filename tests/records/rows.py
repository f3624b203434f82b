"""Rows for tests: complete rows of any table from the few columns that a test is about."""

from collections.abc import Mapping
from typing import Any

from records.store.dataset import Dataset, ItemStatus
from records.tables.columns import given_columns
from records.tables.schemas import Row
from records.tables.tables import TABLES


def row(table: str, **values: Any) -> Row:
    """A row of the table; columns that are not named are None."""
    return dict.fromkeys(given_columns(TABLES[table])) | values


def trajectories(*ids: str, **values: Any) -> list[Row]:
    return [row("trajectories", trajectory_id=one, **values) for one in ids]


def commit(
    dataset: Dataset,
    shard: int = 0,
    *,
    stage: str = "rollouts",
    items: Mapping[str, ItemStatus] | None = None,
    supersedes: bool = False,
    **tables: list[Row],
) -> int:
    """Commit the tables as a shard of run `r`."""
    return dataset.commit(
        run_id="r", stage=stage, shard=shard, tables=tables, items=items, supersedes=supersedes
    )
