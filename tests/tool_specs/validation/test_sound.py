"""Sound tools that come near faults: they pass, with nothing left over."""

from typing import Any

import pytest

from tests.tool_specs.validation.trying import (
    BERTH,
    BOAT,
    LABEL,
    MORE,
    NOTED,
    RATE,
    TRIP,
    Statement,
    answer,
    boats,
    need,
    update,
    validated,
)

SOUND: dict[str, tuple[list[Statement], dict[str, Any]]] = {
    "a step of a lifecycle with its effect": (
        [
            TRIP,
            need("trip.status == 'under_way'"),
            {"op": "read", "entity": "boat", "key": "trip.boat_id", "as": "boat"},
            update("trip", status="'over'", returned_at="now()"),
            update("boat", status="'free'"),
            answer(trip_id="trip.trip_id", returned_at="trip.returned_at", boat="boat.name"),
        ],
        {},
    ),
    "a status that no move maintains": (
        [
            BOAT,
            need("boat.status == 'free'"),
            update("boat", status="'in_repair'"),
            answer(name="boat.name", status="boat.status"),
        ],
        {},
    ),
    "a test against null beside a comparison": (
        [
            TRIP,
            need("trip.returned_at != null and trip.returned_at < now()"),
            update("trip", deposit="trip.deposit + args.more"),
            answer(deposit="trip.deposit"),
        ],
        MORE,
    ),
    "a bound that the seed does not meet": (
        [
            BOAT,
            need("boat.hourly_rate + args.rate <= 77.5"),
            update("boat", hourly_rate="boat.hourly_rate + args.rate"),
            answer(rate="boat.hourly_rate"),
        ],
        RATE,
    ),
    "a page with a limit that the seed does not fill": (
        [
            boats("boat.seats >= args.more", order_by=["-seats"], limit="8"),
            answer(boats="pick(boats, 'boat_id', 'name', 'seats')"),
        ],
        MORE,
    ),
    "an error behind another that comes first on the seed": (
        [
            TRIP,
            need("trip.status == 'planned'", "not_planned"),
            need("trip.deposit < 500", "deposit_full"),
            update("trip", deposit="trip.deposit + args.more"),
            answer(deposit="trip.deposit"),
        ],
        MORE,
    ),
    "a body that is run only sometimes": (
        [
            BOAT,
            {"op": "when", "that": "boat.seats >= 5", "as": "large"},
            update("boat", hourly_rate="args.rate") | {"in": "large"},
            answer(rate="boat.hourly_rate", changed="large"),
        ],
        RATE,
    ),
    "two steps of a lifecycle, one after the other": (
        [
            TRIP,
            need("trip.status == 'planned'"),
            {"op": "read", "entity": "boat", "key": "trip.boat_id", "as": "boat"},
            need("boat.status == 'free'", "boat_taken"),
            update("trip", status="'under_way'"),
            update("trip", status="'over'", returned_at="now()"),
            answer(trip_id="trip.trip_id", returned_at="trip.returned_at"),
        ],
        {},
    ),
    "rows that are only counted": (
        [
            BERTH,
            boats("boat.berth_id == args.berth_id"),
            answer(
                any_free="exists([b for b in boats if b.status == 'free'])",
                large="count([b for b in boats if b.seats > 4])",
            ),
        ],
        {},
    ),
    "a fallback for a value that may be null": (
        [TRIP, answer(guest="trip.guest", back="coalesce(trip.returned_at, trip.starts_at)")],
        {},
    ),
    "a number kept from falling below zero": (
        [
            TRIP,
            update("trip", deposit="max(0, trip.deposit - args.more)"),
            answer(deposit="trip.deposit"),
        ],
        MORE,
    ),
    "a division that zero would stop": (
        [
            BERTH,
            boats("boat.berth_id == args.berth_id"),
            answer(mean="sum(boats.seats) / max(1, count(boats))", label="berth.label"),
        ],
        {},
    ),
    "a text with spaces around it": (
        [NOTED | {"set": NOTED["set"] | {"label": "trim(args.label)"}}, answer(made="made")],
        LABEL,
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_tool_passes_with_nothing_left_over(name: str) -> None:
    semantics, params = SOUND[name]
    found = validated(*semantics, **params)
    assert (found.reason, found.survivors, found.unexamined) == (None, (), ()), found


def test_an_error_that_no_seed_reaches_is_reached_by_a_state_made_for_it() -> None:
    semantics, params = SOUND["an error behind another that comes first on the seed"]
    assert validated(*semantics, **params).made_for == ("semantics[2] deposit_full",)


def test_a_success_that_no_seed_offers_is_found_in_a_state_made_for_it() -> None:
    found = validated(
        TRIP,
        need("trip.deposit >= 500", "deposit_low"),
        update("trip", hours="args.more"),
        answer(hours="trip.hours"),
        **MORE,
    )
    assert (found.reason, found.made_for) == (None, ("a success",)), found
