"""Economy of calls: what is a call in vain, what never is, and what code cannot tell."""

import json
from typing import Any

import pytest

from records.tables.schemas import Row
from synth.rubrics.economy import economy_of, known_to_do

TOOLS = [
    {"name": "find", "annotations": {"readOnlyHint": True, "openWorldHint": False}},
    {"name": "weather", "annotations": {"readOnlyHint": True, "openWorldHint": True}},
    {"name": "book", "annotations": {"readOnlyHint": False, "openWorldHint": False}},
    {"name": "notes", "annotations": None},
]
USER = {"role": "user", "content": "And now?"}
CHANGE = [{"op": "update", "entity": "slot", "id": "S1", "before": {}, "after": {}}]
FULL = '{"error": {"code": "full", "message": "Slot S1 is full."}}'


def call(name: str, observation: str, *, arguments: Any = None, **other: Any) -> Row:
    """A call that the agent made and that was answered without an error, unless `other` says so."""
    plain = {"is_error": False, "error_code": None, "injected_outcome": None, "actor": "agent"}
    given = {"name": name, "arguments": arguments or {}, "observation": observation}
    return plain | given | {"state_diff": []} | other


def refused(observation: str = FULL, code: str = "full", **other: Any) -> Row:
    return call("book", observation, is_error=True, error_code=code, **other)


def judged(*steps: Row, known: int | None = None) -> tuple[bool | None, str]:
    """What the verdict on an episode is, of calls and of messages between them."""
    messages: list[Row] = [{"role": "user", "content": "Please."}]
    calls: list[Row] = []
    for step in steps:
        if "role" in step:
            messages.append(step)
            continue
        turn = sum(m["role"] == "assistant" for m in messages) + 1
        calls.append(step | {"turn": turn, "call_index": len(calls)})
        function = {"name": step["name"], "arguments": json.dumps(step["arguments"])}
        messages.append({"role": "assistant", "tool_calls": [{"function": function}]})
        messages.append({"role": "tool", "content": step["observation"]})
    verdict = economy_of(messages, calls, TOOLS, known)
    assert (verdict.score == 1.0) == (verdict.passed is True)
    return verdict.passed, verdict.evidence


FOUND = call("find", "S1 is free")
BOOKED = call("book", "booked", state_diff=CHANGE)
BY_USER = call("turn_on", "on", actor="user")

IN_VAIN = {
    "a look-up again": ([FOUND, FOUND], "call 1 repeats call 0"),
    "after another look-up": ([FOUND, call("find", "x", arguments={"i": 1}), FOUND], "call 2"),
    "after a refusal": ([FOUND, refused(), FOUND], "call 2 repeats call 0"),
    "since the change": ([FOUND, BOOKED, FOUND, FOUND], "4 calls; call 3 repeats call 2."),
    "the same refusal": ([refused(), refused()], "call 1 is refused as was call 0"),
    "other arguments, same reason": ([refused(), refused(arguments={"slot": "S1"})], "call 1 is"),
    "a tool that is not there": (
        [call("gone", "no such tool", is_error=True, error_code="unknown_tool")] * 2,
        "call 1 is refused as was call 0",
    ),
}


@pytest.mark.parametrize("name", IN_VAIN)
def test_a_call_that_brings_nothing_is_named(name: str) -> None:
    steps, named = IN_VAIN[name]
    passed, evidence = judged(*steps)
    assert passed is False
    assert named in evidence


FAIR = {
    "no call at all": [],
    "pages of a list": [call("find", f"page {i}", arguments={"page": i}) for i in range(3)],
    "another answer": [FOUND, call("find", "S1 is taken")],
    "after a change": [FOUND, BOOKED, FOUND],
    "after what the user did": [FOUND, BY_USER, FOUND],
    "after a write that shows no change": [FOUND, call("notes", "noted"), FOUND],
    "a try after an error that passes": [refused(code="timeout")] * 3 + [BOOKED],
    "a try after an injected error": [refused(injected_outcome="rate_limit")] * 2 + [BOOKED],
    "a refusal that passed": [refused(), refused(), BOOKED],
    "after an injected result": [FOUND | {"injected_outcome": "stale"}, FOUND],
    "after another refusal": [refused(), refused("Slot S2 is full.")],
    "the same change twice": [BOOKED, BOOKED],
}


@pytest.mark.parametrize("name", FAIR)
def test_what_has_its_reason_is_no_waste(name: str) -> None:
    passed, evidence = judged(*FAIR[name])
    assert passed is True, evidence


UNTOLD = {
    "the user spoke since": [FOUND, USER, FOUND],
    "refused, and the user spoke": [refused(), USER, refused()],
    "others may change it": [call("weather", "sunny"), call("weather", "sunny")],
    "a tool that declares nothing": [call("notes", "noted"), call("notes", "noted")],
}


@pytest.mark.parametrize("name", UNTOLD)
def test_a_repeat_that_may_have_its_reason_is_left_open(name: str) -> None:
    assert judged(*UNTOLD[name])[0] is None


def test_more_calls_than_are_known_to_do_are_waste_only_where_that_shows() -> None:
    other = call("find", "weekday hours", arguments={"topic": "hours"})
    says = {"role": "assistant", "content": "S1 is free."}
    assert judged(FOUND, other, says)[0] is True  # nobody knows how many calls would do
    assert judged(FOUND, other, says, known=2)[0] is True
    passed, evidence = judged(FOUND, other, says, known=1)
    assert passed is None
    assert evidence.startswith("2 calls where 1 are known to do; call 1 finds nothing that is used")
    told = {"role": "assistant", "content": "S1 is free, also by the weekday rate."}
    assert judged(FOUND, other, told, known=1)[0] is True
    passing = refused(injected_outcome="transient_error")
    assert judged(passing, FOUND, says, known=1)[0] is True
    assert judged(FOUND, FOUND, known=1) == (
        False,
        "2 calls where 1 are known to do; call 1 repeats call 0.",
    )


def test_the_share_of_calls_in_vain_is_lost() -> None:
    calls = [FOUND | {"turn": 1, "call_index": i} for i in range(6)]
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": ""}]
    verdict = economy_of(messages, calls, TOOLS)
    assert verdict.score == pytest.approx(1 / 6)
    assert verdict.evidence.endswith("call 3 repeats call 0; 2 more.")


def test_the_plan_says_how_many_calls_of_the_agent_do() -> None:
    plan = [{"tool": "find"}, {"tool": "turn_on", "actor": "user"}, {"tool": "book"}]
    assert known_to_do(plan) == 2
    assert known_to_do([]) is known_to_do(None) is None
