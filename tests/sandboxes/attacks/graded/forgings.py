"""All forgings of passed tests, as attempts; `FITTING` lists what still passes, and why."""

from tests.sandboxes.attacks.attempt import Attempt, Scene, of_group
from tests.sandboxes.attacks.graded.forged_machinery import MACHINERY
from tests.sandboxes.attacks.graded.forged_words import WORDS
from tests.sandboxes.attacks.graded.forging import (
    ALL_EQUAL,
    FRAMES,
    GOT,
    IN_PYTEST,
    LOOKS,
    forging,
    suite_with,
)
from tests.sandboxes.code.code_cases import TESTS

OTHERS = """
import os, signal


def signal_others():
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and int(name) != os.getpid():
                if os.getpgid(int(name)) == os.getpgid(0):
                    os.kill(int(name), signal.{signal})
        except OSError:
            pass

"""

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
""", "tripwire", tests=GOT, own=LOOKS),
    forging("a local variable of the test written by a profiler", """
import sys


def price(count):
    def profile(frame, event, arg):
        if "got" in frame.f_locals:
            frame.f_locals["got"] = 45
            sys.setprofile(None)  # else it stands above the main thread when its place is looked at

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
    forging("a number changed from an interpreter that reports nothing", """
import _xxsubinterpreters as interpreters

change = "import ctypes; ctypes.c_long.from_address(%d).value = 45" % (id(50) + 24)
interpreters.run_string(interpreters.create(), change)
""", "tripwire"),
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
    forging("copies that are stopped", OTHERS.format(signal="SIGSTOP") + ALL_EQUAL.replace(
        "    return Anything", "    signal_others()\n    return Anything"), "copies"),
    forging("copies that are killed", OTHERS.format(signal="SIGKILL") + ALL_EQUAL.replace(
        "    return Anything", "    signal_others()\n    return Anything"), "copies"),
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
""", "trouble told at once", **IN_PYTEST, own=LOOKS),
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
""", "seals", "trouble told at once", **IN_PYTEST, own=LOOKS),
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
        "expected = [45]", "self.assertEqual([price(10)], expected)"), own=LOOKS),
]  # fmt: skip
"""What passes, and cannot be told from an answer in a process that holds both test and code: the
first is no forging but a fit to the tests; the next two are written against this very runner; the
last changes a value that only the test's own function holds, in a project that itself looks at
frames."""


async def play(attempt: Attempt, scene: Scene) -> str:
    played = next(f for f in FORGINGS if f.name == attempt.name)
    status = await played.status(control=scene.control)
    return "won a passed test" if status == "passed" else "refused no pass"


attempt = of_group("results of tests")

ATTEMPTS = [
    attempt(
        f.name,
        refusal="no pass",
        own_play=play,
        guard=", ".join(sorted(f.without)),
        mechanism=f"code under {f.runner}",
        # the bare interpreter of the second caller has no pytest
        as_root=f.runner == "pytest",
    )
    for f in FORGINGS
]
