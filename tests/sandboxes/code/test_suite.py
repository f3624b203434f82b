"""Running a project's tests where the code under test cannot forge, see or outlive them."""

import asyncio

import pytest

from sandboxes.code.suite import SuiteRun, list_tests, run_suite
from sandboxes.lending.leases import available
from tests.sandboxes.code.code_cases import (
    ANSWERS_FOR_TESTS,
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
    assert run(with_price(RIGHT)) == SuiteRun({ONE: None, MANY: None})
    wrong = run(with_price(WRONG))
    assert wrong.failures[ONE] is None
    assert (wrong.failures[MANY] or "").splitlines() == [
        "AssertionError: 50 != 45",
        "  tests/test_price.py:13 in test_many: self.assertEqual(price(10), 45)",
    ]


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_candidate_passes_a_test_that_it_fails(attack: str) -> None:
    judged = run(project().files | ATTACKS[attack], MANY)
    assert judged.forged or judged.failures[MANY] is not None


def test_code_that_answers_for_the_tests_is_found_out() -> None:
    """An attack on this very runner: it reads the word from the pipes and says it at once. The
    decoy, which must fail, passes as well, and so nothing counts."""
    judged = run(with_price(ANSWERS_FOR_TESTS), MANY)
    assert judged.forged or judged.failures[MANY] is not None


def test_a_test_without_end_fails_and_the_others_are_told() -> None:
    judged = run(
        with_price("def price(count):\n    while count > 1:\n        pass\n    return 5\n")
    )
    assert judged.failures[ONE] is None
    assert "used more than 2 s of CPU" in (judged.failures[MANY] or "")


def test_failures_repeat_to_the_letter() -> None:
    source = "class P:\n    pass\n\n\ndef price(count):\n    return P()\n"
    first, second = run(with_price(source)), run(with_price(source))
    assert first == second
    assert "0x..." in (first.failures[ONE] or "")
