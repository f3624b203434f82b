"""A job is tried in made states: it gets due, keeps rules and lifecycles, and has no dead part."""

from typing import Any

import pytest

from tool_specs.domains.domain import Domain
from tool_specs.language.domain_file import ToolSpec
from tool_specs.validation.checking import check_domain
from tool_specs.validation.job_trials import job_trial
from tool_specs.validation.validate import validate_tools

WASHING: dict[str, Any] = {
    "domain": "washing",
    "title": "Washing",
    "category": "smart_home",
    "description": "Machines of a house that wash by themselves.",
    "now": "2026-03-02T09:00:00",
    "entities": {
        "machine": {
            "key": "machine_id",
            "fields": {
                "machine_id": {"type": "string"},
                "status": {"type": "enum", "values": ["idle", "washing", "done"]},
                "door": {"type": "enum", "values": ["open", "shut"]},
                "water": {"type": "integer", "min": 0, "max": 50},
                "done_at": {"type": "datetime", "optional": True},
            },
            "lifecycle": {
                "field": "status",
                "moves": [
                    {
                        "name": "start",
                        "text": "Start it now.",
                        "from": ["idle"],
                        "to": "washing",
                    },
                    {"name": "end", "text": "End a cycle.", "from": ["washing"], "to": "done"},
                ],
            },
        }
    },
    "rules": [
        {
            "id": "shut",
            "entity": "machine",
            "that": "machine.status != 'washing' or machine.door == 'shut'",
            "text": "A machine that washes is shut.",
        }
    ],
    "seed": {
        "machine": [
            ["MA-1", "idle", "open", 0, None],
            ["MA-2", "done", "shut", 30, None],
        ]
    },
    "tools": [],
}
ENDS = {
    "name": "cycle_ends",
    "text": "A cycle ends, and the water is gone.",
    "entity": "machine",
    "where": "machine.status == 'washing'",
    "due": "machine.done_at",
    "do": [
        {
            "op": "update",
            "target": "machine",
            "set": {"status": "'done'", "water": "0", "done_at": "null"},
        }
    ],
}


def trial(job: dict[str, Any]) -> tuple[str, ...]:
    """Of a job in a house where nothing washes at first."""
    return job_trial(Domain.of(WASHING | {"jobs": [job]}, origin="file"), job["name"]).problems


def updating(**values: str) -> dict[str, Any]:
    return ENDS | {"do": [{"op": "update", "target": "machine", "set": values}]}


def test_a_good_job_has_no_problem() -> None:
    assert trial(ENDS) == ()


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (ENDS | {"where": "machine.status == 'washing' and machine.water > 60"}, "gets due"),
        (ENDS | {"where": "machine.status == 'washing' and machine.water >= 0"}, "is it needed"),
        (updating(status="'idle'", done_at="null"), "no move of the lifecycle"),
        (updating(door="'open'", done_at="null"), "breaks rule shut"),
        (updating(status="'done'", water="machine.water - 20", done_at="null"), "water"),
        (updating(status="'done'", done_at="null", door="machine.door"), "is it needed"),
    ],
)
def test_a_faulty_job_is_told_why(job: dict[str, Any], words: str) -> None:
    assert any(words in problem for problem in trial(job)), trial(job)


def test_a_job_without_its_condition_runs_where_it_should_not() -> None:
    """The condition is told by a state that the seed does not show: idle, and yet a moment."""
    further = {**ENDS, "where": "machine.status == 'washing' and machine.door == 'shut'"}
    assert any("is it needed" in problem for problem in trial(further))  # the rule says it already


def fill(takes: str) -> ToolSpec:
    """A tool that fills a machine."""
    return ToolSpec.model_validate(
        {
            "name": "fill_machine",
            "description": "Fill a machine. Returns water.",
            "params": {
                "machine_id": {"type": "string", "ref": "machine"},
                "litres": {"type": "integer", "min": 1, "max": 20},
            },
            "takes": takes,
            "semantics": [
                {"op": "read", "entity": "machine", "key": "args.machine_id", "as": "machine"},
                {"op": "update", "target": "machine", "set": {"water": "args.litres"}},
                {"op": "return", "value": {"door": "machine.door", "water": "machine.water"}},
            ],
        }
    )


@pytest.mark.parametrize(
    ("takes", "words"),
    [
        ("2 minutes", ""),
        ("args.litres * 2", ""),
        ("0 minutes", "without takes '0 minutes' it does the same"),
        ("args.litres * 0", "without takes 'args.litres * 0' it does the same"),
    ],
)
def test_a_duration_that_makes_no_difference_refuses_a_tool(takes: str, words: str) -> None:
    domain = Domain.of(WASHING | {"jobs": [ENDS]}, origin="file")
    found = validate_tools(domain, [fill(takes)])["fill_machine"]
    assert words in " ".join(found.details)
    assert (found.reason == "dead_term") == bool(words), found.details


def test_what_goes_wrong_in_states_that_tools_make_is_told() -> None:
    """The job takes more water than there is, once a machine is started."""
    starts = {
        "name": "start_machine",
        "description": "Start an idle machine. Returns machine_id.",
        "params": {"machine_id": {"type": "string", "ref": "machine"}},
        "semantics": [
            {"op": "read", "entity": "machine", "key": "args.machine_id", "as": "machine"},
            {"op": "require", "that": "machine.status == 'idle'", "error": "no", "message": "No."},
            {
                "op": "update",
                "target": "machine",
                "set": {
                    "status": "'washing'",
                    "door": "'shut'",
                    "done_at": "add_minutes(now(), 9)",
                },
            },
            {"op": "return", "value": {"machine_id": "machine.machine_id"}},
        ],
    }
    job = updating(status="'done'", water="machine.water - 20", done_at="null")
    domain = Domain.of(WASHING | {"jobs": [job], "tools": [starts]}, origin="file")
    problems = check_domain(domain).problems
    assert any("jobs: job cycle_ends" in problem for problem in problems), problems
