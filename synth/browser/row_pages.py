"""Every row of every table by an address of its own, and queries that somebody writes."""

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from records.errors import ConfigError
from records.tables.schemas import JSON, Row
from records.tables.tables import TABLES
from synth.browser.opened import SQL_TIMEOUT_S, ShownDataset
from synth.browser.site import NotThereError, dataset_of, link, show, whole_number
from synth.render.transcript import pretty

router = APIRouter()

PAGE_ROWS = 50

SQL_ROWS = 500
"""Shown of the answer to a query."""

MOST_SQL_CHARS = 20_000

MOST_CELL_CHARS = 2_000
"""Of a value in a list."""

PAGE_OF = {
    "trajectory_id": "trajectories",
    "episode_id": "trajectories",
    "chosen_id": "trajectories",
    "rejected_id": "trajectories",
    "tool_id": "tools",
    "domain_id": "environments",
    "rephrasing_id": "rewrites",
}
"""Column -> the page that shows what it names."""

TABLE_OF = {
    spec.primary_key[0]: name for name, spec in TABLES.items() if len(spec.primary_key) == 1
} | {"parent_task_id": "tasks", "run_id": "runs", "invocation_id": "runs"}
"""Column -> the table whose rows it names."""

EXAMPLES = (
    (
        "Which criteria reject",
        "select failed_criterion, attributed_to, count(*) as n from trajectories\n"
        "where not accepted group by all order by n desc",
    ),
    (
        "Calls that broke a rule",
        "select trajectory_id, name, arguments, policy_violations from tool_calls\n"
        "where len(policy_violations) > 0",
    ),
    (
        "Where code and judge differ",
        "select c.trajectory_id, c.criterion_id, c.passed as code, j.passed as judge\n"
        "from verdicts c join verdicts j using (grading_id, trajectory_id, criterion_id)\n"
        "where c.checked_by = 'code' and j.checked_by = 'judge' and c.passed != j.passed",
    ),
)


@router.get("/d/{name}/sql")
def sql(request: Request, name: str) -> HTMLResponse:
    dataset = dataset_of(request, name)
    query, problem, found = request.query_params.get("q", "").strip(), "", None
    if len(query) > MOST_SQL_CHARS:
        raise ConfigError(f"a query has at most {MOST_SQL_CHARS:,} characters here")
    if query:
        try:
            found = dataset.sql(query, most_rows=SQL_ROWS + 1)
        except ConfigError as error:  # shown beside the form, with what was written
            problem = str(error)
    columns = found.columns if found else []
    return show(
        request,
        "sql.html.j2",
        title="SQL",
        dataset=dataset,
        here="sql",
        query=query,
        problem=problem,
        columns=columns,
        rows=[_cells(dataset, columns, row) for row in found.rows[:SQL_ROWS]] if found else None,
        is_cut=found is not None and len(found.rows) > SQL_ROWS,
        most=SQL_ROWS,
        seconds=SQL_TIMEOUT_S,
        is_filter="trajectory_id" in columns,
        examples=EXAMPLES,
        tables=TABLES,
    )


@router.get("/d/{name}/rows")
def tables(request: Request, name: str) -> HTMLResponse:
    dataset = dataset_of(request, name)
    counts: dict[str, int] = dict.fromkeys(TABLES, 0)
    for commit in dataset.dataset.commits():
        for part in commit.parts:
            counts[part.table] += part.rows
    return show(
        request,
        "tables.html.j2",
        title="Tables",
        dataset=dataset,
        here="rows",
        counts=counts,
        specs=TABLES,
    )


