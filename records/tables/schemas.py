"""What a table is: one explicit Arrow schema. A row is a plain dict with exactly its columns.

Column order is schema order. Append columns with a default (`TableSpec.defaults`); a column that
changes meaning gets a new name. Open-ended structures (messages, arguments, schemas) are Arrow
JSON columns, text on disk, because Arrow structs fill missing keys with nulls and so corrupt
them; a row holds them as Python values, and the store encodes and decodes. No column is named by
a word that SQL reserves, so that queries need no quotes.
"""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from records.tables import renames

SCHEMA_VERSION = 2
"""Raised when a column or a stored word gets another name (`renames`). Stored on every row, and in
commits with every part."""

Row = dict[str, Any]

JSON = pa.json_(pa.utf8())
STR, INT, FLOAT, BOOL = pa.utf8(), pa.int64(), pa.float64(), pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
STRS = pa.list_(pa.utf8())


@dataclass(frozen=True, slots=True)
class TableSpec:
    name: str
    primary_key: tuple[str, ...]
    schema: pa.Schema
    content: bool
    """Content is what the run's identity decides, compared byte for byte; the rest is measured."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """Values of appended columns for rows written before they existed."""
    owner: str | None = None
    """Table whose row these rows describe, named by its key among their key columns: when a
    retried item supersedes the owner's row, the rows of the old attempt go with it."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Column -> its name in parts of an earlier schema version."""
    reworded: dict[str, dict[str, str]] = field(default_factory=dict)
    """Column -> pattern -> replacement, for the values of such parts."""
    ordered: frozenset[str] = frozenset()
    """JSON columns whose keys are stored in the order of the row: the order of a tool's parameters
    is the author's."""


def table(
    name: str,
    primary_key: tuple[str, ...],
    columns: dict[str, pa.DataType],
    *,
    content: bool,
    owner: str | None = None,
    defaults: dict[str, Any] | None = None,
    ordered: frozenset[str] = frozenset(),
) -> TableSpec:
    """Every table carries `run_id` and `schema_version`, which the store fills in."""
    columns = columns | {"run_id": STR, "schema_version": pa.int32()}
    schema = pa.schema(list(columns.items()))
    return TableSpec(
        name,
        primary_key,
        schema,
        content,
        defaults or {},
        owner,
        renames.COLUMNS.get(name, {}),
        renames.VALUES.get(name, {}),
        ordered,
    )
