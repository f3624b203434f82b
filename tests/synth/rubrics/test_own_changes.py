"""What calls changed, told apart from what changed by itself."""

from typing import Any

import pytest

from synth.rubrics.built_in import BUILT_IN, CALL, EpisodeCall, episode_of, net_changes
from synth.rubrics.criteria import CallCheck, ExpectedChange, Rubric, StateCheck
from synth.rubrics.episode import own_changes
from synth.rubrics.state import check_state

JOB = {"job": "hold_lapses", "at": "2026-03-02T09:10:00"}


def update(before: dict[str, Any], after: dict[str, Any], row: str = "TR-1") -> dict[str, Any]:
    return {"op": "update", "entity": "trolley", "id": row, "before": before, "after": after}


def create(guest: str) -> dict[str, Any]:
    after = {"booking_id": "BK-1", "guest": guest}
    return {"op": "create", "entity": "booking", "id": "BK-1", "before": None, "after": after}


def delete(guest: str) -> dict[str, Any]:
    before = {"booking_id": "BK-1", "guest": guest}
    return {"op": "delete", "entity": "booking", "id": "BK-1", "before": before, "after": None}


def test_a_change_of_a_job_is_nobodys() -> None:
    own = update({"mode": "idle"}, {"mode": "charging"})
    changes = [own, update({"mode": "charging"}, {"mode": "idle"}) | JOB]
    assert net_changes(changes) == own_changes(changes) == [own]


def test_a_call_after_a_job_is_merged_with_the_call_before_it() -> None:
    changes = [
        update({"mode": "idle"}, {"mode": "charging"}),
        update({"mode": "charging", "battery": 90}, {"mode": "idle", "battery": 100}) | JOB,
        update({"mode": "idle"}, {"mode": "busy"}),
    ]
    assert net_changes(changes) == [update({"mode": "idle"}, {"mode": "busy"})]


def test_a_row_that_a_job_took_away_may_be_made_again() -> None:
    """The same id, another row: no merge, and no error of two creates in a row."""
    changes = [create("Ana"), delete("Ana") | JOB, create("Mei"), delete("Mei")]
    assert net_changes(changes) == [create("Ana")]


def test_a_reading_call_in_which_a_job_ran_changed_nothing() -> None:
    looked = EpisodeCall(
        tool="look", arguments={}, diff=(update({"mode": "charging"}, {"mode": "idle"}) | JOB,)
    )
    check = CallCheck(tool="*", must="not_occur", changing=True)
    criterion = CALL.criterion("quiet", "Nothing is changed.", check, weight=1, mandatory=True)
    rubric = Rubric(criteria=(criterion,))
    assert BUILT_IN.check_all(rubric, episode_of([], [looked]))["quiet"].passed


@pytest.mark.parametrize(
    ("window", "value", "fits"),
    [
        (("2026-03-02T09:15:00", "2026-03-02T09:35:00"), "2026-03-02T09:15:00", True),
        (("2026-03-02T09:15:00", "2026-03-02T09:35:00"), "2026-03-02T09:35:00", True),
        (("2026-03-02T09:15:00", "2026-03-02T09:35:00"), "2026-03-02T09:36:00", False),
        (("2026-03-02T09:15:00", "2026-03-02T09:35:00"), "2026-03-02", False),
        (("2026-03-02T09:15:00", "2026-03-02T09:35:00"), None, False),
        ((60, 80), 70, True),
        ((60, 80), 90, False),
        ((60, 80), True, False),
        ((60, 80), "70", False),
    ],
)
def test_a_window_takes_what_lies_in_it(window: tuple[Any, Any], value: Any, fits: bool) -> None:
    low, high = window
    match = {"until": {"$from": low, "$to": high}}
    expected = ExpectedChange(op="update", entity="trolley", id="TR-1", match=match)
    found = check_state(
        StateCheck(changes=(expected,)), [update({"until": None}, {"until": value})]
    )
    assert found.passed is fits
