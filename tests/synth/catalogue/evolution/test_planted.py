"""Every reason to drop a tool is met by a planted one; every tool asked for is accounted for."""

import json
from pathlib import Path
from typing import Any

import pytest

from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.catalogue.evolution.summary import lines, summarise
from tests.synth.catalogue.evolution.boats import (
    FIND,
    GOOD,
    RAISE,
    SHORTEN,
    Tool,
    done,
    generator,
    need,
    read,
    ref,
    section,
    tool,
    update,
)
from tests.synth.catalogue.evolution.work import config_for, rows_of, run_evolution

GUEST = tool(
    "rename_guest",
    "Correct the name of the guest of a trip.",
    read("trip"),
    update("trip", guest="args.name"),
    done(trip_id="trip.trip_id"),
    trip_id=ref("trip"),
    name="string",
)


def retold(base: Tool, name: str, description: str = "", **replaced: Any) -> Tool:
    return base | {"name": name, "description": description or base["description"]} | replaced


BAD: dict[str, Tool] = {
    "does_not_compile": retold(
        GUEST, "lost", semantics=[read("trip"), done(a="trip.captain")], params=GUEST["params"][:1]
    ),
    "never_succeeds": tool(
        "sell_boat",
        "Sell a boat for good. Returns its name.",
        read("boat"),
        need("boat.seats > 90", "large"),
        update("boat", status="'out'"),
        done(name="boat.name"),
        boat_id=ref("boat"),
    ),
    "changes_nothing": tool(
        "touch_boat",
        "Touch a boat and leave it be. Returns its kind.",
        read("boat"),
        update("boat", kind="boat.kind"),
        done(kind="boat.kind"),
        boat_id=ref("boat"),
    ),
    "one_answer": tool(
        "double_number", "Double any number at all. Returns it.", done(it="args.n * 2"), n="integer"
    ),
    "error_not_reached": tool(
        "note_gear",
        "Note a thing that a boat carries. Returns the gear.",
        read("boat"),
        need("boat.seats < 50", "small"),
        {"op": "link", "target": "boat", "field": "gear", "to": "args.thing"},
        done(gear="boat.gear"),
        boat_id=ref("boat"),
        thing="string",
    ),
    "internal_error": tool(
        "rate_by_spare_seats",
        "Work out the rate by spare seats. Returns it.",
        read("boat"),
        done(rate="boat.hourly_rate / (boat.seats - 4)"),
        boat_id=ref("boat"),
    ),
    "breaks_rule": tool(
        "free_every_boat",
        "Set a boat free, come what may. Returns its id.",
        read("boat"),
        need("boat.status == 'out'", "out"),
        update("boat", status="'free'"),
        done(boat_id="boat.boat_id"),
        boat_id=ref("boat"),
    ),
    "dead_statement": tool(
        "light_berth",
        "Light a berth at night. Returns its label.",
        read("berth"),
        update("berth", lit="args.on"),
        update("berth", depth="berth.depth"),
        done(label="berth.label"),
        berth_id=ref("berth"),
        on="boolean",
    ),
    "dead_filter": tool(
        "list_deep_berths",
        "List berths of a depth or more. Returns berths.",
        read("berth", where="berth.depth >= args.depth and berth.depth >= 0", **{"as": "berths"}),
        done(berths="berths"),
        depth={"type": "number", "min": 0, "max": 3},
    ),
    "dead_term": tool(
        "add_hours",
        "Add hours to a trip that is planned. Returns hours.",
        read("trip"),
        need("trip.status == 'planned' and trip.deposit >= 0", "planned"),
        update("trip", hours="min(10, trip.hours + args.more)"),
        done(hours="trip.hours"),
        trip_id=ref("trip"),
        more={"type": "integer", "min": 1, "max": 4},
    ),
    "dead_order": tool(
        "seats_of_boat",
        "Say how many seats a boat has and where it lies. Returns seats.",
        read("boat", where="boat.boat_id == args.boat_id", order_by=["name"], **{"as": "boats"}),
        done(seats="sum(boats.seats)"),
        boat_id=ref("boat"),
    ),
    "constant_result": tool(
        "book_deposit",
        "Add to the deposit of a trip. Returns deposit and booked.",
        read("trip"),
        update("trip", deposit="trip.deposit + args.amount"),
        done(deposit="trip.deposit", booked="true"),
        trip_id=ref("trip"),
        amount={"type": "number", "min": 1, "max": 90},
    ),
    "lifecycle_bypassed": tool(
        "finish_early",
        "Finish a planned trip at once. Returns its status.",
        read("trip"),
        need("trip.status == 'planned'", "planned"),
        update("trip", status="'over'", returned_at="now()"),
        done(status="trip.status"),
        trip_id=ref("trip"),
    ),
    "numbered_name": retold(RAISE, "raise_hourly_rate2"),
    "duplicate_name": retold(GUEST, "raise_hourly_rate"),
    "same_semantics": retold(FIND, "boats_by_sort", "Say which boats of a sort can be had."),
    "near_duplicate": retold(
        SHORTEN,
        "shorten_trip",
        semantics=[read("trip"), update("trip", hours="args.less"), done(guest="trip.guest")],
    )
    | {"name": "shorten_trips"},
}


