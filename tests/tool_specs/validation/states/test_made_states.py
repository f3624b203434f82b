"""Made states are states that the domain allows, they are seeded, and they reach what is asked."""

from typing import Any

import pytest

from records.seeds import rng_of
from tests.synth.catalogue.evolution.boats import BOATS
from tool_specs.domains.domain import Domain, compile_tools, load_domain
from tool_specs.domains.interpreter import DomainEnvironment
from tool_specs.execution.fields import RowCheck, ids_in, refs_of
from tool_specs.execution.invariants import broken_in
from tool_specs.execution.programs import Entities, Problems, Program
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.states.cases import FuzzCase
from tool_specs.validation.states.deciding import deciding
from tool_specs.validation.states.made_states import StateMaker

RESERVE: dict[str, Any] = {
    "name": "reserve_trip",
    "description": "Add hours to a trip of a boat with room. Returns hours.",
    "params": {
        "trip_id": {"type": "string", "ref": "trip"},
        "more": {"type": "integer", "min": 1, "max": 5},
    },
    "semantics": [
        {"op": "read", "entity": "trip", "key": "args.trip_id", "as": "trip"},
        {"op": "read", "entity": "boat", "key": "trip.boat_id", "as": "boat"},
        {
            "op": "require",
            "that": "boat.hourly_rate * (trip.hours + args.more) <= 317.25",
            "error": "too_dear",
            "message": "Too dear.",
        },
        {
            "op": "require",
            "that": "days_between(now(), trip.starts_at) < 41",
            "error": "too_far",
            "message": "Too far.",
        },
        {"op": "update", "target": "trip", "set": {"hours": "min(trip.hours + args.more, 10)"}},
        {"op": "return", "value": {"hours": "trip.hours"}},
    ],
}


@pytest.fixture(scope="module")
def boats() -> Domain:
    domain = load_domain(BOATS)
    spec = ToolSpec.model_validate(RESERVE)
    return domain.with_tools(compile_tools([spec], Entities.of(domain.file), Problems()).values())


@pytest.fixture(scope="module")
def program(boats: Domain) -> Program:
    return boats.programs["reserve_trip"]


def maker_of(domain: Domain, program: Program) -> StateMaker:
    return StateMaker(domain, program, rng_of("made", "test"))


def bases(domain: Domain) -> list[FuzzCase]:
    environment = DomainEnvironment.of(domain)
    key = environment.rows("trip")[0]["trip_id"]
    arguments = {"trip_id": key, "more": 1}
    result = environment.snapshot().call("reserve_trip", arguments)
    return [FuzzCase(environment, arguments, result)]


def test_every_made_state_is_one_that_the_domain_allows(boats: Domain, program: Program) -> None:
    made = list(maker_of(boats, program).cases(bases(boats), 300))
    assert len({case.environment.state_hash for case in made}) > 50
    checks = {name: RowCheck(entity) for name, entity in boats.entities.items()}
    for case in made:
        state = case.environment.state
        assert list(broken_in(state, boats.file, boats.invariants)) == []
        for name, entity in boats.entities.items():
            for row in state.tables[name].rows():
                assert checks[name].row(row) == row
                for field, to in refs_of(entity).items():
                    assert all(state.get(to, key) is not None for key in ids_in(row[field]))


def test_the_seed_decides_what_is_made(boats: Domain, program: Program) -> None:
    first, again = (
        [
            (case.arguments, case.environment.state_hash)
            for case in maker_of(boats, program).cases(bases(boats), 60)
        ]
        for _ in range(2)
    )
    assert first == again


def test_a_made_case_leaves_the_one_that_it_is_made_of_alone(
    boats: Domain, program: Program
) -> None:
    [base] = bases(boats)
    before = base.environment.state_hash, dict(base.arguments)
    made = list(maker_of(boats, program).cases([base], 100))
    assert made
    assert (base.environment.state_hash, dict(base.arguments)) == before


@pytest.mark.parametrize(("index", "error"), [(2, "too_dear"), (3, "too_far")])
def test_edges_have_a_case_on_either_side_of_a_condition(
    boats: Domain, program: Program, index: int, error: str
) -> None:
    found = list(deciding(program, index, maker_of(boats, program), bases(boats)))
    failed = [case for case in found if case.result.error_code == error]
    assert failed
    assert len(failed) < len(found)


def test_a_product_of_two_values_is_met_exactly(boats: Domain, program: Program) -> None:
    """The rate at which the sides are equal, which no row has and no constant names."""
    costs = set()
    for case in deciding(program, 2, maker_of(boats, program), bases(boats)):
        trip = case.environment.get("trip", case.arguments["trip_id"])
        assert trip is not None
        boat = case.environment.get("boat", trip["boat_id"])
        assert boat is not None
        costs.add(round(boat["hourly_rate"] * (trip["hours"] + case.arguments["more"]), 6))
    assert 317.25 in costs