@router.get("/d/{name}/rows/{table}")
def rows(request: Request, name: str, table: str) -> HTMLResponse:
    """The rows that have these values, as a list; the whole row where its key is given."""
    dataset = dataset_of(request, name)
    if table not in TABLES:
        raise NotThereError(f"there is no table {table!r}; tables: {', '.join(TABLES)}")
    spec, page = TABLES[table], whole_number(request, "page")
    given = {key: value for key, value in request.query_params.items() if key != "page"}
    if unknown := [key for key in given if key not in spec.schema.names]:
        raise ConfigError(f"{table} has no column {unknown[0]!r}; it has {spec.schema.names}")
    values = list(given.values())
    conditions = [f"{key}::VARCHAR = ${number}" for number, key in enumerate(given, 1)]
    where = " AND ".join(["true", *conditions])
    if set(spec.primary_key) <= given.keys():
        found = dataset.rows(f"SELECT * FROM {table} WHERE {where} LIMIT 1", values)
        if not found:
            raise NotThereError(f"{name} has no row of {table} with {given}")
        return show(
            request,
            "row.html.j2",
            title=f"A row of {table}",
            dataset=dataset,
            here="rows",
            table=table,
            fields=[(key, _link(dataset, key, v), _text(v)) for key, v in found[0].items()],
            describing=_describing(dataset, table, found[0]),
        )
    # long structures are for the row's own page; keys come first
    short = [f.name for f in spec.schema if f.type != JSON and f.name not in spec.primary_key]
    columns = [*spec.primary_key, *short]
    found = dataset.rows(
        f"SELECT {', '.join(columns)} FROM {table} WHERE {where} "
        f"LIMIT {PAGE_ROWS + 1} OFFSET {page * PAGE_ROWS}",
        values,
    )
    return show(
        request,
        "rows.html.j2",
        title=f"Rows of {table}",
        dataset=dataset,
        here="rows",
        table=table,
        given=given,
        columns=columns,
        rows=[
            (
                link(dataset, "rows", table, **{key: row[key] for key in spec.primary_key}),
                _cells(dataset, columns, tuple(row.values())),
            )
            for row in found[:PAGE_ROWS]
        ],
        page=page,
        has_more=len(found) > PAGE_ROWS,
    )


@router.get("/d/{name}/find")
def find(request: Request, name: str) -> Response:
    """On to the row whose id begins so, or the list of those that do."""
    dataset = dataset_of(request, name)
    dataset.newest()
    beginning = request.query_params.get("id", "").strip()
    if not beginning:
        raise ConfigError("write the id, or its beginning, of what is to be found")
    found = dataset.index.rows(_BEGINNING, [beginning])
    if len(found) == 1:
        where = link(dataset, "trajectories", found[0]["trajectory_id"])
        return RedirectResponse(where, 303)
    if found:
        return RedirectResponse(link(dataset, "trajectories", id=beginning), 303)
    for table, key in FOUND_IN.items():
        rows = dataset.rows(
            f"SELECT {key} FROM {table} WHERE starts_with({key}, $1) LIMIT 2", [beginning]
        )
        if rows:
            return RedirectResponse(_link(dataset, key, rows[0][key]) or "", 303)
    raise NotThereError(f"nothing in {name} has an id that begins with {beginning!r}")


FOUND_IN = {
    "tasks": "task_id",
    "tools": "tool_id",
    "domains": "domain_id",
    "agents": "agent_id",
    "personas": "persona_id",
    "rephrasings": "rephrasing_id",
    "llm_calls": "call_id",
    "runs": "run_id",
}
"""Tables in which an id is looked for, beside the trajectories."""


def _cells(
    dataset: ShownDataset, columns: list[str], row: tuple[Any, ...]
) -> list[tuple[str | None, str]]:
    """Where each value leads, and its text."""
    return [
        (_link(dataset, column, value), _text(value)[:MOST_CELL_CHARS])
        for column, value in zip(columns, row, strict=True)
    ]


def _link(dataset: ShownDataset, column: str, value: Any) -> str | None:
    if not isinstance(value, str) or not value:
        return None
    if column in PAGE_OF:
        return link(dataset, PAGE_OF[column], value)
    if column in TABLE_OF:
        return link(dataset, "rows", TABLE_OF[column], **{_key(column): value})
    return None


def _key(column: str) -> str:
    return "task_id" if column == "parent_task_id" else column


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return pretty(value) if value else ""
    # structures may hold times, which JSON does not know
    return pretty(json.dumps(value, default=str)) if isinstance(value, list | dict) else str(value)


def _describing(dataset: ShownDataset, table: str, row: Row) -> list[tuple[str, str]]:
    """Tables whose rows describe this one, and where they are."""
    key = TABLES[table].primary_key
    if len(key) != 1:
        return []
    return [
        (name, link(dataset, "rows", name, **{key[0]: row[key[0]]}))
        for name, spec in TABLES.items()
        if name != table and key[0] in spec.schema.names
    ]


_BEGINNING = """
SELECT trajectory_id FROM shown WHERE starts_with(trajectory_id, $1) ORDER BY 1 LIMIT 2"""
