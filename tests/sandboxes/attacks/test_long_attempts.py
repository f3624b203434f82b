"""Attempts that take long: each is played like those of the suite."""

import pytest

from sandboxes.local.users import apart
from tests.sandboxes.attacks.attempt import Attempt, complaint, is_root, play
from tests.sandboxes.attacks.kernel import accounting, quotas

pytestmark = [pytest.mark.scale, pytest.mark.usefixtures("sandboxed")]


@pytest.mark.parametrize("attempt", [*quotas.LONG, *accounting.LONG], ids=lambda a: a.name)
def test_long_attempt(attempt: Attempt) -> None:
    outcome = play(attempt)
    if not outcome.contained:
        pytest.skip(outcome.control)
    assert complaint(attempt, outcome, root=is_root(), users=apart() is None) is None
