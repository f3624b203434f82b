"""Files of an export, written a few rows at a time and synced."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from records.digest import ordered_json
from records.tables.schemas import JSON, STR, Row

FILE_ROWS = 50_000
"""Rows of one Parquet file: some hundred MB of conversations."""

GROUP_ROWS = 1_000
"""Rows of a row group, which are in memory at once."""


def write_parquet(
    folder: Path, split: str, columns: Mapping[str, pa.DataType], rows: Iterator[Row]
) -> int:
    """Write the rows to files named as `load_dataset` expects; how many there were."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = pa.schema(list(columns.items()))
    paths: list[Path] = []
    number = 0
    while (first := next(rows, None)) is not None:
        paths.append(folder / f"{split}-{len(paths):05d}")
        # a handle of ours: its errors carry the system's number, and it can be synced
        with paths[-1].open("wb") as handle:
            with pq.ParquetWriter(handle, schema, compression="zstd") as parquet:
                of_file = _and_then(first, islice(rows, FILE_ROWS - 1))
                while group := list(islice(of_file, GROUP_ROWS)):
                    parquet.write_table(_table(group, schema))
                    number += len(group)
            handle.flush()
            os.fsync(handle.fileno())
    for path in paths:  # only now it is known how many there are
        path.rename(f"{path}-of-{len(paths):05d}.parquet")
    return number


def _and_then(first: Row, rest: Iterable[Row]) -> Iterator[Row]:
    yield first
    yield from rest


def _table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    arrays = []
    for column in schema:
        values = [row[column.name] for row in rows]
        if column.type == JSON:
            texts = [v if v is None or isinstance(v, str) else ordered_json(v) for v in values]
            arrays.append(pa.ExtensionArray.from_storage(JSON, pa.array(texts, STR)))
        else:
            arrays.append(pa.array(values, column.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def write_lines(path: Path, rows: Iterator[Row]) -> int:
    """Write one JSON object a line; how many there were. Without rows there is no file."""
    first = next(rows, None)
    if first is None:
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    number = 0
    with written_text(path) as handle:
        for row in _and_then(first, rows):
            # ASCII: some readers split lines at characters that JSON leaves as they are
            handle.write(json.dumps(row, allow_nan=False) + "\n")
            number += 1
    return number


@contextmanager
def written_text(path: Path, newline: str | None = None) -> Iterator[TextIO]:
    """A text file, synced when it is written."""
    with path.open("w", encoding="utf-8", newline=newline) as handle:
        yield handle
        handle.flush()
        os.fsync(handle.fileno())
