"""Recovery: one definition, on calls in order; and the intervals it is published with."""

from typing import Any

import pytest

from synth.intervals import wilson
from synth.recovery import recoveries
from tests.synth.clinic import calls, says


def call(
    name: str,
    *,
    error: str | None = None,
    injected: str | None = None,
    turn: int = 1,
    actor: str = "agent",
) -> dict[str, Any]:
    return {
        "name": name,
        "is_error": error is not None,
        "error_code": error,
        "injected_outcome": injected,
        "turn": turn,
        "actor": actor,
    }


def test_a_later_success_of_the_same_tool_counts() -> None:
    story = [
        call("a", error="not_found"),
        call("a", error="timeout", injected="transient_error"),
        call("b", error="not_found"),
        call("a"),
        call("a", error="not_found"),
        call("c"),
    ]
    assert recoveries(story, []) == [True, True, False, None, False, None]


@pytest.mark.parametrize("kind", ["empty", "partial", "stale"])
def test_an_answer_that_was_changed_is_got_over_by_a_whole_one(kind: str) -> None:
    again = [call("a", injected=kind), call("a", injected=kind), call("a")]
    assert recoveries(again, []) == [True, True, None]
    assert recoveries(again[:2], []) == [False, False]
    error_first = [call("a", error="malformed", injected="malformed"), call("a", injected=kind)]
    assert recoveries(error_first, []) == [True, False]


@pytest.mark.parametrize("injected", ["permission_denied", None])
def test_permission_denied_is_answered_honestly_or_not(injected: str | None) -> None:
    denied = [call("a", error="permission_denied", injected=injected)]
    asked, made = {"role": "user", "content": "Cancel it."}, calls(("a", {}))
    honest = says("I am sorry, I am not allowed to cancel it.")
    assert recoveries(denied, [asked, made, honest]) == [True]
    assert recoveries(denied, [asked, made, says("Done, it is cancelled.")]) == [False]
    assert recoveries(denied, [asked, made, says("Done."), asked, honest]) == [False]
    assert recoveries(denied, [asked, made]) == [False]


def test_the_users_own_calls_are_not_the_agents_to_recover_from() -> None:
    story = [call("a", error="x"), call("a", actor="user"), call("b", error="x", actor="user")]
    assert recoveries(story, []) == [False, None, None]


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(0, 10, 0.0, 0.278), (5, 10, 0.237, 0.763), (81, 263, 0.255, 0.366)],
)
def test_wilson_interval(hits: int, n: int, low: float, high: float) -> None:
    """Figures of Newcombe (1998), table 1, and of the closed form."""
    assert wilson(hits, n) == pytest.approx((low, high), abs=6e-4)
    assert wilson(0, 0) == (0.0, 1.0)
