"""Code under test that would like its failing test to pass: what it tries, and what it must get by.

Each is put before a wrong answer, and graded as every candidate is. Its control leaves out the
steps of the runner that are named; there it passes. The lists stand in `forgings`, `forged_words`
and `forged_machinery`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sandboxes.code.projects import Project
from sandboxes.code.suite import Defence, run_suite
from sandboxes.core.python_env import site_packages
from tests.sandboxes.code.code_cases import MANY, TESTS, WRONG, project

LINE = "self.assertEqual(price(10), 45)"


def suite_with(*lines: str, first: str = "") -> str:
    """The tests, with these lines for the one that asks for ten."""
    return first + TESTS.replace(LINE, "\n        ".join(lines))


GOT = suite_with("got = price(10)", "len([])", "self.assertEqual(got, 45)")
"""What is done to the test case or to its variables comes before the assertion is looked up."""

SLOW_END = TESTS.replace("import unittest", "import unittest\nfrom time import sleep").replace(
    "    def test_one", "    def tearDown(self):\n        sleep(0.3)\n\n    def test_one"
)

PYTEST_TESTS = '''from shop.price import price


def test_many():
    """Ten pieces are cheaper."""
    assert price(10) == 45
'''
PYTEST_MANY = "tests/test_price.py::test_many"

LOOKS = "import sys\n\nHERE = sys._getframe().f_lineno\n"
"""Of a project that looks at frames itself, and so is excused: what else there is must hold."""

FRAMES = """
import sys


def frames():
    frame = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def found(name, kind):
    for frame in frames():
        if type(frame.f_locals.get(name)).__name__ == kind:
            return frame.f_locals[name]

"""
SAY = """
import os


def say(message):
    for number in range(3, 40):
        try:
            os.write(number, message)
        except OSError:
            pass

"""
PASSES = 'b"passed" + bytes(1)'

ALL_EQUAL = """
class Anything:
    __hash__ = None

    def __eq__(self, other):
        return True


def price(count):
    return Anything()
"""


@dataclass(frozen=True)
class Forging:
    name: str
    source: str
    """Of shop/price.py, before the wrong answer unless it defines its own."""
    without: frozenset[Defence]
    """What the control leaves out."""
    tests: str = TESTS
    runner: Literal["unittest", "pytest"] = "unittest"
    own: str = ""
    """Of shop/__init__.py, which tells what the project itself does."""

    def project(self) -> Project:
        shop = project()
        files = shop.files | {"tests/test_price.py": self.tests, "shop/__init__.py": self.own}
        site = site_packages(None) if self.runner == "pytest" else None
        return shop.model_copy(update={"files": files, "runner": self.runner, "site": site})

    @property
    def test(self) -> str:
        return MANY if self.runner == "unittest" else PYTEST_MANY

    @property
    def files(self) -> Mapping[str, str]:
        own = self.source if "def price(" in self.source else self.source + "\n\n" + WRONG
        return self.project().files | {"shop/price.py": own}

    async def status(self, *, control: bool) -> str:
        without: frozenset[Defence] = self.without if control else frozenset()
        run = await run_suite(self.project(), self.files, [self.test], without=without)
        return "forged" if run.forged else run.outcomes[self.test].status


def forging(name: str, source: str, *without: Defence, **others: str) -> Forging:
    """The control of each does without the decoy, too: it tells what passes always."""
    return Forging(name, source, frozenset({"decoy", *without}), **others)  # type: ignore[arg-type]


IN_PYTEST = {"runner": "pytest", "tests": PYTEST_TESTS}
