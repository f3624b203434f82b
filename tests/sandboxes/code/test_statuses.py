"""What comes of a test, by unittest and by pytest: statuses, what judges, and what is green."""

import asyncio
import json
from pathlib import Path
from random import Random

import pytest

from flows.cli.commands.code import check
from sandboxes.code.projects import Project
from sandboxes.code.sources import write_definition
from sandboxes.code.suite import STATUSES, CaseOutcome, SuiteRun, list_tests, reason, run_suite
from sandboxes.code.swe import baseline_of, inject_bug
from sandboxes.core.python_env import site_packages
from tests.sandboxes.code.code_cases import project

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sandboxed")]

UNITTEST = """import unittest

from shop.price import price


class StatusTest(unittest.TestCase):
    def test_passed(self):
        self.assertEqual(price(10), 45)

    def test_failed(self):
        self.assertEqual(price(10), 1)

    def test_error(self):
        price("ten", 3)

    def test_skipped(self):
        self.skipTest("no till here")

    @unittest.expectedFailure
    def test_xfailed(self):
        self.assertEqual(price(-1), 0)

    @unittest.expectedFailure
    def test_xpassed(self):
        self.assertEqual(price(1), 5)

    def test_part_failed(self):
        for count in (1, 10):
            with self.subTest(count=count):
                self.assertEqual(price(count), 5)


class WithClassSetUpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.count = 10

    def test_class_set_up(self):
        self.assertEqual(price(self.count), 45)
"""
PYTEST = """import pytest

from shop.price import price


def test_passed():
    assert price(10) == 45


def test_failed():
    assert price(10) == 1


@pytest.fixture
def broken():
    raise RuntimeError("no till")


def test_error(broken):
    pass


def test_skipped():
    pytest.skip("no till here")


@pytest.mark.xfail(reason="nobody sells less than nothing")
def test_xfailed():
    assert price(-1) == 0


@pytest.mark.xfail
def test_xpassed():
    assert price(1) == 5


@pytest.mark.xfail(strict=True)
def test_xpassed_strictly():
    assert price(1) == 5


@pytest.mark.parametrize("count", [1, 9])
def test_passed_with(count):
    assert price(count) == 5 * count
"""
BROKEN = "import not_there\n"
ABSENT = {
    "unittest": 'import unittest\n\nraise unittest.SkipTest("not here")\n',
    "pytest": 'import pytest\n\npytest.skip("not here", allow_module_level=True)\n',
}


def shop(runner: str) -> Project:
    text = UNITTEST if runner == "unittest" else PYTEST
    added = {
        "tests/test_status.py": text,
        "tests/test_broken.py": BROKEN,
        "tests/test_absent.py": ABSENT[runner],
    }
    site = site_packages(None) if runner == "pytest" else None
    settings = {"runner": runner, "site": site, "files": project().files | added}
    return project().model_copy(update=settings)


def of_module(run: SuiteRun, module: str) -> CaseOutcome:
    return next(outcome for name, outcome in run.outcomes.items() if module in name)


@pytest.mark.parametrize("runner", ["unittest", "pytest"])
def test_each_outcome_has_a_status_of_its_own(runner: str) -> None:
    one = shop(runner)
    names = [test.name for test in asyncio.run(list_tests(one))]
    run = asyncio.run(run_suite(one, one.files, names))
    assert not run.forged
    for name, outcome in run.outcomes.items():
        if "test_status" in name and "part" not in name and "set_up" not in name:
            word = name.replace("::", ".").rpartition(".")[2].removeprefix("test_")
            assert outcome.status == word.partition("_")[0].partition("[")[0], (name, outcome)
    assert of_module(run, "test_broken").status == "error"
    assert "not_there" in of_module(run, "test_broken").words
    assert of_module(run, "test_absent").status == "skipped"
    assert "not here" in of_module(run, "test_absent").words
    if runner == "unittest":
        assert of_module(run, "test_part_failed").status == "failed"
        assert of_module(run, "test_class_set_up").status == "passed"
    skipped = of_module(run, "test_skipped")
    assert reason(skipped) == "skipped: no till here"


def test_a_healthy_repository_with_skips_is_green() -> None:
    files = shop("unittest").files
    left_out = ("test_failed", "test_error", "test_xpassed", "test_part_failed")
    text, keep = files["tests/test_status.py"], []
    for part in text.split("\n\n"):
        if not any(f"def {name}(" in part or f"def {name}_" in part for name in left_out):
            keep.append(part)
    healthy = {path: text for path, text in files.items() if path != "tests/test_broken.py"} | {
        "tests/test_status.py": "\n\n".join(keep)
    }
    fine = asyncio.run(baseline_of(shop("unittest").model_copy(update={"files": healthy})))
    assert {outcome.status for outcome in fine.others.values()} == {"skipped", "xfailed"}
    assert fine.green
    broken = healthy | {"tests/test_broken.py": BROKEN}
    other = asyncio.run(baseline_of(shop("unittest").model_copy(update={"files": broken})))
    assert other.names == fine.names
    assert not other.green


SKIPS = "import unittest\n\n\ndef price(count):\n    raise unittest.SkipTest('not today')\n"


def test_a_candidate_that_turns_a_pass_into_a_skip_fails_it() -> None:
    one = shop("unittest")
    name = "tests.test_status.StatusTest.test_passed"
    run = asyncio.run(run_suite(one, one.files | {"shop/price.py": SKIPS}, [name]))
    assert run.failures == {name: "skipped: not today"}
    assert not run.passed


MAYBE = """import unittest

from shop.price import price


class MaybeTest(unittest.TestCase):
    def test_many(self):
        if price(10) != 45:
            self.skipTest("no price for ten")
        self.assertEqual(price(10), 45)

    def test_more(self):
        self.assertEqual(price(20), 85)
"""


def test_a_test_that_a_bug_makes_skip_judges_nothing() -> None:
    files = project().files | {"tests/test_price.py": MAYBE}
    one = project().model_copy(update={"files": files})
    baseline = asyncio.run(baseline_of(one))
    assert len(baseline.names) == 2
    found = [asyncio.run(inject_bug(one, baseline, Random(seed))) for seed in range(4)]
    broken = [bug for bug in found if "test_more" in bug.fail_to_pass[0]]
    assert broken
    assert all("test_many" not in name for bug in found for name in bug.fail_to_pass)


def test_a_definition_with_skips_and_a_broken_module_is_proved_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_definition(shop("pytest"), tmp_path / "shop.yaml")
    check(tmp_path / "shop.yaml", json_=True)
    seen = capsys.readouterr()
    (row,) = json.loads(seen.out) if seen.out.startswith("[") else [json.loads(seen.out)]
    told = {status: row[status] for status in STATUSES if row[status]}
    assert told == {"passed": 5, "failed": 1, "error": 2, "skipped": 2, "xfailed": 1, "xpassed": 2}
    assert not row["green"]
    assert "judges nothing, error: tests/test_broken.py" in seen.err
