"""Rows to Arrow and back. A row is a plain dict; JSON columns hold Python values in rows and
canonical JSON text in Arrow's JSON type on disk, but for the order of keys where the table keeps it
(`TableSpec.ordered`); None is null in both.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from records.digest import canonical_json, ordered_json
from records.errors import ConfigError, SynthError
from records.tables.schemas import JSON, SCHEMA_VERSION, Row, TableSpec
from records.tables.tables import TABLES

FILLED_IN = ("run_id", "schema_version")
"""Columns of every table that the store writes itself; rows neither give nor get them."""


def spec_of(table: str) -> TableSpec:
    try:
        return TABLES[table]
    except KeyError:
        raise ConfigError(f"there is no table {table!r}; tables: {', '.join(TABLES)}") from None


def given_columns(spec: TableSpec) -> list[str]:
    """The columns that a row has, in schema order."""
    return [name for name in spec.schema.names if name not in FILLED_IN]


def key_of(spec: TableSpec, row: Row) -> Any:
    """A row's primary key: the value itself for one column, else a tuple."""
    key = tuple(row[name] for name in spec.primary_key)
    return key[0] if len(key) == 1 else key


def encode(table: str, rows: Sequence[Row], *, run_id: str) -> pa.Table:
    """Rows as the Arrow table that goes to disk, with `run_id` and `schema_version` filled in."""
    spec = spec_of(table)
    names = given_columns(spec)
    expected = set(names)
    for row in rows:
        if row.keys() != expected:
            raise SynthError(_wrong_columns(spec, row, expected))
    filled: Row = {"run_id": [run_id] * len(rows), "schema_version": [SCHEMA_VERSION] * len(rows)}
    arrays = [
        pa.array(filled[field.name], field.type)
        if field.name in filled
        else _column(spec, field, rows)
        for field in spec.schema
    ]
    encoded = pa.Table.from_arrays(arrays, schema=spec.schema)
    for name in spec.primary_key:
        if encoded[name].null_count:
            raise SynthError(f"{table}: a row has no {name}, which is part of the primary key")
    return encoded


def decode(spec: TableSpec, stored: pa.Table) -> list[Row]:
    """The rows of an Arrow table with any of the table's columns."""
    columns = []
    for name in stored.column_names:
        values = stored[name].to_pylist()
        if spec.schema.field(name).type == JSON:
            values = [None if text is None else json.loads(text) for text in values]
        columns.append(values)
    return [
        dict(zip(stored.column_names, values, strict=True)) for values in zip(*columns, strict=True)
    ]


def renamed(spec: TableSpec, stored: pa.Table) -> pa.Table:
    """A part of an earlier schema version, any of its columns, under today's names."""
    today = {earlier: name for name, earlier in spec.renamed.items()}
    stored = stored.rename_columns([today.get(name, name) for name in stored.column_names])
    for name in spec.reworded.keys() & set(stored.column_names):
        place = stored.column_names.index(name)
        texts = stored[name].cast(pa.utf8())
        for pattern, replacement in spec.reworded[name].items():
            texts = pc.replace_substring_regex(texts, pattern, replacement)  # type: ignore[attr-defined]
        stored = stored.set_column(place, name, texts.cast(spec.schema.field(name).type))
    return stored


def renamed_row(table: str, row: Row) -> Row:
    """A row that a journal kept, perhaps under an earlier schema version, under today's names. Only
    columns of text are reworded."""
    spec = spec_of(table)
    today = {earlier: name for name, earlier in spec.renamed.items()}
    row = {today.get(name, name): value for name, value in row.items()}
    for name, patterns in spec.reworded.items():
        for pattern, replacement in patterns.items():
            if isinstance(row.get(name), str):
                row[name] = re.sub(pattern, replacement, row[name])
    return row


def aligned(spec: TableSpec, stored: pa.Table, columns: Sequence[str] | None = None) -> pa.Table:
    """A part as the program's schema has it: columns appended since get their defaults."""
    names = spec.schema.names if columns is None else columns
    schema = pa.schema([spec.schema.field(name) for name in names])
    arrays = []
    for field in schema:
        if field.name in stored.column_names:
            arrays.append(stored[field.name].cast(field.type))
        else:
            values = [spec.defaults.get(field.name)] * stored.num_rows
            arrays.append(_array(spec, field, values))
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(spec: TableSpec, field: pa.Field, rows: Sequence[Row]) -> pa.Array:
    values = [row[field.name] for row in rows]
    try:
        return _array(spec, field, values)
    except (ValueError, TypeError, pa.ArrowException) as error:
        row = next((row for row in rows if not _fits(spec, field, row[field.name])), rows[0])
        raise SynthError(
            f"{spec.name}.{field.name} of {key_of(spec, row)!r} must be {field.type}: {error}"
        ) from error


def _array(spec: TableSpec, field: pa.Field, values: list[Any]) -> pa.Array:
    if field.type == JSON:
        written = ordered_json if field.name in spec.ordered else canonical_json
        texts = [None if value is None else written(value) for value in values]
        return pa.ExtensionArray.from_storage(JSON, pa.array(texts, pa.utf8()))
    if pa.types.is_list(field.type):
        for value in values:
            if not isinstance(value, list | None):  # Arrow takes a string for a list of letters
                raise TypeError(f"{value!r} is no list")
    return pa.array(values, field.type)


def _fits(spec: TableSpec, field: pa.Field, value: Any) -> bool:
    try:
        _array(spec, field, [value])
    except (ValueError, TypeError, pa.ArrowException):
        return False
    return True


def _wrong_columns(spec: TableSpec, row: Row, expected: set[str]) -> str:
    missing, unknown = sorted(expected - row.keys()), sorted(row.keys() - expected)
    where = {name: row.get(name) for name in spec.primary_key}
    return (
        f"{spec.name} row {where}: missing columns {missing}, unknown columns {unknown}; "
        f"a row has exactly {given_columns(spec)}"
    )
