"""Attempts on the host's memory that take long: each is played like those of the suite."""

import pytest

from tests.sandboxes.attacks.accounting import LONG
from tests.sandboxes.attacks.attempt import Attempt, complaint, is_root, play

pytestmark = [pytest.mark.scale, pytest.mark.usefixtures("sandboxed")]


@pytest.mark.parametrize("attempt", LONG, ids=lambda a: a.name)
def test_memory_is_bounded_as_the_host_sees_it(attempt: Attempt) -> None:
    outcome = play(attempt)
    if not outcome.contained:
        pytest.skip(outcome.control)
    assert complaint(attempt, outcome, root=is_root()) is None
