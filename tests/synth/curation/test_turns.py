"""Loss flags: what is wrong with a message of the agent's, by each rule, and nothing else."""

from typing import Any, get_args

import pytest

from synth.curation.settings.config import AgentTurnFault
from synth.curation.turns import FaultyTurn, false_statements, faulty_turns, train_turns

EVERY: tuple[AgentTurnFault, ...] = get_args(AgentTurnFault)


def call(number: int, *, code: str | None = None, **values: Any) -> dict[str, Any]:
    """A call of the message with the same number; an error where it has a code."""
    return {
        "tool_call_id": f"call_{number}",
        "name": "book",
        "arguments": {"room": 4},
        "is_error": code is not None,
        "error_code": code,
        "injected_outcome": None,
        "state_diff": [],
        "state_hash_after": "as before",
        "actor": "agent",
        "parent_call_id": None,
        "session": 0,
    } | values


def messages_of(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    """The user, then for each call the agent's message and the result, then the closing words."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "Book it."}]
    for one in calls:
        said.append({"role": "assistant", "tool_calls": [{"id": one["tool_call_id"]}]})
        said.append({"role": "tool", "content": ""})
    return [*said, {"role": "assistant", "content": "Done."}]


def faults(*calls: dict[str, Any], rules: tuple[AgentTurnFault, ...] = EVERY) -> list[FaultyTurn]:
    return list(faulty_turns(messages_of(*calls), calls, rules))


def test_a_call_that_goes_well_is_no_fault() -> None:
    assert faults(call(0), call(1)) == []


def test_a_faulty_message_stays_and_carries_no_loss() -> None:
    calls = [call(0, code="invalid_arguments"), call(1)]
    messages = messages_of(*calls)
    flags = train_turns(messages, faulty_turns(messages, calls, ("refused_arguments",)))
    assert flags == [False, False, False, True, False, True]


@pytest.mark.parametrize("code", ["invalid_arguments", "unknown_tool", "too_many_calls"])
def test_what_the_tool_did_not_take_is_refused(code: str) -> None:
    assert faults(call(0, code=code), rules=("refused_arguments",)) == [(1, "refused_arguments")]


def test_a_look_up_that_finds_nothing_is_not_refused_and_fails_all_the_same() -> None:
    found = faults(call(0, code="not_found"))
    assert found == [(1, "failing_call")]


def test_an_injected_error_is_nobodys_fault() -> None:
    injected = call(0, code="rate_limited", injected_outcome="rate_limit")
    assert faults(injected, call(1, code="rate_limited", injected_outcome="rate_limit")) == []


def test_the_second_of_two_equal_failures_is_a_repeat_and_the_first_is_none() -> None:
    again = [call(0, code="not_found"), call(1, code="not_found")]
    assert faults(*again, rules=("repeated_failure",)) == [(3, "repeated_failure")]


@pytest.mark.parametrize(
    "second",
    [
        call(1, code="not_found", arguments={"room": 5}),
        call(1, code="not_found", name="cancel"),
        call(1),
        call(1, code="not_found", actor="user"),
        call(1, code="not_found", parent_call_id="call_9"),
        call(1, code="not_found", session=1),
    ],
    ids=[
        *("other arguments", "another tool", "goes well", "the user's", "a sub-agent's"),
        "in a later conversation",
    ],
)
def test_what_is_asked_otherwise_repeats_nothing(second: dict[str, Any]) -> None:
    assert faults(call(0, code="not_found"), second, rules=("repeated_failure",)) == []


def test_after_a_change_and_after_an_error_that_passes_trying_again_is_right() -> None:
    changed = call(1, state_diff=[{"op": "update"}], name="unlock")
    between = [call(0, code="not_found"), changed, call(2, code="not_found")]
    assert faults(*between, rules=("repeated_failure",)) == []
    passing = [call(0, code="timeout"), call(1, code="timeout")]
    assert faults(*passing, rules=("repeated_failure",)) == []


def test_where_no_state_is_seen_what_succeeded_may_have_changed_it() -> None:
    elsewhere: dict[str, Any] = {"state_diff": None, "state_hash_after": None}
    first, again = (call(n, code="not_found", **elsewhere) for n in (0, 2))
    assert faults(first, call(1, name="add", **elsewhere), again, rules=("repeated_failure",)) == []
    seen = call(1, name="look")
    assert faults(first, seen, again, rules=("repeated_failure",)) == [(5, "repeated_failure")]


def test_a_lasting_refusal_that_is_tried_again_is_a_repeat() -> None:
    denied = {"code": "permission_denied", "injected_outcome": "permission_denied"}
    found = faults(call(0, **denied), call(1, **denied), rules=("repeated_failure",))
    assert found == [(3, "repeated_failure")]


def verdict(by: str, *findings: tuple[int, str], criterion: str = "truth") -> dict[str, Any]:
    details = [{"message": at, "finding": finding} for at, finding in findings]
    return {"criterion_id": criterion, "checked_by": by, "details": details}


def test_false_statements_are_told_by_the_findings_of_who_counts() -> None:
    verdicts = [
        verdict("code", (2, "matched"), (4, "contradicted"), (6, "open")),
        verdict("judge", (6, "not_shown"), (8, "follows")),
        verdict("panel:other", (8, "contradicted")),
        verdict("judge", (9, "contradicted"), criterion="answers"),
        verdict("judge", criterion="manners") | {"details": None},
    ]
    assert false_statements(verdicts, judge_counts=True) == {4, 6}
    assert false_statements(verdicts, judge_counts=False) == {4}


def test_a_false_statement_carries_no_loss_and_its_correction_does() -> None:
    messages = [
        {"role": "user", "content": "What does it cost?"},
        {"role": "assistant", "content": "It is 20 EUR."},
        {"role": "user", "content": "Really?"},
        {"role": "assistant", "content": "I was wrong, it is 25 EUR."},
    ]
    found = faulty_turns(messages, [], ("false_statement",), {1})
    assert train_turns(messages, found) == [False, False, False, True]
    assert found == (FaultyTurn(1, "false_statement"),)
