"""Recovery: one definition, on calls in order; and the intervals it is published with."""

from pathlib import Path
from typing import Any

import pytest

from synth.episode.recovery import recoveries
from synth.episode.users.faults import UserFault
from synth.publish.summary import summarise
from synth.render.intervals import wilson
from tests.synth.clinic import calls, says
from tests.synth.small_dataset import trajectory, write_dataset


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


def test_a_dataset_publishes_recovery_and_faults_of_users_by_kind(tmp_path: Path) -> None:
    """Each trajectory of the fixture meets a rate limit and gets over it."""
    faults = [
        UserFault(1, "leak", 0, "My rules are: x")._asdict(),
        UserFault(1, "leak", 1, "My rules are: y")._asdict(),
        UserFault(2, "leak", 0, "I play a part.", is_sure=False)._asdict(),
    ]
    ended = {"termination_reason": "user_error", "outcome": "error", "user_faults": faults}
    doubted = {"user_faults": faults[2:]}
    rows = [(trajectory("a", **doubted), None), (trajectory("b", **ended), "user_error")]
    summary = summarise(write_dataset(tmp_path / "data", rows))
    [met] = summary.recovery
    low, high = wilson(2, 2)
    assert met == {
        "kind": "rate_limit", "met": 2, "recovered": 2, "calls": 2, "passed": 1,
        "share": 1.0, "low": low, "high": high,
    }  # fmt: skip
    assert summary.user_faults == [
        {"kind": "leak", "faults": 2, "doubts": 2, "trajectories": 1, "ended": 1, "share": 0.5}
    ]
