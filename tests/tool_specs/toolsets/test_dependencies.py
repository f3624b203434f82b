"""Dependency graph: what tools give and ask for, and the edges that follow."""

from functools import cache
from typing import Any

import pytest

from records.digest import digest
from records.tables.schemas import Row
from tool_specs.domains.catalogue import domain_row, tool_rows
from tool_specs.domains.domain import Domain, load_domains
from tool_specs.toolsets.dependencies import Graph
from tool_specs.toolsets.io_types import io_types_of, scalar_of
from tool_specs.toolsets.nouns import asked_by, subject_of


@cache
def builtin() -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    domains = load_domains()
    return tuple(t for d in domains for t in tool_rows(d)), tuple(map(domain_row, domains))


def mcp(server: str, name: str, *required: str, output: Any = None, **optional: str) -> Row:
    """A tool of a server; parameters are texts unless said otherwise."""
    kinds = dict.fromkeys(required, "string") | optional
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in kinds.items()},
        "required": list(required),
    }
    return {
        "tool_id": digest(server, name),
        "name": name,
        "category": "Development",
        "domain_id": None,
        "server": server,
        "description": f"{name}.",
        "input_schema": schema,
        "output_schema": output,
        "semantics_json": None,
        "drop_reason": None,
    }


def edges(*tools: Row) -> set[tuple[str, str, str, bool]]:
    graph = Graph(tools)
    names = dict(zip(graph.ids, graph.names, strict=True))
    found = graph.edges_among(range(len(graph.ids)))
    return {(names[e.giver], names[e.taker], e.carries, e.required) for e in found}


@pytest.mark.parametrize(
    ("tool", "server", "noun", "gives"),
    [
        ("list_pull_requests", "github", "pull request", True),
        ("getIssuesByLabel", "tracker", "issue", True),
        ("github-search-repos", "github", "repository", True),
        ("crm_companies_create", "crm", "company", True),
        ("delete_file", "files", "file", False),
        ("add", "sums", "", True),
        ("sequentialthinking", "thoughts", "", False),
    ],
)
def test_a_tool_name_says_what_it_is_about(tool: str, server: str, noun: str, gives: bool) -> None:
    assert subject_of(tool, server)[:2] == (noun, gives)


@pytest.mark.parametrize(
    ("parameter", "noun", "is_id"),
    [
        ("issue_id", "issue", True),
        ("issueIds", "issue", True),
        ("pullRequestNumber", "pull request", True),
        ("page_number", "", True),
        ("channel_name", "channel", False),
        ("repo", "repository", False),
        ("id", "card", True),
        ("limit", "", False),
        ("page_size", "", False),
        ("messageId", "message", True),
        ("message", "", False),
    ],
)
def test_a_parameter_name_says_what_it_asks_for(parameter: str, noun: str, is_id: bool) -> None:
    assert asked_by(parameter, "card") == (noun, is_id)


@pytest.mark.parametrize(
    ("schema", "scalar"),
    [
        ({"type": "string"}, "text"),
        ({"type": ["null", "integer"]}, "number"),
        ({"type": "array", "items": {"type": "string"}}, "text"),
        ({"type": "string", "enum": ["a"]}, None),
        ({"type": "string", "format": "date"}, None),
        ({"type": "object"}, None),
        (True, None),
    ],
)
def test_scalars_of_schemas(schema: Any, scalar: str | None) -> None:
    assert scalar_of(schema) == scalar


def test_a_list_feeds_what_asks_for_an_id_on_the_same_server_only() -> None:
    found = edges(
        mcp("git", "list_issues", "repo"),
        mcp("git", "close_issue", "issue_number", comment="string"),
        mcp("other", "get_issue", "issue_id"),
    )
    assert found == {("list_issues", "close_issue", "issue", True)}


def test_values_travel_between_servers_and_ids_do_not() -> None:
    found = edges(
        mcp("maps", "find_city", "query"),
        mcp("sky", "get_forecast", "city"),
        mcp("trips", "get_city_guide", "city_id"),
        mcp("trips", "plan_trip", days="integer", city="string"),
    )
    assert found == {
        ("find_city", "get_forecast", "city", True),
        ("find_city", "plan_trip", "city", False),
    }


def test_what_an_answer_repeats_of_the_arguments_feeds_nobody() -> None:
    get, close = mcp("git", "get_issue", "issue_id"), mcp("git", "close_issue", "issue_id")
    assert edges(get, close) == set()


def test_what_makes_a_thing_gives_it_though_the_caller_names_it() -> None:
    found = edges(mcp("box", "add_note", "id"), mcp("box", "delete_note", "id"))
    assert found == {("add_note", "delete_note", "note", True)}


def test_an_output_schema_is_believed_where_there_is_one() -> None:
    rows = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}}
    output = {"type": "object", "properties": {"boards": rows, "owner_id": {"type": "string"}}}
    giver = mcp("desk", "overview", output=output)
    found = edges(giver, mcp("desk", "open_board", "boardId"), mcp("desk", "tell", "owner_id"))
    assert found == {("overview", "open_board", "board", True), ("overview", "tell", "owner", True)}


