"""Code under test that would like its failing test to pass: what it tries, and what it must get by.

Each is put before a wrong answer, and graded as every candidate is. Its control leaves out the
steps of the runner that are named; there it passes. `FITTING` lists what still passes, and why.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sandboxes.code.projects import Project
from sandboxes.code.suite import Defence, run_suite
from sandboxes.core.python_env import site_packages
from sandboxes.core.sandbox import Sandbox
from tests.sandboxes.attacks.attempt import Attempt, Scene, of_group
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

    def project(self) -> Project:
        shop = project()
        files = shop.files | {"tests/test_price.py": self.tests}
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

WORDS = [
    forging("lines of the runner written to every descriptor", SAY + """
say(b'{"test": "tests.test_price.PriceTest.test_many", "status": "passed", "words": ""}\\n')
say(b'{"done": true}\\n')
os._exit(0)
""", "word"),
    forging("a pass with a word that was made up", SAY + f"""
say(b"+" + bytes(16) + {PASSES})
os._exit(0)
""", "word"),
    forging("a pass with a word out of a random source that was replaced", SAY + f"""
os.urandom = lambda length: bytes(length)
say(b"+" + os.urandom(16) + {PASSES})
os._exit(0)
""", "word"),
    forging("a pass with a word read from the runner's sockets", SAY + f"""
for number in range(3, 40):
    try:
        os.set_blocking(number, False)
        say(b"+" + os.read(number, 16) + {PASSES})
    except OSError:
        pass
os._exit(0)
""", "word"),
    forging("leaving when the test asks", """
import os


def price(count):
    os._exit(0)
""", "word"),
    forging("leaving by the end of an object", """
import os


class Last:
    def __del__(self):
        os._exit(0)


def price(count):
    Last()
    return 50
""", "word"),
    forging("leaving by a signal", """
import os, signal

signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
signal.setitimer(signal.ITIMER_REAL, 0.01)


def price(count):
    signal.pause()
""", "word"),
    forging("leaving from a thread", """
import os, threading, time


def price(count):
    threading.Thread(target=os._exit, args=(0,)).start()
    time.sleep(5)
""", "word"),
    forging("a child that goes on where its parent has left", """
import os


def price(count):
    if os.fork():
        os._exit(0)
    return 50
""", "word"),
    forging("another program in the place of the test", """
import os, sys

os.execv("/bin/true", ["true"])
""", "word"),
    forging("a library that is loaded before another program", """
import os

os.environ["LD_PRELOAD"] = "/tmp/evil.so"
os.execv("/bin/true", ["true"])
""", "word"),
    forging("the runner's own rest, called with a pass", FRAMES + """
import threading


def price(count):
    for frame in frames():
        if frame.f_code.co_name == "child":
            known = frame.f_locals
            rest = frame.f_globals["guard"].rest
            rest(("passed", ""), known["finished"], known["forever"])
""", "place"),
    forging("the word read in the thread that knows it", SAY + f"""
import sys


def price(count):
    for frame in sys._current_frames().values():
        if "word" in frame.f_locals:
            say(b"+" + frame.f_locals["word"] + {PASSES})
            os._exit(0)
""", "tripwire"),
    forging("the word read by a hook that the thread calls", SAY + f"""
import sys


def hook(event, args):
    if event == "sys._current_frames":
        say(b"+" + sys._getframe(1).f_locals["word"] + {PASSES})
        os._exit(0)


sys.addaudithook(hook)
""", "tripwire", "trouble told at once"),
]  # fmt: skip

MACHINERY = [
    forging("an assertion replaced", """
import unittest

unittest.TestCase.assertEqual = lambda *_: None
""", "seals", "copies"),
    forging("an assertion that puts itself back", """
import unittest

real = unittest.TestCase.assertEqual


def fake(*_):
    unittest.TestCase.assertEqual = real


unittest.TestCase.assertEqual = fake
""", "versions", "copies"),
    forging("the code of an assertion replaced", """
