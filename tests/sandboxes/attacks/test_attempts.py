"""Every attempt succeeds in its control and is refused where all walls stand, for both callers."""

import fcntl
import json
import os
from pathlib import Path

import pytest

from tests.sandboxes.attacks.attempt import Attempt, Outcome, complaint, is_root, play
from tests.sandboxes.attacks.callers import by_a_user
from tests.sandboxes.attacks.suite import ATTEMPTS

ROOT = Path(__file__).parents[3]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: f"{a.group}: {a.name}")
def test_attempt(attempt: Attempt) -> None:
    judge(attempt, play(attempt), root=is_root())


@pytest.fixture(scope="session")
def of_a_user(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Outcome]:
    """What came of the selected attempts for a user without rights: played once in a session of
    tests, all by one process, whichever worker is the first to ask."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    report = folder / "attempts-of-a-user.json"
    with (folder / "attempts-of-a-user.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not report.exists():
            chosen = [i.callspec.params for i in request.session.items if hasattr(i, "callspec")]  # type: ignore[attr-defined]
            names = {c["attempt_of_a_user"].name for c in chosen if "attempt_of_a_user" in c}
            report.write_text(json.dumps(by_a_user(sorted(names))))
    outcomes = json.loads(report.read_text())
    if isinstance(outcomes, str):
        pytest.skip(f"no second caller: {outcomes}")
    return {name: Outcome(*outcome) for name, outcome in outcomes.items()}


@pytest.mark.parametrize("attempt_of_a_user", ATTEMPTS, ids=lambda a: f"{a.group}: {a.name}")
def test_attempt_where_a_user_without_rights_makes_the_sandbox(
    attempt_of_a_user: Attempt, of_a_user: dict[str, Outcome]
) -> None:
    judge(attempt_of_a_user, of_a_user[attempt_of_a_user.name], root=False)


def judge(attempt: Attempt, outcome: Outcome, *, root: bool) -> None:
    if not outcome.contained:
        pytest.skip(outcome.control)
    assert complaint(attempt, outcome, root=root) is None


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
    assert {name for name in rows if name != "---"} == {"attempt", "mechanism"}
