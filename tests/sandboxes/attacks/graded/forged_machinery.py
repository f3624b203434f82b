"""Code under test that goes for what judges tests."""

from tests.sandboxes.attacks.graded.forging import (
    FRAMES,
    GOT,
    LINE,
    LOOKS,
    PASSES,
    SAY,
    SLOW_END,
    forging,
    suite_with,
)
from tests.sandboxes.code.code_cases import TESTS

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
""", "copies", tests=GOT, own=LOOKS),
    forging("an assertion put over the test's class", """
import sys


def price(count):
    type(sys._getframe(1).f_locals["self"]).assertEqual = lambda *_: None
    return 50
""", "copies", tests=GOT, own=LOOKS),
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
        "self.assertEqual(price(10), EXPECTED)", first="EXPECTED = 45\n"), own=LOOKS),
    forging("the result's own methods", FRAMES + """
def price(count):
    kind = type(found("result", "Result"))
    kind.addFailure = lambda *_: None
    found("trial", "Trial").returned = 1
    return 50
""", "seals", "trouble told at once", own=LOOKS),
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
""", "trouble told at once", tests=SLOW_END, own=LOOKS),
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
""", "seals", "trouble told at once", own=LOOKS),
    forging("a context of the code under test that swallows the failure", """
import contextlib

discount = contextlib.suppress(AssertionError)


def price(count):
    return 50
""", "copies", tests=suite_with(
        "with discount:", f"    {LINE}").replace("import price", "import discount, price")),
    forging("the check of what judges, replaced where a frame holds it", FRAMES + """
import unittest

for frame in frames():
    if "seals" in frame.f_locals:
        frame.f_locals["seals"].broken = lambda: None
unittest.TestCase.assertEqual = lambda *_: None
""", "seals", "copies", own=LOOKS),
    forging("the word read by a value that is asked for its class", SAY + f"""
import sys, unittest


class Odd:
    @property
    def __class__(self):
        frame = sys._getframe(1)
        while frame is not None:
            if "word" in frame.f_locals:
                say(b"+" + frame.f_locals["word"] + {PASSES})
                os._exit(0)
            frame = frame.f_back
        return object


os.odd = Odd()
unittest.TestCase.assertEqual = lambda *_: None
""", "seals", "copies", own=LOOKS),
    forging("the word read by a name that is asked for its hash", SAY + f"""
import sys, unittest


class Name(str):
    def __hash__(self):
        frame = sys._getframe(1)
        while frame is not None:
            if "word" in frame.f_locals:
                say(b"+" + frame.f_locals["word"] + {PASSES})
                os._exit(0)
            frame = frame.f_back
        return str.__hash__(self)


vars(unittest.case)[Name("odd")] = 1
unittest.TestCase.assertEqual = lambda *_: None
""", "seals", "copies", own=LOOKS),
    forging("a library of the tests given another class", """
import statistics, types


class Library(types.ModuleType):
    mean = property(lambda self: lambda values: 45)


statistics.__class__ = Library
""", "seals", tests=suite_with(
        "self.assertEqual(statistics.mean([price(10)]), 45)", first="import statistics\n")),
    forging("frames looked at", """
import sys


def price(count):
    sys._getframe(1).f_locals["self"].assertEqual = lambda *_: None
    return 50
""", "tripwire", "copies", tests=GOT),
    forging("frames looked at by way of an exception", """
def price(count):
    try:
        raise ValueError
    except ValueError as error:
        error.__traceback__.tb_frame.f_back.f_locals["self"].assertEqual = lambda *_: None
    return 50
""", "tripwire", "copies", tests=GOT),
    forging("frames looked at by way of a library", """
import inspect


def price(count):
    inspect.currentframe().f_back.f_locals["self"].assertEqual = lambda *_: None
    return 50
""", "tripwire", "copies", tests=GOT),
    forging("frames looked at by a function that a library calls", """
import sys, weakref


class Thing:
    pass


def price(count):
    frame = weakref.finalize(Thing, sys._getframe, 2)()
    frame.f_locals["self"].assertEqual = lambda *_: None
    return 50
""", "tripwire", "copies", tests=GOT),
]  # fmt: skip