import unittest

unittest.TestCase.assertEqual.__code__ = (lambda self, a, b, msg=None: None).__code__
""", "tripwire", "seals", "copies"),
    forging("an assertion replaced by unittest.mock", """
import unittest
from unittest import mock

mock.patch.object(unittest.TestCase, "assertEqual").start()
""", "seals", "copies"),
    forging("how values are compared replaced", """
import unittest

unittest.TestCase._getAssertEqualityFunc = lambda *_: lambda *_, **__: None
""", "seals", "copies"),
    forging("an assertion put over the test case's own", """
import sys


def price(count):
    sys._getframe(1).f_locals["self"].assertEqual = lambda *_: None
    return 50
""", "copies", tests=GOT),
    forging("an assertion put over the test's class", """
import sys


def price(count):
    type(sys._getframe(1).f_locals["self"]).assertEqual = lambda *_: None
    return 50
""", "copies", tests=GOT),
    forging("unittest replaced before the tests import it", """
import sys, types, unittest

fake = types.ModuleType("unittest")
fake.TestCase = type("TestCase", (unittest.TestCase,), {"assertEqual": lambda *_: None})
sys.modules["unittest"] = fake
""", "seals", "copies", tests=TESTS.replace("import unittest\n\n", "").replace(
        "price\n\n", "price\nimport unittest\n\n", 1)),
    forging("a built-in function that the test uses", """
import builtins

builtins.sorted = lambda values: [1, 2]


def price(count):
    return [2, 3]
""", "seals", tests=suite_with("self.assertEqual(sorted(price(10)), [1, 2])")),
    forging("a built-in function that puts itself back", """
import builtins

real = sorted


def fake(values):
    builtins.sorted = real
    return [1, 2]


builtins.sorted = fake


def price(count):
    return [2, 3]
""", "versions", tests=suite_with("self.assertEqual(sorted(price(10)), [1, 2])")),
    forging("a function of a library that the test uses", """
import statistics

statistics.mean = lambda values: 45
""", "seals", tests=suite_with(
        "self.assertEqual(statistics.mean([price(10)]), 45)", first="import statistics\n")),
    forging("a finder that serves a library of its own", """
import importlib.machinery, importlib.util, sys


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "colorsys":
            return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.rgb_to_hls = lambda *_: 45


sys.meta_path.insert(0, Finder())
sys.modules.pop("colorsys", None)
""", "seals", tests=suite_with(
        "import colorsys", "self.assertEqual(colorsys.rgb_to_hls(price(10), 1, 1), 45)")),
    forging("the test replaced when it is loaded", """
import sys, threading, time


def replace():
    while True:
        module = sys.modules.get("tests.test_price")
        case = getattr(module, "PriceTest", None)
        if case is not None:
            case.test_many = case.test_one
            return


threading.Thread(target=replace, daemon=True).start()


def price(count):
    return 5
""", "copies", tests=TESTS + "\n\nimport time\n\ntime.sleep(0.3)\n"),
    forging("the values that the test expects", """
import sys


def price(count):
    sys._getframe(1).f_globals["EXPECTED"] = 50
    return 50
""", "trouble told at once", tests=suite_with(
        "self.assertEqual(price(10), EXPECTED)", first="EXPECTED = 45\n")),
    forging("the result's own methods", FRAMES + """
def price(count):
    kind = type(found("result", "Result"))
    kind.addFailure = lambda *_: None
    found("trial", "Trial").returned = 1
    return 50
""", "seals", "trouble told at once"),
    forging("the result reset in a thread once it is known", FRAMES + """
import threading, time


def reset(result, trial):
    while result.outcome == ("passed", ""):
        time.sleep(0)
    result.outcome, trial.returned = ("passed", ""), 1


def price(count):
    known = found("result", "Result"), found("trial", "Trial")
    threading.Thread(target=reset, args=known).start()
    return 50