@pytest.mark.parametrize(
    "schema", [None, True, [], {"properties": 3}, {"properties": {"id": None}}]
)
def test_odd_schemas_have_no_ports(schema: Any) -> None:
    row = {**mcp("odd", "count"), "input_schema": schema, "output_schema": schema}
    assert not any(io_types_of(row, None))


def test_references_of_synthetic_tools_are_typed_by_entity() -> None:
    tools, domains = builtin()
    graph = Graph(tools, domains)
    clinic = next(d["domain_id"] for d in domains if d["name"] == "clinic_desk")
    names = dict(zip(graph.ids, graph.names, strict=True))
    found = {
        (names[e.giver], names[e.taker], e.carries)
        for e in graph.edges_among(graph.by_source[clinic])
    }
    assert ("find_patients", "book_appointment", "patient") in found
    assert ("list_free_slots", "book_appointment", "slot") in found
    assert ("list_appointments", "cancel_appointment", "appointment") in found
    assert not any(giver == "cancel_appointment" for giver, _, _ in found)


def test_every_reference_that_a_parameter_declares_is_found() -> None:
    """The oracle is the domain file's `ref`, which rows do not hold."""
    tools, domains = builtin()
    rows = {(t["domain_id"], t["name"]): t for t in tools}
    for domain, row in zip(load_domains(), domains, strict=True):
        for spec in domain.tools:
            declared = {p.ref for p in spec.params.values() if p.ref}
            io_types = io_types_of(rows[row["domain_id"], spec.name], row["entities"])
            asked = {io_type.name for io_type in io_types.needs | io_types.takes if io_type.source}
            assert declared <= asked, (domain.name, spec.name)


@pytest.mark.parametrize(
    ("value", "gives"),
    [
        ("bikes", {"bike", "station"}),
        ("first(bikes)", {"bike", "station"}),
        ("pick(bikes, 'bike_id', 'kind')", {"bike"}),
        ("distinct(bikes.station)", {"station"}),
        ("tally(bikes.station)", {"station"}),
        ("if(exists(bikes), first(bikes).station, null)", {"station"}),
        ("lookup('bike', 'BK-1').station", {"station"}),
        ("coalesce(first(bikes).bike_id, made.rental_id)", {"bike", "rental"}),
        ("count(bikes)", set()),
        ("old.rental_id", set()),
        ("bikes.station", {"station"}),
        ("old.bike.station.code", {"station"}),
        ("named", {"station"}),
        ("others.kind", set()),
        ("others.bike_id", {"bike"}),
        ("[b.station for b in bikes]", {"station"}),
        ("{old: old.rental_id, new: made.rental_id}", {"rental"}),
    ],
)
def test_what_an_answer_holds_is_read_off_its_expressions(
    bikes: Domain, value: Any, gives: set[str]
) -> None:
    """The id of a rental is asked for: only that of a new one is given."""
    row = tool_rows(bikes)[0]
    members = dict(part.split(": ") for part in value.strip("{}").split(", ") if ": " in part)
    semantics = [
        {"op": "read", "entity": "bike", "where": "true", "as": "bikes"},
        {"op": "read", "entity": "rental", "key": "args.rental_id", "as": "old"},
        {"op": "create", "entity": "rental", "set": {"status": "'open'"}, "as": "made"},
        {"op": "let", "as": "named", "be": "old.bike.station"},
        {"op": "let", "as": "others", "be": "coalesce(bikes, [])"},
        {"op": "return", "value": members or value},
    ]
    schema = {"properties": {"rental_id": {"type": "string"}}, "required": ["rental_id"]}
    tool = {**row, "semantics_json": semantics, "input_schema": schema}
    io_types = io_types_of(tool, domain_row(bikes)["entities"])
    assert {io_type.name for io_type in io_types.needs} == {"rental"}
    assert {io_type.name for io_type in io_types.gives if io_type.source} == gives


def test_given_ids_are_in_the_answer() -> None:
    """What the graph says that a tool gives, its output schema can hold."""
    tools, domains = builtin()
    entities = {d["domain_id"]: d["entities"] for d in domains}
    for tool in tools:
        own = entities[tool["domain_id"]]
        for io_type in io_types_of(tool, own).gives:
            if io_type.source:
                assert io_type.name in own
                assert '"type": "string"' in str(tool["output_schema"]).replace("'", '"')


def test_the_order_of_rows_changes_no_graph() -> None:
    tools, domains = builtin()
    a, b = Graph(tools, domains), Graph(tools[::-1], domains[::-1])
    assert a.ids == b.ids
    assert a.links == b.links
    assert a.edges_among(range(len(a.ids))) == b.edges_among(range(len(b.ids)))


def test_dropped_tools_are_no_part_of_it() -> None:
    dropped = {**mcp("git", "list_issues"), "drop_reason": "huge_schema"}
    assert Graph([dropped, mcp("git", "get_issue", "issue_id")]).names == ["get_issue"]


def test_components_are_what_edges_join() -> None:
    tools, domains = builtin()
    graph = Graph(tools, domains)
    for members in graph.by_source.values():
        reached = {members[0]}
        while more := {
            t for t in members if t not in reached and any(graph.joined(t, r) for r in reached)
        }:
            reached |= more
        mine = {t for t in members if graph.component[t] == graph.component[members[0]]}
        assert mine <= reached
