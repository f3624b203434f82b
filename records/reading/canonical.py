"""Two datasets compared: canonical bytes say whether a table is equal, `differences` say where.

Canonical: the committed rows sorted by primary key, columns in schema order, as one Parquet file.
How the rows were cut into parts, shards and commits does not count, nor which schema version wrote
them: they are read under today's names.
"""

import io
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from records.store.dataset import Dataset
from records.tables.columns import decode, key_of, spec_of
from records.tables.tables import TABLES

CONTENT = tuple(name for name, spec in TABLES.items() if spec.content)
"""The tables that a run's identity decides; the others hold clocks and costs."""


class RowDifference(NamedTuple):
    table: str
    key: Any
    """Primary key; a tuple where it has several columns."""
    column: str | None
    """None: the row is in one dataset only."""
    a: Any
    b: Any
    """The two values; for a missing row True where it is and False where it is not."""


def canonical_bytes(dataset: Dataset, table: str) -> bytes:
    """One Parquet file with the table's rows; equal for equal rows on the same pyarrow."""
    buffer = io.BytesIO()
    # one chunk, since page boundaries follow chunks
    pq.write_table(_content(dataset, table).combine_chunks(), buffer, compression="zstd")
    return buffer.getvalue()


def differences(a: Dataset, b: Dataset, tables: tuple[str, ...] = CONTENT) -> list[RowDifference]:
    """Every value of the tables in which the datasets differ, by table, key and schema order."""
    return [difference for table in tables for difference in _of_table(a, b, table)]


def _content(dataset: Dataset, table: str) -> pa.Table:
    return dataset.arrow(table).drop_columns("schema_version")


def _of_table(a: Dataset, b: Dataset, table: str) -> list[RowDifference]:
    spec = spec_of(table)
    ours, theirs = _content(a, table), _content(b, table)
    if ours.equals(theirs):
        return []
    rows_a = {key_of(spec, row): row for row in decode(spec, ours)}
    rows_b = {key_of(spec, row): row for row in decode(spec, theirs)}
    found = []
    for key in sorted(rows_a.keys() | rows_b.keys()):
        row_a, row_b = rows_a.get(key), rows_b.get(key)
        if row_a is None or row_b is None:
            found.append(RowDifference(table, key, None, row_a is not None, row_b is not None))
            continue
        found += [
            RowDifference(table, key, name, row_a[name], row_b[name])
            for name in ours.column_names
            if row_a[name] != row_b[name]
        ]
    return found