""", "trouble told at once", tests=SLOW_END),
    forging("the test's parts run so that no failure is told", FRAMES + """
import contextlib, unittest.case


@contextlib.contextmanager
def calm(self, test_case, subTest=False):
    try:
        yield
    except BaseException:
        pass


def price(count):
    found("trial", "Trial").returned = 1
    return 50


unittest.case._Outcome.testPartExecutor = calm
""", "seals", "trouble told at once"),
    forging("a context of the code under test that swallows the failure", """
import contextlib

discount = contextlib.suppress(AssertionError)


def price(count):
    return 50
""", "copies", tests=suite_with(
        "with discount:", f"    {LINE}").replace("import price", "import discount, price")),
]  # fmt: skip

BELOW = [
    forging("a number changed by ctypes", """
import ctypes

ctypes.c_long.from_address(id(50) + 24).value = 45
""", "tripwire"),
    forging("ctypes brought in by the library", """
import importlib

importlib.import_module("ctypes").c_long.from_address(id(50) + 24).value = 45
""", "tripwire"),
    forging("ctypes brought in by a thread", """
import threading

found = []
worker = threading.Thread(target=lambda: found.append(eval("__import__('ctypes')")))
worker.start()
worker.join()
found[0].c_long.from_address(id(50) + 24).value = 45
""", "tripwire"),
    forging("ctypes brought in by code that claims to be the library's", """
source = "import ctypes\\nctypes.c_long.from_address(id(50) + 24).value = 45\\n"
exec(compile(source, "/opt/env/lib/python3.11/site-packages/numpy.py", "exec"), {})
""", "tripwire"),
    forging("a local variable of the test written by a tracer", """
import sys


def price(count):
    frame = sys._getframe(1)

    def trace(frame, event, arg):
        if "got" in frame.f_locals:
            frame.f_locals["got"] = 45
        return trace

    frame.f_trace = trace
    sys.settrace(lambda *_: None)
    return 50
""", "tripwire", tests=GOT),
    forging("a local variable of the test written by a profiler", """
import sys


def price(count):
    def profile(frame, event, arg):
        if "got" in frame.f_locals:
            frame.f_locals["got"] = 45

    sys.setprofile(profile)
    return 50
""", "tripwire", tests=TESTS.replace("self.assertEqual(price(10), 45)",
        "got = price(10)\n        len([])\n        self.assertEqual(got, 45)")),
    forging("the runner's trial found among all objects", """
import gc


def price(count):
    for one in gc.get_objects():
        if type(one).__name__ == "Result":
            type(one).addFailure = lambda *_: None
        if type(one).__name__ == "Trial":
            one.returned = 1
    return 50
""", "tripwire", "seals", "trouble told at once"),
    forging("memory written through /proc", """
import os

with open("/proc/self/mem", "r+b", 0) as memory:
    memory.seek(id(50) + 24)
    memory.write((45).to_bytes(4, "little"))
""", "hidden"),
    forging("the runner's parent answered for and killed", """
import os, signal

line = b'{"test": "tests.test_price.PriceTest.test_many", "status": "passed", "words": "", '
line += b'"suspect": null}\\n{"done": true}\\n'
runner = os.getppid()
for name in os.listdir(f"/proc/{runner}/fd"):
    if int(name) > 2 and os.readlink(f"/proc/{runner}/fd/{name}").startswith("pipe:"):
        with open(f"/proc/{runner}/fd/{name}", "wb") as pipe:
            pipe.write(line)
os.kill(runner, signal.SIGKILL)
""", "hidden"),
]  # fmt: skip

VALUES = [
    forging("a value that equals everything", ALL_EQUAL, "copies"),
    forging("a number that equals everything", """
class Number(int):
    __hash__ = int.__hash__

    def __eq__(self, other):
        return True


def price(count):
    return Number(50)
