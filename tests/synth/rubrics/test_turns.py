"""The outer form of a conversation: its order, and calls that do not fit."""

import pytest

from synth.rubrics.built_in import FIT, TURNS, EpisodeCall, episode_of
from synth.rubrics.criteria import FitCheck, TurnsCheck

ASK = {"role": "user", "content": "Is it free?"}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c1", "function": {"name": "find", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "{}"}
SAYS = {"role": "assistant", "content": "Yes."}


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([ASK, CALL, RESULT, SAYS], None),
        ([ASK, CALL, SAYS], "1 calls unanswered"),
        ([ASK, RESULT, SAYS], "answers no open call"),
        ([ASK, CALL, RESULT, RESULT, SAYS], "answers no open call"),
        ([ASK, ASK, SAYS], "two user messages in a row"),
        ([ASK, SAYS, ASK], "does not end with words of the agent"),
        ([ASK, CALL], "does not end with words of the agent"),
    ],
)
def test_calls_are_answered_once_before_anything_else_is_said(
    messages: list[dict[str, object]], fault: str | None
) -> None:
    verdict = TURNS.verdict(TurnsCheck(), episode_of(messages, []))
    assert verdict.passed is (fault is None)
    assert fault is None or fault in verdict.evidence


@pytest.mark.parametrize(
    ("changed", "passed"),
    [
        ({}, True),
        ({"error_code": "invalid_arguments"}, False),
        ({"error_code": "unknown_tool"}, False),
        ({"error_code": "invalid_arguments", "is_error": True}, True),
        ({"error_code": "not_found"}, True),
        ({"error_code": "unknown_tool", "actor": "user"}, True),
    ],
)
def test_a_call_that_does_not_fit_fails_unless_it_was_refused(
    changed: dict[str, object], passed: bool
) -> None:
    made = EpisodeCall.model_validate({"tool": "find", "arguments": {}} | changed)
    verdict = FIT.verdict(FitCheck(), episode_of([ASK, SAYS], [made]))
    assert verdict.passed is passed
    assert ("call 0 of find" in verdict.evidence) is not passed
