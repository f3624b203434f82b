"""What a call may change of fields that moves of other rows set by their effects."""

from typing import Any

from tests.synth.catalogue.evolution.boats import BOATS
from tool_specs.domains.domain import load_domain
from tool_specs.domains.taxonomy import load_taxonomy
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.lifecycle_guard import LifecycleGuard
from tool_specs.validation.validate import Validation, validate_tools

NOW = "2026-06-01T09:00:00"


def told(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """About a hive's change, where `apply` of treatments sets its `seen_at` and `mites`."""
    (domain,) = load_taxonomy(["bee_yards"])
    state = domain.seed_state
    key = next(iter(domain.seed["hive"]))["hive_id"]
    change = {"entity": "hive", "op": "update", "id": key, "before": before, "after": after}
    return list(LifecycleGuard(domain).told([change], state, state, {}))  # type: ignore[list-item]


def test_a_rows_own_move_sets_its_own_stamp() -> None:
    before = {"status": "queenless", "seen_at": None}
    assert told(before, {"status": "building", "seen_at": NOW}) == []


def test_a_field_with_a_verb_is_changed_by_hand_too() -> None:
    assert told({"mites": 4.5}, {"mites": 2.0}) == []


def test_a_stamp_without_its_move_is_refused() -> None:
    assert any("hive.seen_at past" in words for words in told({"seen_at": None}, {"seen_at": NOW}))


def test_a_stamp_of_another_move_is_refused() -> None:
    before, after = {"status": "queenless", "seen_at": None}, {"status": "dead", "seen_at": NOW}
    assert any("hive.seen_at past" in words for words in told(before, after))


def validated(domain: str, *semantics: dict[str, Any], **params: Any) -> Validation:
    """Of a tool with these statements in a domain of the taxonomy."""
    (loaded,) = load_taxonomy([domain])
    said = {"name": "tried_out", "description": "A tool that is tried out here."}
    spec = ToolSpec.model_validate(said | {"params": params, "semantics": list(semantics)})
    return validate_tools(loaded, [spec])["tried_out"]


PLAN = {"op": "read", "entity": "plan", "key": "args.plan_id", "as": "plan"}
PLAN_ID = {"type": "string", "ref": "plan", "description": "The plan."}
SEATS = {"type": "integer", "min": 1, "max": 9, "description": "How many."}


def of_plan(seats_sold: str, that: str) -> Validation:
    """A tool that changes how many seats of a plan are sold, which moves of memberships count."""
    return validated(
        "coworking_space",
        PLAN,
        {"op": "require", "that": that, "error": "not_so_many", "message": "Not so many."},
        {"op": "update", "target": "plan", "set": {"seats_sold": seats_sold}},
        {"op": "return", "value": {"seats_sold": "plan.seats_sold"}},
        plan_id=PLAN_ID,
        seats=SEATS,
    )


def test_an_amount_that_moves_add_to_may_be_taken_from_by_hand() -> None:
    found = of_plan("plan.seats_sold - args.seats", "plan.seats_sold >= args.seats")
    assert found.reason is None, found.details


def test_such_an_amount_is_not_simply_set() -> None:
    found = of_plan("args.seats", "plan.seat_limit >= args.seats")
    assert found.reason == "lifecycle_bypassed"


MEMBERSHIP = {"op": "read", "entity": "membership", "key": "args.membership_id", "as": "membership"}
ACTIVE = {
    "op": "require",
    "that": "membership.status == 'active'",
    "error": "not_active",
    "message": "It is not active.",
}
OWES = {
    "op": "require",
    "that": "membership.member.overdue == 0",
    "error": "owes",
    "message": "The member owes money.",
}
PAUSE = {
    "op": "update",
    "target": "membership",
    "set": {"status": "'paused'", "paused_on": "date(now())"},
}
PAUSED = {"op": "return", "value": {"paused_on": "membership.paused_on", "desk": "membership.desk"}}
MEMBERSHIP_ID = {"type": "string", "ref": "membership", "description": "The membership."}


def test_a_move_is_made_only_where_its_needs_hold() -> None:
    ways = [[MEMBERSHIP, ACTIVE, OWES, PAUSE, PAUSED], [MEMBERSHIP, ACTIVE, PAUSE, PAUSED]]
    good, bad = (validated("coworking_space", *way, membership_id=MEMBERSHIP_ID) for way in ways)
    assert good.reason is None, good.details
    assert bad.reason == "lifecycle_bypassed"
    assert "needs do not hold" in bad.details[0]


def test_a_row_that_is_created_may_be_moved_in_the_same_call() -> None:
    text = {"type": "string", "description": "The guest.", "min": 1, "max": 40}
    found = validate_tools(
        load_domain(BOATS),
        [
            ToolSpec.model_validate(
                {
                    "name": "hire_or_plan",
                    "description": "Plan a trip, and start it at once where the boat is free.",
                    "params": {
                        "boat_id": {"type": "string", "ref": "boat", "description": "The boat."},
                        "guest": text,
                    },
                    "semantics": [
                        {"op": "read", "entity": "boat", "key": "args.boat_id", "as": "boat"},
                        {"op": "let", "as": "free", "be": "boat.status == 'free'"},
                        {
                            "op": "create",
                            "entity": "trip",
                            "as": "trip",
                            "set": {
                                "boat_id": "boat.boat_id",
                                "guest": "args.guest",
                                "starts_at": "now()",
                                "hours": 1,
                                "deposit": 0,
                                "status": "'planned'",
                            },
                        },
                        {"op": "when", "that": "free", "as": "starts"},
                        {
                            "op": "update",
                            "in": "starts",
                            "target": "trip",
                            "set": {"status": "'under_way'"},
                        },
                        {
                            "op": "update",
                            "in": "starts",
                            "target": "boat",
                            "set": {"status": "'out'"},
                        },
                        {"op": "return", "value": {"trip_id": "trip.trip_id", "started": "starts"}},
                    ],
                }
            )
        ],
    )["hire_or_plan"]
    assert found.reason is None, found.details
