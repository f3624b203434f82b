"""A policy rule is tried on calls: it can be broken and kept, or the words say what is wrong."""

import pytest

from tests.tool_specs.conftest import CANTEEN
from tool_specs.domains.domain import load_domain, load_domains
from tool_specs.domains.taxonomy import load_taxonomy
from tool_specs.language.domain_file import PolicyRule
from tool_specs.validation.rules import rule_problems

(CLINIC,) = load_domains(["clinic_desk"])
(ROOMS,) = load_taxonomy(["coworking_space"])


def rule(forbids: str, tool: str = "cancel_appointment") -> PolicyRule:
    return PolicyRule(id="same", text="Do not do this at all.", tool=tool, forbids=forbids)


@pytest.mark.parametrize(
    ("forbids", "words"),
    [
        ("true", "held in all of"),
        ("lookup('appointment', args.appointment_id).status == 'cancelled'", "held in none of"),
        ("args.appointment.colour == 'red'", "colour"),
        ("args.nothing == 1", "nothing"),
    ],
)
def test_a_rule_that_cannot_be_used_is_told_why(forbids: str, words: str) -> None:
    ((problem,),) = rule_problems(CLINIC, [rule(forbids)])
    assert words in problem


def test_a_rule_needs_a_tool_of_the_agent() -> None:
    ((problem,),) = rule_problems(CLINIC, [rule("true", tool="fly_away")])
    assert "'fly_away' is no tool of the agent" in problem


def test_good_rules_have_no_problem_beside_bad_ones_of_the_same_id() -> None:
    own = [r for r in CLINIC.policy if r.forbids != "true"]
    found = rule_problems(CLINIC, [*own, rule("true")])
    assert found[:-1] == [()] * len(own)
    assert found[-1]
    assert found == rule_problems(CLINIC, [*own, rule("true")])


def test_a_day_far_ahead_is_tried() -> None:
    far = "days_between(now(), args.starts_at) > 90"
    assert rule_problems(ROOMS, [rule(far, tool="book_room")]) == [()]


def test_a_rule_that_breaks_down_on_a_call_is_told_and_does_not_count_as_kept() -> None:
    """Division by a number that is zero now and then."""
    clinic = rule("100 / (length(args.appointment_id) - 7) > 500", tool="cancel_appointment")
    ((problem,),) = rule_problems(CLINIC, [clinic])
    assert "cannot be evaluated on a call that succeeds" in problem
    assert "division" in problem


def test_an_hour_of_the_day_is_tried() -> None:
    late = "format(args.starts_at, '%H:%M') > '21:45'"
    assert rule_problems(ROOMS, [rule(late, tool="book_room")]) == [()]


def test_time_passes_in_the_trial_of_a_rule() -> None:
    """No call begins an hour after the start of the world unless time passes before it."""
    canteen = load_domain(CANTEEN)
    late = f"minutes_between('{canteen.now}', now()) > 2000"
    assert rule_problems(canteen, [rule(late, tool="heat_oven")]) == [()]
