"""Running a project's tests where the code under test cannot forge, see or outlive them."""

import asyncio

import pytest

from records.errors import ItemError
from sandboxes.code import suite
from sandboxes.code.projects import Project
from sandboxes.code.suite import CaseOutcome, SuiteRun, lines_of, list_tests, run_suite
from sandboxes.core.template import Limits
from sandboxes.lending.leases import available
from tests.sandboxes.attacks.graded.forging import Forging
from tests.sandboxes.attacks.graded.forgings import FITTING
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


def wide_project(count: int, lead: str = "") -> Project:
    """With this many more tests, in a module that begins with these lines."""
    tests = [
        f"    def test_{n}(self):\n        self.assertEqual(price({n}), {n * 5})"
        for n in range(count)
    ]
    text = "import os, unittest\n\nfrom shop.price import price\n" + lead
    text += "\n\nclass WideTest(unittest.TestCase):\n" + "\n\n".join(tests) + "\n"
    return project().model_copy(update={"files": project().files | {"tests/test_wide.py": text}})


WIDE = [f"tests.test_wide.WideTest.test_{n}" for n in range(8)]


def test_what_a_limit_of_ours_cuts_off_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = wide_project(8)
    monkeypatch.setattr(suite, "LIMITS", Limits(timeout_s=60, output_bytes=1000))
    judged = asyncio.run(run_suite(wide, wide.files, WIDE))
    assert judged == SuiteRun(dict.fromkeys(WIDE, CaseOutcome("passed")))
    with pytest.raises(ItemError, match="too many tests"):
        asyncio.run(list_tests(wide_project(40)))


def test_who_stops_what_runs_the_tests_has_them_run_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stops = "import os, signal\n\nos.kill(os.getppid(), signal.SIGSTOP)\n\n\n"
    wide = wide_project(8)
    files = wide.files | {"shop/price.py": stops + RIGHT}
    monkeypatch.setattr(suite, "LIMITS", Limits(timeout_s=3))
    judged = asyncio.run(run_suite(wide, files, WIDE))
    words = [judged.outcomes[name].words for name in WIDE]
    assert words == [suite.STOPPED_RUNNER] * 2 + [suite.NOT_RUN] * 6
    assert not judged.passed


TELLS = """
for number in range(3, 40):
    try:
        os.write(number, b'%s')
    except OSError:
        pass
os._exit(0)
"""


@pytest.mark.parametrize("said", ['[1, {"a": 2}, ["x"], ["x", "y", "z"]]', '{"a": 1}', "[" * 9000])
def test_a_listing_of_another_form_lists_no_test(said: str) -> None:
    with pytest.raises(ItemError, match="no test was found"):
        asyncio.run(list_tests(wide_project(1, TELLS % said)))


def test_lines_that_are_not_the_runners_end_what_it_said() -> None:
    line = b'{"begins": "a"}\n'
    for other in (b"[" * 100_000, b"[1]", b"7", b"{", b"\xff"):
        assert lines_of(line + other + b"\n" + line) == [{"begins": "a"}]


BY_LIBRARIES = """import asyncio, collections, dataclasses, enum, io
import logging, traceback, typing, warnings
from contextlib import contextmanager

Pair = collections.namedtuple("Pair", "a b")
Colour = enum.Enum("Colour", "RED BLUE")
Made = dataclasses.make_dataclass("Made", ["a"])
T = typing.TypeVar("T")


class Row(typing.NamedTuple):
    a: int


@contextmanager
def doubled(count):
    yield count * 2


async def later(count):
    await asyncio.sleep(0)
    return count


def price(count):
    said = io.StringIO()
    logging.basicConfig(stream=said, format="%(funcName)s %(lineno)d")
    try:
        raise ValueError(Pair(1, 2))
    except ValueError:
        logging.exception("no price")
        text = traceback.format_exc() + "".join(traceback.format_stack())
    warnings.warn("old", DeprecationWarning, stacklevel=2)
    assert "price" in said.getvalue() and "ValueError" in text and Colour.RED
    with doubled(asyncio.run(later(count))) as twice:
        count = Row(twice).a // 2
    return count * 5 if count < 10 else count * 4 + 5
"""


def test_libraries_look_at_frames_for_the_code_under_test() -> None:
    """Names of modules, lines of a log, traces: who asks a library for them reaches for nothing."""
    assert run(with_price(BY_LIBRARIES)).outcomes == {
        name: CaseOutcome("passed") for name in (ONE, MANY)
    }
