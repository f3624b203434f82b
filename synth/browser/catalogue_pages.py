"""Environments with their state, and tools with what they do."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from records.tables.schemas import Row
from synth.browser.site import NotThereError, dataset_of, show
from synth.catalogue.tool_card import (
    facts_of,
    neighbours_of,
    parameters_of,
    statement_text,
    tools_named,
)
from synth.catalogue.tool_lists import rows_where
from synth.render.transcript import changes_shown, pretty

router = APIRouter()

STATE_ROWS = 20
"""Of one kind of rows in a domain's seed state, unless all are asked for."""


@router.get("/d/{name}/environments")
def environments(request: Request, name: str) -> HTMLResponse:
    dataset = dataset_of(request, name)
    dataset.newest()
    played = {row["domain"]: row for row in dataset.index.rows(_PLAYED)}
    return show(
        request,
        "environments.html.j2",
        title="Environments and tools",
        dataset=dataset,
        here="environments",
        domains=dataset.kept("domains", lambda: dataset.rows(_DOMAINS)),
        servers=dataset.kept("servers", lambda: dataset.rows(_SERVERS)),
        played=played,
        nothing={"n": 0, "accepted": 0, "errors": 0},
    )


@router.get("/d/{name}/environments/{domain_id:path}")
def environment(request: Request, name: str, domain_id: str) -> HTMLResponse:
    dataset = dataset_of(request, name)
    dataset.newest()
    found = rows_where(dataset.dataset, "domains", "domain_id = ?", [domain_id])
    tools = dataset.rows(_TOOLS, [domain_id])
    if not found and not tools:
        raise NotThereError(f"{name} has no domain and no server {domain_id!r}")
    domain = found[0] if found else None
    called = {row["tool_id"]: row for row in dataset.rows(_CALLED, [[t["tool_id"] for t in tools]])}
    return show(
        request,
        "environment.html.j2",
        title=domain["title"] or domain["name"] if domain else domain_id,
        dataset=dataset,
        here="environments",
        domain=domain,
        domain_id=domain_id,
        facet=domain["name"] if domain else domain_id,
        state=_state(domain) if domain else {},
        most=None if "whole" in request.query_params else STATE_ROWS,
        policy=_texts(domain["policy"]) if domain else [],
        tools=tools,
        called=called,
        trajectories=dataset.index.rows(_TRAJECTORIES, [domain["name"] if domain else domain_id]),
    )


@router.get("/d/{name}/tools/{tool_id:path}")
def tool(request: Request, name: str, tool_id: str) -> HTMLResponse:
    dataset = dataset_of(request, name)
    dataset.newest()
    if not dataset.rows("SELECT 1 AS found FROM tools WHERE tool_id = $1", [tool_id]):
        raise NotThereError(f"{name} has no tool {tool_id!r}")
    row = next(t for t in tools_named(dataset.dataset, tool_id) if t["tool_id"] == tool_id)
    example = row["example"]
    return show(
        request,
        "tool.html.j2",
        title=row["name"],
        dataset=dataset,
        here="environments",
        tool=row,
        facts=[
            (key, str(value)) for key, value in facts_of(row, neighbours_of(dataset.dataset, row))
        ],
        parameters=list(parameters_of(row["input_schema"])),
        statements=[statement_text(one) for one in row["semantics_json"] or ()],
        schemas=[(key, pretty(row[key])) for key in ("input_schema", "output_schema") if row[key]],
        example=example and {key: pretty(example[key]) for key in ("arguments", "observation")},
        changes=changes_shown(example["diff"]) if example else (),
        calls=dataset.rows(_CALLS, [tool_id]),
        counts=dataset.rows(_CALLED, [[tool_id]]),
    )


def _state(domain: Row) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Entity -> the fields and the rows of its seed, as text."""
    order = {entity: fields for entity, fields in domain["field_order"] or ()}
    found = {}
    seed = domain["seed_state"]
    for entity, rows in seed.items() if isinstance(seed, Mapping) else ():
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            found[entity] = ["value"], [[pretty(rows)]]
            continue
        names = list(
            dict.fromkeys([*order.get(entity, ()), *(name for row in rows for name in row)])
        )
        found[entity] = names, [[_cell(row, name) for name in names] for row in rows]
    return found


def _cell(row: Mapping[str, Any], name: str) -> str:
    return pretty(row[name]) if name in row else ""


def _texts(policy: Any) -> list[tuple[str, str]]:
    """Id and words of each rule."""
    rules = policy if isinstance(policy, list) else []
    return [(str(r.get("id", "")), str(r.get("text", ""))) for r in rules if isinstance(r, Mapping)]


_PLAYED = """
SELECT domain, count(*) AS n, count(*) FILTER (accepted) AS accepted,
  sum(num_errors)::BIGINT AS errors
FROM shown GROUP BY ALL"""

_DOMAINS = """
SELECT d.domain_id, d.name, any_value(d.title) AS title, any_value(d.category) AS category,
  any_value(d.split) AS split, count(t.tool_id) FILTER (t.drop_reason IS NULL) AS tools
FROM domains AS d LEFT JOIN tools AS t USING (domain_id)
GROUP BY d.domain_id, d.name ORDER BY d.name"""

_SERVERS = """
SELECT server, count(*) FILTER (drop_reason IS NULL) AS tools, any_value(license) AS license
FROM tools WHERE server IS NOT NULL GROUP BY ALL ORDER BY server"""

_TOOLS = """
SELECT tool_id, name, description, drop_reason, license, split FROM tools
WHERE domain_id = $1 OR server = $1 ORDER BY drop_reason IS NOT NULL, name, tool_id"""

_CALLED = """
SELECT tool_id, count(*) AS n, count(*) FILTER (is_error) AS errors,
  count(DISTINCT trajectory_id) AS trajectories
FROM tool_calls WHERE list_contains($1, tool_id) GROUP BY ALL"""

_CALLS = """
SELECT trajectory_id, call_index, arguments::VARCHAR AS arguments, observation, is_error
FROM tool_calls WHERE tool_id = $1 LIMIT 20"""

_TRAJECTORIES = """
SELECT trajectory_id, accepted, drop_reason, variant, complexity FROM shown
WHERE domain = $1 ORDER BY trajectory_id LIMIT 20"""
