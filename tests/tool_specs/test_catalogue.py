"""Rows of `domains` and `tools`: the tables' columns, stable ids, hints as the semantics say."""

import copy
import json
from typing import Any

import pytest

from records.schemas import TABLES
from tests.tool_specs.conftest import BIKE_RENTAL
from tool_specs.catalogue import annotations, domain_row, spec_hash, tool_id, tool_rows
from tool_specs.domain import Domain
from tool_specs.loading import read_yaml

FILLED_BY_THE_STORE = {"run_id", "schema_version"}


def columns(table: str) -> set[str]:
    return set(TABLES[table].schema.names) - FILLED_BY_THE_STORE


def edited(change: Any) -> Domain:
    data = copy.deepcopy(read_yaml(BIKE_RENTAL))
    change(data)
    return Domain.of(data, origin="edited")


def test_rows_have_exactly_the_columns_of_their_tables(bikes: Domain) -> None:
    assert set(domain_row(bikes)) == columns("domains")
    rows = tool_rows(bikes)
    assert [row["name"] for row in rows] == [tool.name for tool in bikes.tools]
    for row in rows:
        assert set(row) == columns("tools")
        assert row["domain_id"] == domain_row(bikes)["domain_id"]
        json.dumps(row, allow_nan=False)
    assert len({row["tool_id"] for row in rows}) == len(rows)


def test_a_tool_keeps_its_id_when_the_seed_or_another_tool_changes(bikes: Domain) -> None:
    reseeded = edited(lambda data: data["seed"]["repair"].clear())
    reworded = edited(lambda data: data["tools"][0].update(description="Find bikes to rent."))
    assert tool_id(reseeded, "start_rental") == tool_id(bikes, "start_rental")
    assert tool_id(reworded, "start_rental") == tool_id(bikes, "start_rental")
    assert tool_id(reworded, "find_bikes") != tool_id(bikes, "find_bikes")
    assert domain_row(reseeded)["domain_id"] != domain_row(bikes)["domain_id"]


def test_the_same_spec_in_two_domains_has_one_hash_and_two_ids(bikes: Domain) -> None:
    renamed = edited(lambda data: data.update(domain="boat_rental"))
    spec = renamed.programs["find_bikes"].spec
    assert spec_hash(spec) == spec_hash(bikes.programs["find_bikes"].spec)
    assert tool_id(renamed, "find_bikes") != tool_id(bikes, "find_bikes")


def test_tools_of_a_held_out_domain_are_held_out_with_it() -> None:
    held_out = edited(lambda data: data.update(split="heldout_domain"))
    assert {row["split"] for row in tool_rows(held_out)} == {"heldout_domain"}


@pytest.mark.parametrize(
    ("tool", "reads", "destroys", "idempotent"),
    [
        ("find_bikes", True, False, True),
        ("start_rental", False, True, False),
        ("set_favourite", False, True, True),
        ("raise_prices", False, True, False),
        ("scrap_bike", False, True, True),
    ],
)
def test_annotations_follow_the_semantics(
    bikes: Domain, tool: str, reads: bool, destroys: bool, idempotent: bool
) -> None:
    assert annotations(bikes.programs[tool]) == {
        "readOnlyHint": reads,
        "destructiveHint": destroys,
        "idempotentHint": idempotent,
        "openWorldHint": False,
    }
