"""Running a project's tests where the code under test cannot forge, see or outlive them."""

import asyncio

import pytest

from sandboxes.code.suite import CaseOutcome, SuiteRun, list_tests, run_suite
from sandboxes.lending.leases import available
from tests.sandboxes.attacks.forging import Forging
from tests.sandboxes.attacks.forgings import FITTING
from tests.sandboxes.code.code_cases import (
    ATTACKS,
    MANY,
    ONE,
    RIGHT,
    WRONG,
    project,
    with_price,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(available() is not None, reason=f"no sandbox: {available()}"),
]


def run(files: dict[str, str], *names: str) -> SuiteRun:
    return asyncio.run(run_suite(project(), files, names or (ONE, MANY)))


def test_tests_are_listed_with_their_words() -> None:
    tests = asyncio.run(list_tests(project()))
    assert [(t.name, t.doc) for t in tests] == [
        (MANY, "Ten pieces are cheaper."),
        (ONE, "One piece has the plain price."),
    ]


def test_each_test_is_judged_by_itself() -> None:
    """The control of the attacks: what is right passes, what is wrong fails, and both say why."""
    right = {name: CaseOutcome("passed") for name in (ONE, MANY)}
    assert run(with_price(RIGHT)) == SuiteRun(right)
    wrong = run(with_price(WRONG))
    assert wrong.passed == {ONE}
    assert wrong.outcomes[MANY].status == "failed"
    assert wrong.outcomes[MANY].words.splitlines() == [
        "AssertionError: 50 != 45",
        "  tests/test_price.py:13 in test_many: self.assertEqual(price(10), 45)",
    ]


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_candidate_passes_a_test_that_it_fails(attack: str) -> None:
    judged = run(project().files | ATTACKS[attack], MANY)
    assert judged.forged or not judged.passed


def test_a_decoy_tells_code_that_answers_for_the_tests() -> None:
    """Without the word a test passes by leaving with status 0; so does the decoy, which must not,
    and nothing counts."""
    files = project().files | ATTACKS["leaves with status 0"]
    judged = asyncio.run(run_suite(project(), files, [MANY], without={"word"}))
    assert judged.passed == {MANY}
    assert judged.forged


@pytest.mark.parametrize("fit", FITTING, ids=lambda fit: fit.name)
def test_what_still_passes_is_named(fit: Forging) -> None:
    """No promise, but the list in `forgings` must stay true."""
    assert asyncio.run(fit.status(control=False)) == "passed"


ODD = """import contextlib
import os
import time
import unittest

from shop.price import price

COUNT = 0


class OddTest(unittest.TestCase):
    def setUp(self):
        self.path = f"/tmp/{self.id()}"

    def test_a_file_that_stays(self):
        self.assertFalse(os.path.exists(self.path))
        open(self.path, "w").close()
        self.assertTrue(os.path.exists(self.path))

    def test_failures_that_are_expected(self):
        with self.assertRaises(AssertionError):
            self.assertEqual(price(1), 6)
        with contextlib.suppress(AssertionError):
            assert price(1) == 6
        try:
            assert price(1) == 6
        except AssertionError:
            pass

    def test_assertions_that_are_not_reached(self):
        if price(1) == 6:
            self.assertEqual(price(1), 6)
        for never in ():
            assert never

    def test_parts(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertEqual(price(number), number * 5)

    def test_its_own_module(self):
        global COUNT
        COUNT += 1
        self.assertEqual(COUNT, 1)

    def test_children(self):
        pid = os.fork()
        if not pid:
            os._exit(7)
        self.assertEqual(os.waitstatus_to_exitcode(os.wait()[1]), 7)
        with self.assertRaises(ChildProcessError):
            os.wait()

    def test_what_is_slow(self):
        time.sleep(0.06)
        self.assertIn("5", str(price(1)))
"""


def test_honest_tests_of_odd_kinds_pass() -> None:
    """Files that stay, failures that are expected, parts, children: what copies with a turned
    assertion must not mistake. All copies are run."""
    odd = project().model_copy(update={"files": project().files | {"tests/test_odd.py": ODD}})
    names = [test.name for test in asyncio.run(list_tests(odd)) if "OddTest" in test.name]
    assert len(names) == 7
    judged = asyncio.run(run_suite(odd, odd.files, names, every_copy=True))
    assert judged == SuiteRun(dict.fromkeys(names, CaseOutcome("passed")))


def test_a_test_without_end_fails_and_the_others_are_told() -> None:
    judged = run(
        with_price("def price(count):\n    while count > 1:\n        pass\n    return 5\n")
    )
    assert judged.passed == {ONE}
    assert "used more than 2 s of CPU" in judged.outcomes[MANY].words


def test_failures_repeat_to_the_letter() -> None:
    source = "class P:\n    pass\n\n\ndef price(count):\n    return P()\n"
    first, second = run(with_price(source)), run(with_price(source))
    assert first == second
    assert "0x..." in first.outcomes[ONE].words
