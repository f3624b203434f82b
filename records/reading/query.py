"""SQL from a user over a dataset: `run_sql` reads, and can do nothing else."""

import json
from decimal import Decimal
from typing import Any, NamedTuple

import duckdb

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
    with dataset.connect() as connection:
        tables = [name for (name,) in connection.execute("SHOW TABLES").fetchall()]
        # the folder first: without outside access it could not be allowed any more
        connection.execute("SET allowed_directories = [?]", [f"{dataset.root}/tables/"])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        try:
            _check_reads(connection, query)
            # through Arrow: fetching a time with its zone takes a package that is not required
            relation = connection.sql(query)
            assert relation is not None, "a reading statement has a result"
            found = relation.to_arrow_table()
        except duckdb.Error as error:
            raise ConfigError(f"{error}\ntables: {', '.join(tables)}") from error
    columns = [[_plain(value) for value in column.to_pylist()] for column in found.columns]
    return QueryResult(found.column_names, list(zip(*columns, strict=True)))


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


def _plain(value: Any) -> Any:
    """Decimals as numbers: sums of integers are whole ones."""
    if not isinstance(value, Decimal):
        return value
    return int(value) if value.as_tuple().exponent == 0 else float(value)
