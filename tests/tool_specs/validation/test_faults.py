"""Faults that generators write, each refused with its reason; sound tools that come near them."""

import json
from typing import Any

import pytest

from tests.synth.catalogue.evolution.boats import BOATS
from tool_specs.domains.domain import load_domain
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.doubts import doubts_of
from tool_specs.validation.validate import Validation, validate_tools

Statement = dict[str, Any]
BOAT: Statement = {"op": "read", "entity": "boat", "key": "args.boat_id", "as": "boat"}
TRIP: Statement = {"op": "read", "entity": "trip", "key": "args.trip_id", "as": "trip"}
BERTH: Statement = {"op": "read", "entity": "berth", "key": "args.berth_id", "as": "berth"}
REFS = {f"{entity}_id": {"type": "string", "ref": entity} for entity in ("boat", "trip", "berth")}
MORE = {"more": {"type": "integer", "min": 1, "max": 5}}
RATE = {"rate": {"type": "number", "min": 1, "max": 90}}


def update(target: str, **values: str) -> Statement:
    return {"op": "update", "target": target, "set": values}


def need(that: str, error: str = "refused", **more: str) -> Statement:
    return {"op": "require", "that": that, "error": error, "message": "It cannot be."} | more


def boats(where: str, **more: Any) -> Statement:
    return {"op": "read", "entity": "boat", "where": where, "as": "boats"} | more


def answer(**values: Any) -> Statement:
    return {"op": "return", "value": values}


def validated(*semantics: Statement, **params: Any) -> Validation:
    """Of a tool with these statements; ids that they read by are its parameters too."""
    text = json.dumps(semantics)
    own = {name: spec for name, spec in REFS.items() if f"args.{name}" in text}
    spec = ToolSpec.model_validate(
        {
            "name": "tried_out",
            "description": "A tool that is tried out here.",
            "params": own | params,
            "semantics": list(semantics),
        }
    )
    return validate_tools(load_domain(BOATS), [spec])["tried_out"]


NOTED: Statement = {
    "op": "create",
    "entity": "berth",
    "set": {"label": "args.label", "depth": "1", "lit": "true"},
    "as": "made",
}
LABEL = {"label": {"type": "string", "min": 1, "max": 40}}
EACH: Statement = {"op": "for_each", "over": "boats", "as": "each"}

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
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused_with_its_reason(fault: str) -> None:
    reason, semantics, params = FAULTS[fault]
    found = validated(*semantics, **params)
    assert found.reason == reason, found
    assert found.details


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
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_tool_passes_with_nothing_left_over(name: str) -> None:
    semantics, params = SOUND[name]
    found = validated(*semantics, **params)
    assert (found.reason, found.survivors, found.unexamined) == (None, (), ()), found


def test_an_error_that_no_seed_reaches_is_reached_by_a_state_made_for_it() -> None:
    semantics, params = SOUND["an error behind another that comes first on the seed"]
    assert validated(*semantics, **params).made_for == ("semantics[2] deposit_full",)


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


def test_a_success_that_no_seed_offers_is_found_in_a_state_made_for_it() -> None:
    found = validated(
        TRIP,
        need("trip.deposit >= 500", "deposit_low"),
        update("trip", hours="args.more"),
        answer(hours="trip.hours"),
        **MORE,
    )
    assert (found.reason, found.made_for) == (None, ("a success",)), found


def test_a_status_that_jumps_in_made_states_alone_is_refused() -> None:
    found = validated(
        TRIP,
        need("trip.deposit >= 50 and trip.status != 'over'"),
        update("trip", status="'over'", returned_at="now()"),
        answer(trip_id="trip.trip_id", returned_at="trip.returned_at"),
    )
    assert found.reason == "lifecycle_bypassed", found
    assert any("from 'planned' to 'over'" in words for words in found.details)


NOTED_RATE: Statement = {"op": "let", "as": "former", "be": "boat.hourly_rate"}
RAISED = update("boat", hourly_rate="former + args.more")
TOLD: dict[str, tuple[str | None, list[Statement], dict[str, Any]]] = {
    "a value noted before the update under the field's name": (
        "stale_result",
        [BOAT, NOTED_RATE, RAISED, answer(name="boat.name", hourly_rate="former")],
        MORE,
    ),
    "a value noted before the update under a name that says so": (
        None,
        [BOAT, NOTED_RATE, RAISED, answer(name="boat.name", former_rate="former")],
        MORE,
    ),
    "a result with the name of another field": (
        "misnamed_result",
        [BOAT, answer(seats="boat.seats", name_now="boat.boat_id")],
        {},
    ),
    "alternatives of which one is asked for less": (
        "loose_alternative",
        [
            boats("boat.kind == 'rowing' or boat.kind == 'sailing' and boat.seats >= args.more"),
            answer(boats="pick(boats, 'boat_id', 'kind', 'seats')"),
        ],
        MORE,
    ),
    "alternatives in parentheses": (
        None,
        [
            boats("boat.kind == 'rowing' or (boat.kind == 'sailing' and boat.seats >= args.more)"),
            answer(boats="pick(boats, 'boat_id', 'kind', 'seats')"),
        ],
        MORE,
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_the_text_of_a_program_shows(name: str) -> None:
    reason, semantics, params = TOLD[name]
    found = validated(*semantics, **params)
    assert found.reason == reason, found


def test_a_total_that_a_limit_cuts_is_doubted_and_not_refused() -> None:
    total = answer(dearest="boats.name", rates="sum(boats.hourly_rate)")
    semantics = [boats("boat.seats >= args.more", order_by=["-hourly_rate"], limit="3"), total]
    spec = ToolSpec.model_validate(
        {
            "name": "dearest_boats",
            "description": "The three dearest boats.",
            "params": MORE,
            "semantics": semantics,
        }
    )
    [words] = doubts_of(spec)
    assert "rates is a sum of boats alone, which a limit cuts short" in words
    assert doubts_of(spec.model_copy(update={"semantics": spec.semantics[1:]})) == []
