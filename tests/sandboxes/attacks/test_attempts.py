"""Every attempt succeeds in its control and is refused where all walls stand, for all callers.

The caller of the tests plays all of them, each with its control: what was ever found is looked for
in every run. For the second caller the kernel's other users, namespaces and limits matter, and so
of each mechanism one attempt on each wall is played; for the third what its users of their own are
to hold, and code that forges results. Payloads and graders are the same programs for all; the
others repeat the evidence and are marked `scale`, which `make bench` runs;
`python -m benchmarks.containment` plays everything for all.
"""

import asyncio
import fcntl
import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sandboxes.local.users import apart
from tests.sandboxes.attacks.attempt import Attempt, Outcome, complaint, is_root
from tests.sandboxes.attacks.callers import by_a_user, play_all
from tests.sandboxes.attacks.suite import ATTEMPTS

ROOT = Path(__file__).parents[3]
CALLERS = ("the caller of the tests", "a user without rights", "a user with a range")

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]


def first_of_each(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Of each mechanism and wall, by preference one whose control a user can make too."""
    found: dict[tuple[str, str], Attempt] = {}
    for attempt in sorted(attempts, key=lambda a: (a.as_root, a.needs is not None)):
        found.setdefault((attempt.way, attempt.contained_by), attempt)
    return list(found.values())


SECOND_PLAYS = first_of_each(ATTEMPTS)


def plays() -> Iterator[Any]:
    """(attempt, caller), in the order of the table."""
    for attempt, caller in itertools.product(ATTEMPTS, CALLERS):
        repeats = {
            CALLERS[0]: False,
            CALLERS[1]: attempt not in SECOND_PLAYS,
            CALLERS[2]: attempt.one_uid is None and attempt.group != "results of tests",
        }[caller]
        name = f"{attempt.group}: {attempt.name}-{caller}"
        yield pytest.param(attempt, caller, id=name, marks=[pytest.mark.scale] * repeats)


@pytest.fixture(scope="session")
def outcome_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], Outcome]:
    """(caller, name) -> outcome. What is selected for a caller is played once in a session of
    tests, several attempts at a time, by whichever worker is the first to ask."""
    chosen = [getattr(item, "callspec", None) for item in request.session.items]
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def played(caller: str) -> dict[str, Outcome] | str:
        parameters = [spec.params for spec in chosen if spec is not None]
        names = {p["attempt"].name for p in parameters if p.get("caller") == caller}
        if caller != CALLERS[0]:
            return by_a_user(sorted(names), ranges=caller == CALLERS[2])
        return asyncio.run(play_all([a for a in ATTEMPTS if a.name in names]))

    def outcome(caller: str, name: str) -> Outcome:
        report = folder / f"attempts-{CALLERS.index(caller)}.json"
        with report.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not report.exists():
                report.write_text(json.dumps(played(caller)))
        found = json.loads(report.read_text())
        if isinstance(found, str):
            pytest.skip(f"no such caller: {found}")
        return Outcome(*found[name])

    return outcome


@pytest.mark.parametrize(("attempt", "caller"), list(plays()))
def test_attempt(attempt: Attempt, caller: str, outcome_of: Callable[[str, str], Outcome]) -> None:
    outcome = outcome_of(caller, attempt.name)
    if not outcome.contained:
        pytest.skip(outcome.control)
    first = caller == CALLERS[0]
    users = apart() is None if first else caller == CALLERS[2]
    assert complaint(attempt, outcome, root=first and is_root(), users=users) is None


def test_names_are_unique_and_controls_are_named() -> None:
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS)
    assert all(attempt.lacking for attempt in ATTEMPTS)


def test_what_both_callers_play_in_every_run_is_no_small_sample() -> None:
    assert len(SECOND_PLAYS) >= 180
    assert len({attempt.way for attempt in SECOND_PLAYS}) == len({a.way for a in ATTEMPTS}) >= 60
    assert sum(not attempt.as_root for attempt in SECOND_PLAYS) >= 150
    assert {a.contained_by for a in SECOND_PLAYS} == {a.contained_by for a in ATTEMPTS}
    assert sum(attempt.group == "results of tests" for attempt in ATTEMPTS) >= 30


def test_the_page_in_the_docs_has_every_attempt_with_its_result_and_its_control() -> None:
    page = (ROOT / "docs/containment.md").read_text(encoding="utf-8")
    lines = page.partition("\n## Mechanisms\n")[0].splitlines()
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in lines if " | " in line}
    for attempt in ATTEMPTS:
        line = rows.pop(attempt.name)
        assert f"| refused {attempt.refusal} |" in line
        assert attempt.kernel is not None or ", ".join(attempt.lacking) in line
    assert set(rows) <= {"attempt", "caller", "root", "a user", "a user with a range", "---"}
