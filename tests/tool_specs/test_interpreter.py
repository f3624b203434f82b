"""Calls: what each statement does, that failures change nothing, and what the agent is told."""

from typing import Any

import pytest

from records.errors import ConfigError
from tool_specs.domain import Domain
from tool_specs.interpreter import CallResult, World, breaches


def ok(world: World, tool: str, **arguments: Any) -> CallResult:
    result = world.call(tool, arguments)
    assert not result.is_error, result.observation
    return result


def failed(world: World, tool: str, **arguments: Any) -> tuple[str, str]:
    """Code and message of a call that must fail and leave the state alone."""
    before = world.state_hash
    result = world.call(tool, arguments)
    assert result.is_error
    assert result.diff == []
    assert result.hash_before == result.hash_after == world.state_hash == before
    assert world.state.total == world.state.total_from_scratch()
    assert result.error_code == result.observation["error"]["code"]
    return result.observation["error"]["code"], result.observation["error"]["message"]


RENT = {"customer_id": "CU-1001", "bike_id": "BK-1002", "ends_on": "2026-05-05"}


def test_a_write_shows_in_answer_diff_hash_and_later_reads(world: World) -> None:
    result = ok(world, "start_rental", **RENT, extras=[{"item": "helmet", "amount": 1}])
    assert result.observation == {"rental_id": "RE-1003", "price": 65, "credit": 55}
    assert [(c["op"], c["entity"], c["id"]) for c in result.diff] == [
        ("create", "rental", "RE-1003"),
        ("update", "customer", "CU-1001"),
        ("update", "bike", "BK-1002"),
    ]
    assert result.diff[1]["before"] == {"credit": 120}
    assert result.diff[1]["after"] == {"credit": 55}
    assert result.hash_before != result.hash_after == world.state_hash
    assert failed(world, "start_rental", **RENT) == (
        "already_rented",
        "Bike BK-1002 is out until 2026-05-05.",
    )


def test_reads_change_nothing(world: World) -> None:
    result = ok(world, "find_bikes")
    assert result.diff == []
    assert result.hash_before == result.hash_after


def test_a_batch_that_fails_in_the_middle_changes_nothing(world: World) -> None:
    code, message = failed(world, "report_damage", bikes=["BK-1001", "BK-1005"], note="flat")
    assert (code, message) == ("in_workshop", "Bike BK-1005 is in the workshop already.")


def test_what_a_loop_binds_is_a_list_afterwards(world: World) -> None:
    result = ok(world, "report_damage", bikes=["BK-1001", "BK-1002"], note="flat")
    assert result.observation["repair_ids"] == ["RP-1002", "RP-1003"]


def test_a_binding_follows_updates_of_its_row(world: World) -> None:
    assert ok(world, "raise_prices", station="PIER", percent=10).observation == {
        "station": "Old Pier",
        "prices": [15.4, 35.75],
    }


def test_delete_takes_dependants_first_and_a_dangling_reference_is_refused(world: World) -> None:
    result = ok(world, "scrap_bike", bike_id="BK-1005")
    assert [(c["op"], c["id"]) for c in result.diff] == [
        ("delete", "RP-1001"),
        ("delete", "BK-1005"),
    ]
    assert world.get("bike", "BK-1005") is None


def test_breaches_are_told_before_the_call_is_made(world: World) -> None:
    poor = {**RENT, "customer_id": "CU-1002"}
    assert breaches(world, "start_rental", poor) == ["no_cargo_on_credit"]
    assert breaches(world, "start_rental", RENT) == []
    assert breaches(world, "scrap_bike", {"bike_id": "BK-1004"}) == ["never_scrap"]
    assert breaches(world, "scrap_bike", {"bike": 4}) == []


def test_a_patch_changes_the_seed_of_one_world(bikes: Domain) -> None:
    row = {"repair_id": "RP-7000", "bike": "BK-1001", "note": "x", "reported_at": bikes.now}
    world = World.of(bikes, {"repair": {"RP-7000": row, "RP-1001": None}})
    assert [r["repair_id"] for r in world.rows("repair")] == ["RP-7000"]
    assert World.of(bikes).rows("repair") == bikes.seed["repair"]
    assert ok(world, "report_damage", bikes=["BK-1002"], note="flat").observation["repair_ids"] == [
        "RP-7001"
    ]


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"boat": {}}, "initial_state.boat: unknown entity; known: station, bike"),
        ({"bike": {"BK-1": {"bike_id": "BK-2"}}}, "initial_state.bike[BK-1]: kind must be one of"),
        ({"bike": {"BK-1005": None}}, "repair[RP-1001].bike: no bike has the id 'BK-1005'"),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(bikes: Domain, patch: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        World.of(bikes, patch)
    assert words in str(caught.value)
