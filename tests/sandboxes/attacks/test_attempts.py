"""Every attempt succeeds in its control and is refused where all walls stand."""

import pytest

from tests.sandboxes.attacks.attempt import Attempt, impossible, verdicts
from tests.sandboxes.attacks.suite import ATTEMPTS

pytestmark = pytest.mark.usefixtures("sandboxed")


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: f"{a.group}: {a.name}")
def test_attempt(attempt: Attempt) -> None:
    if (reason := impossible(attempt)) is not None:
        pytest.skip(reason)
    control, contained = verdicts(attempt)
    assert contained == f"refused {attempt.refusal}"
    if attempt.kernel is None:
        assert control.startswith("won"), f"the payload does not work: {control}"


def test_names_are_unique_and_controls_are_named() -> None:
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS)
    assert all(attempt.lacking for attempt in ATTEMPTS)