""", "copies"),
    forging("a value that equals every number", ALL_EQUAL.replace(
        "return True", "return isinstance(other, int)"), "copies"),
    forging("a value that is in everything", ALL_EQUAL, "copies",
            tests=suite_with("self.assertIn(price(10), [45])")),
    forging("clocks and chance that spare the copies", """
import os, select, time

time.perf_counter = time.monotonic = iter(range(0, 10**9, 100)).__next__
os.urandom = lambda length: b"\\xff" * length
select.select = lambda *_: ([], [], [])
""" + ALL_EQUAL, "copies", "seals"),
    forging("no descriptors left for the copies", """
import resource

_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (6, most))
""" + ALL_EQUAL, "copies"),
]  # fmt: skip

PYTEST = [
    forging("pytest: a value that equals everything", ALL_EQUAL, "copies", **IN_PYTEST),
    forging("pytest: leaving when the test asks", """
import os


def price(count):
    os._exit(0)
""", "word", **IN_PYTEST),
    forging("pytest: a plugin that makes reports", FRAMES + """
class Plugin:
    def pytest_runtest_makereport(self, item, call):
        from _pytest.reports import TestReport
        call.excinfo = None
        return TestReport.from_item_and_call(item, call)


def price(count):
    for frame in frames():
        item = frame.f_locals.get("item")
        if item is not None and hasattr(item, "config"):
            item.config.pluginmanager.register(Plugin())
            break
    found("trial", "Trial").returned = 1
    return 50
""", "trouble told at once", **IN_PYTEST),
    forging("pytest: calls that raise nothing", FRAMES + """
from _pytest import runner

real = runner.CallInfo.from_call.__func__


def calm(cls, func, when, reraise=None):
    def quiet():
        try:
            func()
        except BaseException:
            pass

    return real(cls, quiet, when, reraise)


runner.CallInfo.from_call = classmethod(calm)


def price(count):
    found("trial", "Trial").returned = 1
    return 50
""", "seals", "trouble told at once", **IN_PYTEST),
]  # fmt: skip

FORGINGS = [*WORDS, *MACHINERY, *BELOW, *VALUES, *PYTEST]

FITTING = [
    forging("the expected value read in the tests", """
import re


def price(count):
    with open("tests/test_price.py") as file:
        return int(re.search(rf"price\\({count}\\), (\\d+)", file.read())[1])
"""),
    forging("a copy told from the test by its code", """
import ast, sys


class Anything:
    __hash__ = None

    def __eq__(self, other):
        with open("tests/test_price.py") as file:
            return repr(other) in file.read()


def price(count):
    return Anything()
"""),
    forging("a copy told from the test by a file", """
import os


class Anything:
    __hash__ = None

    def __eq__(self, other):
        first = not os.path.exists("/tmp/first")
        open("/tmp/first", "w").close()
        return first


def price(count):
    return Anything()
"""),
    forging("a value of the test changed in its place", """
import sys


def price(count):
    sys._getframe(1).f_locals["expected"][0] = 50
    return 50
""", tests=suite_with(
        "expected = [45]", "self.assertEqual([price(10)], expected)")),
]  # fmt: skip
"""What passes, and cannot be told from an answer in a process that holds both test and code: the
first is no forging but a fit to the tests; the next two are written against this very runner; the
last changes a value that only the test's own function holds."""


async def play(attempt: Attempt, _sandbox: Sandbox, scene: Scene) -> str:
    played = next(f for f in FORGINGS if f.name == attempt.name)
    status = await played.status(control=scene.control)
    return "won a passed test" if status == "passed" else "refused no pass"


attempt = of_group("results of tests")

ATTEMPTS = [
    attempt(
        f.name,
        refusal="no pass",
        play=play,
        guard=", ".join(sorted(f.without)),
        mechanism=f"code under {f.runner}",
        # the bare interpreter of the second caller has no pytest
        as_root=f.runner == "pytest",
    )
    for f in FORGINGS
]
