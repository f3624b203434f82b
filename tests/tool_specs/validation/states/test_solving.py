"""Mutants that differ in a point alone are told from their tool by a case made for that point."""

from typing import Any

import pytest

from tests.tool_specs.validation.trying import (
    BOAT,
    MORE,
    TRIP,
    Statement,
    answer,
    need,
    update,
    validated,
)

TRIPS: Statement = {
    "op": "read",
    "entity": "trip",
    "where": "trip.boat_id == args.boat_id",
    "as": "trips",
}
WISH = {
    "wish": {
        "type": "object",
        "description": "What is wished for.",
        "properties": {
            "rate": {"type": "number", "min": 0, "max": 4000},
            "at": {"type": "datetime"},
        },
    }
}

POINTS: dict[str, tuple[list[Statement], dict[str, Any]]] = {
    "a sum of rows and an argument on its edge": (
        [
            BOAT,
            TRIPS,
            {"op": "let", "as": "total", "be": "sum(trips.deposit) + args.more * 7"},
            need("total <= 1234", "too_much"),
            update("boat", seats="args.more"),
            answer(total="total", seats="boat.seats"),
        ],
        MORE,
    ),
    "a member of an argument on its edge": (
        [BOAT, answer(dear="args.wish.rate * 4 >= 4321", name="boat.name", at="args.wish.at")],
        WISH,
    ),
    "a time of the day on its edge": (
        [
            BOAT,
            answer(
                late="format(args.wish.at, '%H:%M') > '21:47'",
                name="boat.name",
                rate="args.wish.rate",
            ),
        ],
        WISH,
    ),
    "a large factor": (
        [TRIP, answer(share="round(trip.deposit * 100000 / 1234567, 1)")],
        {},
    ),
}


@pytest.mark.parametrize("name", POINTS)
def test_a_point_is_met_where_two_mutants_part(name: str) -> None:
    semantics, params = POINTS[name]
    found = validated(*semantics, **params)
    assert (found.reason, found.survivors) == (None, ()), found
