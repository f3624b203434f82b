"""Rows for tests: complete rows of any table from the few columns that a test is about."""

from typing import Any

from records.columns import given_columns
from records.schemas import TABLES, Row


def row(table: str, **values: Any) -> Row:
    """A row of the table; columns that are not named are None."""
    return dict.fromkeys(given_columns(TABLES[table])) | values


def trajectories(*ids: str, **values: Any) -> list[Row]:
    return [row("trajectories", trajectory_id=one, split="train", **values) for one in ids]
