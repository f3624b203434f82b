"""Faults and doubts that the text of a program shows without a run."""

from typing import Any

import pytest

from tests.synth.catalogue.evolution.boats import BOATS
from tests.tool_specs.validation.trying import (
    BOAT,
    MORE,
    Statement,
    answer,
    boats,
    update,
    validated,
)
from tool_specs.domains.domain import load_domain
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.doubts import doubts_of

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
    [words] = doubts_of(spec, load_domain(BOATS).file)
    assert "rates is a sum of boats alone, which a limit cuts short" in words
    assert (
        doubts_of(
            spec.model_copy(update={"semantics": spec.semantics[1:]}), load_domain(BOATS).file
        )
        == []
    )


def test_a_guard_that_the_domain_makes_needless_is_told_and_not_refused() -> None:
    guarded = [BOAT, answer(name="boat.name", seats="max(0, boat.seats)")]
    assert validated(*guarded).reason is None
    spec = ToolSpec.model_validate(
        {
            "name": "tried_out",
            "description": "A tool that is tried out here.",
            "params": {"boat_id": {"type": "string", "ref": "boat"}},
            "semantics": guarded,
        }
    )
    [words] = doubts_of(spec, load_domain(BOATS).file)
    assert words.startswith("needless guard: semantics[1].value.seats guards by '0'")
