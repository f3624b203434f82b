"""The tools of a dataset, listed and counted by SQL: rows not asked for are not decoded."""

import difflib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import duckdb
from pydantic import Field

from records.config import Config
from records.errors import ConfigError
from records.store.dataset import Dataset
from records.tables.schemas import JSON, Row
from records.tables.tables import TABLES

_FROM = "FROM tools t LEFT JOIN domains d USING (domain_id)"

_COLUMNS = {
    "source": "t.source",
    "category": "t.category",
    "domain": "d.name",
    "server": "t.server",
    "license": "t.license",
    "drop_reason": "t.drop_reason",
    "operator": "t.evolve_op",
}
"""What can be filtered by, and the column that it is."""

USABLE, DROPPED = "none", "any"
"""Words for `drop_reason`: tools that have none, and tools that have any."""


class Filters(Config):
    """Which tools; None takes them all."""

    source: str | None = None
    category: str | None = None
    domain: str | None = None
    server: str | None = None
    license: str | None = None
    drop_reason: str | None = None
    """A reason, or `none` for tools that can be used, or `any` for those that were dropped."""
    operator: str | None = None
    search: str | None = None
    """Words that the name or the description holds, whatever their case."""
    limit: int | None = Field(default=50, ge=1)
    """Rows of a page; None for all."""
    offset: int = Field(default=0, ge=0)


class ToolPage(NamedTuple):
    rows: list[Row]
    total: int
    """Tools that pass the filters, on this page and off it."""


def list_tools(dataset: Dataset, filters: Filters) -> ToolPage:
    """One page, by where they come from and by name. ConfigError for a value that no tool has."""
    where, values = _where(filters)
    with dataset.connect() as db:
        [(total,)] = db.execute(f"SELECT count(*) {_FROM} {where}", values).fetchall()
        if total == 0:
            _explain(db, dataset, filters)
        page = f"{_LIST} {where} ORDER BY 2, 1, tool_id LIMIT ? OFFSET ?"
        limit = total if filters.limit is None else filters.limit
        rows = _rows(db, page, [*values, limit, filters.offset])
    return ToolPage(rows, total)


_LIST = f"""
SELECT t.name, coalesce(t.server, d.name) AS origin, t.category, t.license,
  CASE WHEN json_extract_string(t.annotations, '$.readOnlyHint') = 'true' THEN 'reads'
       WHEN json_extract_string(t.annotations, '$.destructiveHint') = 'false' THEN 'adds'
       WHEN json_extract_string(t.annotations, '$.readOnlyHint') = 'false' THEN 'writes'
       ELSE 'unknown' END AS behaves,
  t.semantics_json IS NOT NULL AS executes, t.split, t.drop_reason, t.description, t.tool_id
{_FROM}"""


def _where(filters: Filters) -> tuple[str, list[Any]]:
    terms, values = ["true"], []
    for name, column in _COLUMNS.items():
        value = getattr(filters, name)
        if name == "drop_reason" and value in (USABLE, DROPPED):
            terms.append(f"{column} IS {'NOT ' if value == DROPPED else ''}NULL")
        elif value is not None:
            terms.append(f"{column} = ?")
            values.append(value)
    if filters.search is not None:
        terms.append("(contains(lower(t.name), ?) OR contains(lower(t.description), ?))")
        values += [filters.search.lower()] * 2
    return f"WHERE {' AND '.join(terms)}", values


def _explain(db: duckdb.DuckDBPyConnection, dataset: Dataset, filters: Filters) -> None:
    """Say which value no tool has, and what there is; silent where each has some and only their
    meeting has none."""
    for name, column in _COLUMNS.items():
        value = getattr(filters, name)
        if value is None or (name == "drop_reason" and value in (USABLE, DROPPED)):
            continue
        query = f"SELECT DISTINCT {column} {_FROM} WHERE {column} IS NOT NULL ORDER BY 1"
        known = [found for (found,) in db.execute(query).fetchall()]
        if value not in known:
            close = difflib.get_close_matches(value, known, n=5, cutoff=0.4)
            shown = close or known[:10]
            more = "" if close or len(known) <= 10 else f" and {len(known) - 10} more"
            there = f"{'close to it' if close else 'there are'}: {', '.join(shown)}{more}"
            raise ConfigError(
                f"no tool of {dataset.root} has the {name.replace('_', ' ')} {value!r}; "
                f"{there if known else 'none has any'}"
            )


def rows_where(dataset: Dataset, table: str, condition: str, values: Sequence[Any]) -> list[Row]:
    """Whole rows of a table for which an SQL condition holds, decoded, by primary key."""
    spec = TABLES[table]
    encoded = {column.name for column in spec.schema if column.type == JSON}
    names = ", ".join(spec.schema.names)
    query = f"SELECT {names} FROM {table} WHERE {condition} ORDER BY {', '.join(spec.primary_key)}"
    with dataset.connect() as db:
        rows = _rows(db, query, values)
    return [
        {n: json.loads(v) if n in encoded and v is not None else v for n, v in row.items()}
        for row in rows
    ]


def tool_stats(dataset: Dataset) -> dict[str, list[Row]]:
    """Counts by name of the section, each a list of rows."""
    with dataset.connect() as db:
        return {name: _rows(db, query, []) for name, query in _STATS.items()}


_STATS = {
    "tools": f"""
SELECT t.source, count(*) AS tools, count(*) FILTER (t.drop_reason IS NULL) AS usable,
  count(*) FILTER (t.drop_reason IS NOT NULL) AS dropped,
  count(*) FILTER (t.semantics_json IS NOT NULL AND t.drop_reason IS NULL) AS executes,
  count(DISTINCT coalesce(t.server, t.domain_id)) AS sources
{_FROM} GROUP BY ALL ORDER BY 1""",
    "categories": f"""
SELECT t.source, t.category, count(DISTINCT coalesce(t.server, t.domain_id)) AS sources,
  count(*) AS usable,
  count(*) FILTER (json_extract_string(t.annotations, '$.readOnlyHint') = 'true') AS reads
{_FROM} WHERE t.drop_reason IS NULL GROUP BY ALL ORDER BY 1 DESC, 4 DESC, 2""",
    "operators": f"""
SELECT t.evolve_op AS operator, t.generation, count(*) AS tools
{_FROM} WHERE t.drop_reason IS NULL GROUP BY ALL ORDER BY 2, 3 DESC, 1""",
    "licenses": f"""
SELECT t.source, t.license, count(*) AS tools
{_FROM} WHERE t.drop_reason IS NULL GROUP BY ALL ORDER BY 3 DESC, 1, 2""",
    "dropped": f"""
SELECT t.source, t.drop_reason, count(*) AS tools
{_FROM} WHERE t.drop_reason IS NOT NULL GROUP BY ALL ORDER BY 3 DESC, 1, 2""",
    "splits": f"""
SELECT t.source, t.split, count(*) AS tools
{_FROM} WHERE t.drop_reason IS NULL GROUP BY ALL ORDER BY 1, 3 DESC""",
}


def _rows(db: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any]) -> list[Row]:
    cursor = db.execute(query, list(values))
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