def planted(request: dict[str, Any]) -> Any:
    """Good tools and bad ones together; a repair that mends one and gives up on the others."""
    problems: list[Row] | None = section(request, "Problems")
    if problems is not None:
        named = {entry["tool"]["name"] for entry in problems}
        return {"tools": [MENDED] if "lost" in named else []}
    return {"tools": [*GOOD, *BAD.values()]}


MENDED = retold(GUEST, "lost")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted") / "data"
    with generator(planted) as url:
        size = len(GOOD) + len(BAD) + 2
        reports = run_evolution(folder, config_for(url, batch_size=size, count=4))
    assert [report.stage for report in reports] == ["evolve-0"]
    return folder


@pytest.mark.slow
def test_every_flaw_is_met_with_its_reason(folder: Path) -> None:
    proposals = rows_of(folder, "proposals")
    found = {row["name"]: row["first_reason"] for row in reversed(proposals)}
    expected = {tool["name"]: reason for reason, tool in BAD.items()}
    names = [name for name, reason in expected.items() if reason != "duplicate_name"]
    assert {name: found[name] for name in names} == {name: expected[name] for name in names}
    assert "duplicate_name" in {row["drop_reason"] for row in proposals}


@pytest.mark.slow
def test_every_tool_asked_for_is_kept_or_dropped(folder: Path) -> None:
    proposals = [row for row in rows_of(folder, "proposals") if row["batch"] == 0]
    assert len(proposals) == len(GOOD) + len(BAD) + 2
    assert sum(row["drop_reason"] == "not_written" for row in proposals) == 2
    for row in proposals:
        assert (row["tool_id"] is None) == (row["drop_reason"] is not None)
    kept = {row["tool_id"] for row in proposals} - {None}
    assert kept <= {row["tool_id"] for row in rows_of(folder, "tools")}


@pytest.mark.slow
def test_a_mended_tool_is_kept_and_says_so(folder: Path) -> None:
    [lost] = [row for row in rows_of(folder, "proposals") if row["name"] == "lost"]
    assert (lost["first_reason"], lost["drop_reason"], lost["repaired"]) == (
        "does_not_compile",
        None,
        True,
    )
    [row] = [row for row in rows_of(folder, "tools") if row["name"] == "lost"]
    assert row["proof"]["repaired"] is True
    assert row["proof"]["calls"] > 0


@pytest.mark.slow
def test_rows_say_where_a_tool_comes_from(folder: Path) -> None:
    [row] = [row for row in rows_of(folder, "tools") if row["name"] == "shorten_trip"]
    assert (row["evolve_op"], row["generation"], row["parent_id"]) == ("derive", 0, None)
    assert row["proof"]["example"]["diff"]
    assert row["license"] == "unknown"  # the terms of the model that wrote it
    assert row["drop_reason"] is None


@pytest.mark.slow
def test_the_summary_adds_up(folder: Path) -> None:
    summary = summarise(Dataset.open(folder))
    asked, dropped = summary["asked"], sum(summary["dropped"].values())
    assert asked == summary["tools"] + dropped
    [derive] = [row for row in summary["acceptance"] if row["operator"] == "derive"]
    assert derive["after_repair"] > derive["first_pass"]
    assert any("skeletons" in line for line in lines(summary))
    json.dumps(summary)
