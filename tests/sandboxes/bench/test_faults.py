"""Faults that are really made to happen are survived, and many sandboxes live at once."""

import asyncio

import pytest

from sandboxes.bench.faults import survived
from sandboxes.bench.measure import hold_many

pytestmark = pytest.mark.usefixtures("sandboxed")


@pytest.mark.slow
def test_every_fault_is_survived_and_every_lease_accounted_for() -> None:
    rows = asyncio.run(survived())
    assert [row.fault for row in rows if not row.survived] == [], rows
    assert all(row.injected for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.scale)])
def test_many_live_at_once_answer_and_leave_nothing(count: int) -> None:
    seen = asyncio.run(hold_many(count))
    assert seen.answered == count
    assert seen.left == 0
