"""Rows of `domains` and `tools`: the tables' columns, stable ids, hints as the semantics say."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from records.errors import ConfigError
from records.tables.columns import decode, encode
from records.tables.tables import TABLES
from tests.tool_specs.conftest import BIKE_RENTAL, CANTEEN
from tool_specs.domains.catalogue import (
    annotations,
    domain_id,
    domain_of_rows,
    domain_row,
    spec_hash,
    tool_ids,
    tool_rows,
)
from tool_specs.domains.domain import Domain, load_domain, load_domains
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.domains.loading import read_yaml
from tool_specs.validation.checking import check_domain

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


def id_of(domain: Domain, name: str) -> str:
    return next(row["tool_id"] for row in tool_rows(domain) if row["name"] == name)


def test_a_tool_of_an_edited_domain_is_another_tool(bikes: Domain) -> None:
    """Rows name one tool, and that names one domain: what was made in the old one stays true."""
    reseeded = edited(lambda data: data["seed"]["repair"].clear())
    assert domain_row(reseeded)["domain_id"] != domain_row(bikes)["domain_id"]
    assert id_of(reseeded, "start_rental") != id_of(bikes, "start_rental")
    splits = [[row["split"] for row in tool_rows(domain)] for domain in (bikes, reseeded)]
    assert splits[0] == splits[1]


def test_a_tool_keeps_its_id_when_another_tool_changes(bikes: Domain) -> None:
    reworded = edited(lambda data: data["tools"][0].update(description="Find bikes to rent."))
    assert id_of(reworded, "start_rental") == id_of(bikes, "start_rental")
    assert id_of(reworded, "find_bikes") != id_of(bikes, "find_bikes")


def test_the_same_spec_in_two_domains_has_one_hash_and_two_ids(bikes: Domain) -> None:
    renamed = edited(lambda data: data.update(domain="boat_rental"))
    spec = renamed.programs["find_bikes"].spec
    assert spec_hash(spec) == spec_hash(bikes.programs["find_bikes"].spec)
    assert id_of(renamed, "find_bikes") != id_of(bikes, "find_bikes")


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


def read_back(table: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As the store gives them: JSON columns with their keys sorted."""
    return decode(
        TABLES[table], encode(table, rows, run_id="r").drop_columns([*FILLED_BY_THE_STORE])
    )


def rebuilt(domain: Domain) -> Domain:
    [row] = read_back("domains", [domain_row(domain)])
    return domain_of_rows(row, read_back("tools", tool_rows(domain)))


def test_time_is_kept_in_the_rows_and_counts_for_the_ids() -> None:
    domain = load_domain(CANTEEN)
    again = rebuilt(domain)
    assert (domain_id(again), tool_ids(again)) == (domain_id(domain), tool_ids(domain))
    assert (again.file.jobs, again.file.slack) == (domain.file.jobs, "20 minutes")
    ends = [DomainEnvironment.of(d) for d in (domain, again)]
    for environment in ends:
        environment.call("bake_in_oven", {"oven_id": "OV-1003", "minutes": 30})
    assert ends[0].state_hash == ends[1].state_hash
    timeless = domain.file.model_copy(update={"jobs": ()})
    assert domain_id(replace(domain, file=timeless)) != domain_id(domain)


def test_a_wait_is_no_read() -> None:
    domain = load_domain(CANTEEN)
    hints = annotations(domain.programs["wait_in_kitchen"])
    assert (hints["readOnlyHint"], hints["idempotentHint"]) == (False, False)
    assert annotations(domain.programs["find_ovens"])["readOnlyHint"]


@pytest.mark.parametrize("name", ["clinic_desk", "web_shop", "parcel_depot"])
def test_a_domain_rebuilt_from_its_rows_is_the_same_domain(name: str) -> None:
    [domain] = load_domains([name])
    again = rebuilt(domain)
    assert (domain_id(again), tool_ids(again)) == (domain_id(domain), tool_ids(domain))
    for entity, spec in domain.entities.items():
        assert list(again.entities[entity].fields) == list(spec.fields)
    report = check_domain(domain)
    mine, other = DomainEnvironment.of(domain), DomainEnvironment.of(again)
    assert mine.state_hash == other.state_hash
    for tool in report.tools.values():
        for _ in range(2):
            arguments = (tool.example or {"arguments": {}})["arguments"]
            called, again_called = mine.call(tool.name, arguments), other.call(tool.name, arguments)
            assert called == again_called


def test_a_field_that_says_what_it_is_like_is_part_of_the_domain(bikes: Domain) -> None:
    def say(data: Any) -> None:
        fields = data["entities"]["station"]["fields"]
        text = next(f for n, f in fields.items() if f["type"] == "string" and n != "station_id")
        text["like"] = "title"

    said = edited(say)
    assert domain_id(said) != domain_id(bikes)
    assert domain_id(edited(lambda data: None)) == domain_id(bikes)
    assert domain_id(domain_of_rows(domain_row(said), tool_rows(said))) == domain_id(said)


def test_a_rule_about_a_tool_that_is_left_out_goes_with_it(bikes: Domain) -> None:
    [row] = read_back("domains", [domain_row(bikes)])
    assert domain_of_rows(row).tools == []


def test_rows_from_before_domains_could_be_rebuilt_say_so(bikes: Domain) -> None:
    with pytest.raises(ConfigError, match="older version"):
        domain_of_rows(domain_row(bikes) | {"clock": None})
