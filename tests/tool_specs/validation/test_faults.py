"""Faults that generators write, each refused with its reason and told in words."""

from typing import Any

import pytest

from tests.tool_specs.validation.trying import (
    BERTH,
    BOAT,
    EACH,
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

FAULTS: dict[str, tuple[str, list[Statement], dict[str, Any]]] = {
    "two updates that undo each other": (
        "dead_statement",
        [
            BOAT,
            update("boat", hourly_rate="args.rate"),
            BERTH,
            update("berth", depth="berth.depth + 1"),
            update("berth", depth="berth.depth - 1"),
            answer(rate="boat.hourly_rate", depth="berth.depth"),
        ],
        RATE,
    ),
    "a row that is created and deleted": (
        "dead_statement",
        [
            BOAT,
            NOTED,
            update("boat", hourly_rate="args.rate"),
            {"op": "delete", "target": "made"},
            answer(rate="boat.hourly_rate"),
        ],
        RATE | LABEL,
    ),
    "a loop that does nothing": (
        "dead_statement",
        [
            BOAT,
            boats("boat.status == 'free'"),
            EACH,
            update("each", gear="each.gear") | {"in": "each"},
            update("boat", hourly_rate="args.rate"),
            answer(rate="boat.hourly_rate", free="count(boats)"),
        ],
        RATE,
    ),
    "a term of or that never holds": (
        "dead_term",
        [
            TRIP,
            need("trip.status == 'planned' or trip.hours > 12"),
            update("trip", hours="args.more"),
            answer(hours="trip.hours"),
        ],
        MORE,
    ),
    "a term of and that always holds": (
        "dead_term",
        [
            TRIP,
            need("trip.status == 'planned' and trip.deposit >= 0"),
            update("trip", hours="args.more"),
            answer(hours="trip.hours"),
        ],
        MORE,
    ),
    "a case that is never taken": (
        "dead_field",
        [BOAT, answer(size="if(boat.seats > 12, 'huge', boat.kind)", name="boat.name")],
        {},
    ),
    "a product with zero": (
        "dead_term",
        [
            BOAT,
            update("boat", hourly_rate="args.rate + 0 * boat.seats"),
            answer(rate="boat.hourly_rate"),
        ],
        RATE,
    ),
    "an order of one row": (
        "dead_order",
        [
            BERTH,
            boats("boat.boat_id == args.boat_id", order_by=["name"]),
            answer(seats="sum(boats.seats)", label="berth.label"),
        ],
        {},
    ),
    "a constant for a result": (
        "constant_result",
        [BOAT, update("boat", hourly_rate="args.rate"), answer(name="boat.name", total="0")],
        RATE,
    ),
    "a computed result that never changes": (
        "constant_result",
        [BOAT, answer(name="boat.name", legs="1 + 1")],
        {},
    ),
    "a status that jumps": (
        "lifecycle_bypassed",
        [
            TRIP,
            need("trip.status == 'planned'"),
            update("trip", status="'over'", returned_at="now()"),
            answer(status="trip.status"),
        ],
        {},
    ),
    "a status straight from an argument": (
        "lifecycle_bypassed",
        [
            TRIP,
            need("trip.status != args.status and args.status != 'under_way'"),
            update("trip", status="args.status"),
            answer(status="trip.status"),
        ],
        {"status": {"type": "enum", "values": ["planned", "under_way", "over"]}},
    ),
    "a stamp without its move": (
        "lifecycle_bypassed",
        [TRIP, update("trip", returned_at="args.at"), answer(returned_at="trip.returned_at")],
        {"at": {"type": "datetime"}},
    ),
    "an effect without its move": (
        "lifecycle_bypassed",
        [
            BOAT,
            need("boat.status == 'in_repair'"),
            update("boat", status="'free'"),
            answer(name="boat.name", status="boat.status"),
        ],
        {},
    ),
    "an optional parameter that changes nothing": (
        "dead_filter",
        [
            boats(
                "boat.kind == args.kind and"
                " (args.berth_id == null or boat.berth_id == args.berth_id or boat.seats > 0)"
            ),
            answer(boats="boats"),
        ],
        {
            "kind": {"type": "enum", "values": ["rowing", "sailing", "electric"]},
            "berth_id": {"type": "string", "ref": "berth", "optional": True},
        },
    ),
    "a precondition that cannot fail": (
        "error_not_reached",
        [
            TRIP,
            need("trip.hours <= 10"),
            update("trip", deposit="trip.deposit + args.more"),
            answer(deposit="trip.deposit"),
        ],
        MORE,
    ),
    "a sum with a part that is always null": (
        "dead_field",
        [
            BOAT,
            answer(name="boat.name", rate="coalesce(lookup('trip', boat.name).hours, boat.seats)"),
        ],
        {},
    ),
    "a rule that is broken where the seed does not show it": (
        "breaks_rule",
        [
            BOAT,
            need("boat.status == 'out'"),
            update("boat", status="'in_repair'"),
            answer(status="boat.status"),
        ],
        {},
    ),
    "the same value twice": (
        "dead_field",
        [BOAT, answer(name="boat.name", label="boat.name")],
        {},
    ),
    "a condition on a body that always holds": (
        "dead_term",
        [
            BOAT,
            {"op": "when", "that": "boat.seats >= 1", "as": "large"},
            update("boat", hourly_rate="args.rate") | {"in": "large"},
            answer(rate="boat.hourly_rate"),
        ],
        RATE,
    ),
    "a second default beside a parameter's own": (
        "dead_term",
        [TRIP, update("trip", hours="coalesce(args.more, 3)"), answer(hours="trip.hours")],
        {"more": {"type": "integer", "min": 1, "max": 5, "optional": True, "default": 2}},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused_with_its_reason(fault: str) -> None:
    reason, semantics, params = FAULTS[fault]
    found = validated(*semantics, **params)
    assert found.reason == reason, found
    assert found.details


def test_a_survivor_is_told_in_words_that_an_author_can_act_upon() -> None:
    _, semantics, params = FAULTS["a term of and that always holds"]
    [words] = validated(*semantics, **params).details
    assert words.startswith("semantics[1].that without 'trip.deposit >= 0' it does the same in ")
    assert words.endswith(" cases: is it needed?")


def test_what_bypasses_a_lifecycle_is_told_with_field_lifecycle_and_way() -> None:
    _, semantics, params = FAULTS["a status that jumps"]
    assert "takes trip.status from 'planned' to 'over'" in (
        words := validated(*semantics, **params).details[0]
    )
    assert "'over' is reached by end (from under_way)" in words
    _, semantics, params = FAULTS["an effect without its move"]
    assert "sets boat.status past the lifecycle of trip" in validated(*semantics).details[0]


def test_a_status_that_jumps_in_made_states_alone_is_refused() -> None:
    found = validated(
        TRIP,
        need("trip.deposit >= 50 and trip.status != 'over'"),
        update("trip", status="'over'", returned_at="now()"),
        answer(trip_id="trip.trip_id", returned_at="trip.returned_at"),
    )
    assert found.reason == "lifecycle_bypassed", found
    assert any("from 'planned' to 'over'" in words for words in found.details)
