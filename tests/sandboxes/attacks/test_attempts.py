"""Every attempt succeeds in its control and is refused where all walls stand."""

from pathlib import Path

import pytest

from tests.sandboxes.attacks.attempt import Attempt, impossible, verdicts
from tests.sandboxes.attacks.suite import ATTEMPTS

ROOT = Path(__file__).parents[3]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]


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


def test_the_table_in_the_docs_has_every_attempt_and_its_control() -> None:
    lines = (ROOT / "docs/containment.md").read_text(encoding="utf-8").splitlines()
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in lines if " | " in line}
    for attempt in ATTEMPTS:
        line = rows.pop(attempt.name)
        assert f"| refused {attempt.refusal} |" in line
        assert attempt.kernel is not None or ", ".join(attempt.lacking) in line
    assert {name for name in rows if name != "---"} == {"attempt"}
