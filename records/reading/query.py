"""SQL from a user over a dataset: `run_sql` and `LockedViews` read, and can do nothing else."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from records.errors import ConfigError
from records.store.dataset import Dataset

_READING = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
"""Nodes of a parsed query that read. INSERT, UPDATE, DELETE and COPY are nodes too, in a WITH."""


class QueryResult(NamedTuple):
    columns: list[str]
    rows: list[tuple[Any, ...]]


def run_sql(dataset: Dataset, query: str) -> QueryResult:
    """One reading statement (SELECT, FROM, SHOW, DESCRIBE, SUMMARIZE) over the dataset's views.

    Sees the tables' parts and no other file, loads no extension, changes nothing. JSON columns
    come as text. A query that is wrong is a ConfigError that names the tables.
    """
    with LockedViews(dataset) as views:
        return views.run(query)


class LockedViews:
    """The dataset's views as they are now, in a DuckDB that reads and can do nothing else.

    Threads may share it. `memory` bounds what all its queries together take, such as `1GB`; what
    does not fit is an error, for nothing is written to the disk either.
    """

    def __init__(self, dataset: Dataset, *, memory: str | None = None) -> None:
        self._connection = dataset.connect()
        tables = self._connection.execute("SHOW TABLES").fetchall()
        self._tables = [name for (name,) in tables]
        if memory is not None:
            self._connection.execute("SET temp_directory = ''")
            self._connection.execute("SET memory_limit = $1", [memory])
        # the folder first: without outside access it could not be allowed any more
        self._connection.execute("SET allowed_directories = [?]", [f"{dataset.root}/tables/"])
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def __enter__(self) -> "LockedViews":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """For queries of the program's own, which come with values; to be closed."""
        return self._connection.cursor()

    def run(
        self, query: str, *, most_rows: int | None = None, timeout_s: float | None = None
    ) -> QueryResult:
        """As `run_sql`; the first `most_rows` rows, and a ConfigError after `timeout_s` seconds."""
        with self._connection.cursor() as cursor, _interrupted_after(cursor, timeout_s) as stopped:
            try:
                _check_reads(cursor, query)
                # through Arrow: fetching a time with its zone takes a package that is not required
                relation = cursor.sql(query)
                assert relation is not None, "a reading statement has a result"
                found = _read(relation, most_rows)
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                # once rows flow, what DuckDB raises comes as an error of Arrow's
                if stopped.is_set():
                    raise stopped_query(timeout_s) from error
                raise ConfigError(f"{error}\ntables: {', '.join(self._tables)}") from error
        columns = [
            _values(name, column)
            for name, column in zip(found.column_names, found.columns, strict=True)
        ]
        return QueryResult(found.column_names, list(zip(*columns, strict=True)))


def stopped_query(timeout_s: float | None) -> ConfigError:
    """What is said of a query that took too long."""
    return ConfigError(
        f"the query was stopped after {timeout_s:g} s; narrow it, or run it with `synth sql`, "
        "which waits"
    )


_BATCH_ROWS = 2_000
"""Read at once of a result that is cut off."""


def _read(relation: duckdb.DuckDBPyRelation, most_rows: int | None) -> pa.Table:
    if most_rows is None:
        return relation.to_arrow_table()
    reader = relation.to_arrow_reader(min(most_rows, _BATCH_ROWS))
    batches: list[pa.RecordBatch] = []
    for batch in reader:
        batches.append(batch)
        if sum(b.num_rows for b in batches) >= most_rows:
            break
    return pa.Table.from_batches(batches, reader.schema).slice(0, most_rows)


@contextmanager
def _interrupted_after(
    connection: duckdb.DuckDBPyConnection, timeout_s: float | None
) -> Iterator[threading.Event]:
    """An event that says whether it was."""
    stopped = threading.Event()
    if timeout_s is None:
        yield stopped
        return

    def stop() -> None:
        stopped.set()
        connection.interrupt()

    timer = threading.Timer(timeout_s, stop)
    timer.daemon = True
    timer.start()
    try:
        yield stopped
    finally:
        timer.cancel()


def _check_reads(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Refuse what is not one reading statement: allowed folders may be written to as well."""
    sql = "SELECT json_serialize_sql(?::VARCHAR)"
    [(serialized,)] = connection.execute(sql, [query]).fetchall()
    tree = json.loads(serialized)
    if tree["error"] and tree["error_type"] == "parser":
        connection.execute(query)  # the same error with the place marked
    if tree["error"] or len(tree["statements"]) != 1 or not _nodes(tree) <= _READING:
        raise ConfigError(
            "only one reading statement at a time: SELECT, FROM, SHOW, DESCRIBE or SUMMARIZE "
            "(PIVOT inside a WITH, with its values in IN)"
        )


def _nodes(tree: Any) -> set[str]:
    """The kinds of query in a parsed statement, however deep."""
    if isinstance(tree, list):
        return set().union(*map(_nodes, tree))
    if not isinstance(tree, dict):
        return set()
    kind = tree.get("type")
    own = {kind} if isinstance(kind, str) and kind.endswith("_NODE") else set()
    return own.union(*map(_nodes, tree.values()))


def _values(name: str, column: pa.ChunkedArray) -> list[Any]:
    """The column as plain Python."""
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError) as error:
        raise ConfigError(
            f"column {name!r} holds a date or a time that cannot be shown ({error}); "
            f"ask for it as text: {name}::VARCHAR"
        ) from error
    plain = pa.types.is_decimal(column.type) or pa.types.is_nested(column.type)
    return [_plain(value) for value in values] if plain else values


def _plain(value: Any) -> Any:
    """Decimals as numbers, also within structures: sums of integers are whole ones."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if not isinstance(value, Decimal):
        return value
    return int(value) if value.as_tuple().exponent == 0 else float(value)
