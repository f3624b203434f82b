"""The answer to a query as rows."""

from collections.abc import Sequence
from typing import Any

import duckdb

from records.tables.schemas import Row


def rows_of(db: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] = ()) -> list[Row]:
    """A dictionary a row, by column; `values` stand for `$1`, `$2`, ..."""
    cursor = db.execute(query, list(values))
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
