"""One test of a suite, run by unittest or by pytest, and what came of it.

Statuses: passed; failed (an assertion of the test); error (anything else that was raised, or what
does not load); skipped; xfailed (it failed, as was expected of it); xpassed (it was expected to).
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: PTH118
from __future__ import annotations

import os
import re
import traceback
import types
import unittest
from functools import wraps
from os import _exit as leave
from os import close, dup, dup2, fork, pipe, read, urandom, waitpid, write
from os import open as devnull
from select import select
from time import perf_counter

from sandboxes.inside.guard import speaker
from sandboxes.inside.inverted import MOST, SOME, ContradictionError, TestSource, reached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

MESSAGE_CHARS, FRAMES = 400, 6
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,16}\b")
PASSED = ("passed", "")
COROUTINE = 0x80
"""Flag of a coroutine function's code (inspect.CO_COROUTINE)."""

SHORT_S, LONG_S = 0.005, 0.05
"""A test shorter than the first is run with up to three assertions turned, a longer one with one,
and of those longer than the second one in five: the whole suite takes little longer for it."""


class DecoyError(BaseException):
    """Raised where a decoy ends; it derives from nothing that code under test would catch."""


def short_trace(error: BaseException, root: str) -> str:
    """Type, message and the frames inside the repository: no address, time or place of ours."""
    frames = [
        f"  {frame.filename[len(root) :].lstrip('/')}:{frame.lineno} in {frame.name}: {frame.line}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(root)
    ]
    try:
        said = f"{type(error).__name__}: {error}".replace(root, "")
    except Exception:  # of the error's own __str__
        said = type(error).__name__
    return "\n".join([first_line(said), *frames[-FRAMES:]])


def first_line(text: str) -> str:
    return ADDRESS.sub("0x...", text.strip().partition("\n")[0])[:MESSAGE_CHARS]


class Trial:
    """How one test is to be run, and its way to say what cannot be taken back."""

    def __init__(
        self,
        say: Callable[[bytes, str, str], None],
        fd: int,
        *,
        root: str,
        decoy: bool = False,
        source: TestSource | None = None,
        only: int | None = None,
        every: bool = False,
    ) -> None:
        self.say, self.fd, self.root = say, fd, root
        self.decoy = decoy
        """Made to fail at its end."""
        self.source = source
        self.only = only
        """The number of the copy that is run in the test's place; None for the test, and copies of
        it beside it, of which `every` one is run or a few."""
        self.every = every
        self.returned = 0

    def observed(self, function: Callable[..., Any], spared: tuple[type, ...]) -> Any:
        """The test's function, watched: what it raises, except the `spared`, fails the test
        whatever becomes of the exception later."""
        inner = innermost(function)
        if getattr(getattr(inner, "__code__", None), "co_flags", 0) & COROUTINE:
            self.returned = 1
            return function
        if self.source is not None and self.source.plain and not stands_in(inner, self.source):
            self.say(b"-", "error", "the test that was loaded is not the one in its file")
        kept: Any = spared if self.only is None else (*spared, ContradictionError)

        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            turned = Turned(self, inner, lambda: function(*args, **kwargs))
            before, took = values_of(inner), perf_counter()
            try:
                result = function(*args, **kwargs)
            except kept:
                turned.note()
                raise
            except BaseException as error:
                self.say(b"-", "failed", short_trace(error, self.root))
                raise
            turned.note()
            turned.judge(perf_counter() - took)
            stores = self.source.stores if self.source is not None else frozenset()
            if changed(before, inner) - stores:
                self.say(b"-", "failed", "the code under test changed values of the tests")
            self.returned += 1
            if self.decoy:
                raise DecoyError
            return result

        return run


def innermost(function: Any) -> Any:
    """What decorators have been put around."""
    function = getattr(function, "__func__", function)
    for _ in range(FRAMES):
        function = getattr(function, "__wrapped__", function)
    return function


def stands_in(function: Any, source: TestSource) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and (code.co_filename, code.co_name) == (source.path, source.name)


def values_of(function: Any) -> dict[str, int]:
    """Identities of what the test's module holds."""
    return {name: id(value) for name, value in getattr(function, "__globals__", {}).items()}


def changed(before: dict[str, int], function: Any) -> set[str]:
    now = values_of(function)
    return {name for name, value in before.items() if now.get(name) != value}


class Turned:
    """A process that waits, forked before the test begins, and runs its copies when it has passed.

    It is no child of the test's process, so that a test which waits for its own children does not
    meet it. Where a copy contradicts the test, or does not come to an end, that is told, with the
    copy's number. Where a copy is run in the test's place, the process is there, too, and has
    nothing to do: so code under test cannot tell by it which of them runs.
    """

    def __init__(self, trial: Trial, inner: Any, call: Callable[[], Any]) -> None:
        self.trial, self.go = trial, -1
        copies = trial.source.copies if trial.source is not None else {}
        self.places = [place for place, copy in copies.items() if fits(inner, copy)]
        if trial.only in self.places:
            inner.__code__ = copies[trial.only]
        if not self.places:
            return
        go_r, self.go = pipe()
        self.over, over_w = pipe()
        first = fork()
        if first:
            close(go_r)
            close(over_w)
            waitpid(first, 0)
            return
        close(self.go)
        close(self.over)
        if fork():
            leave(0)
        run_copies(trial, inner, self.places, (go_r, over_w), call)

    def judge(self, took_s: float) -> None:
        """Let the copies run, as many as the time that the test took allows."""
        if self.go < 0 or self.trial.only is not None:
            return
        number = SOME if took_s < SHORT_S else int(took_s < LONG_S or urandom(1)[0] < 51)
        most_s = 0.5 + 4 * number * took_s if not self.trial.every else 5 + MOST * took_s
        number = min(MOST if self.trial.every else number, len(self.places))
        ended = self.ended(number, perf_counter() + most_s)
        if ended < number:  # the fresh sandbox decides
            self.trial.say(b"?", str(self.places[ended]), "")

    def ended(self, number: int, deadline: float) -> int:
        """How many of this many copies came to an end before the deadline."""
        ended = 0
        try:
            write(self.go, bytes([number]))
            close(self.go)
            while ended < number and (left := deadline - perf_counter()) > 0:
                if not select([self.over], [], [], left)[0] or not read(self.over, 1):
                    break
                ended += 1
            close(self.over)
        except OSError:  # the code under test has closed what leads there, or ended the process
            return 0
        return ended

    def note(self) -> None:
        """In a copy run in the test's place: it came to its end past the turned assertion."""
        if self.trial.only is not None and reached:
            self.trial.say(b"?", str(self.trial.only), "")


def fits(function: Any, copy: types.CodeType) -> bool:
    """Whether the function is the one that the copy was made of."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_varnames[: code.co_argcount] != copy.co_varnames[: copy.co_argcount]:
        return False
    same = ("co_filename", "co_name", "co_freevars")
    return all(getattr(code, name) == getattr(copy, name) for name in same)


def run_copies(
    trial: Trial, inner: Any, places: list[int], pipes: tuple[int, int], call: Any
) -> None:
    """Never returns. One pipe says how many copies to run, the other gets a byte for each that
    came to its end. What the copies themselves would tell the runner is thrown away."""
    assert trial.source is not None
    try:
        say = speaker(dup(trial.fd))
        dup2(devnull(os.devnull, os.O_RDWR), trial.fd)
        go, over = pipes
        number = read(go, 1)
        for place in places[: number[0] if number else 0]:
            inner.__code__ = trial.source.copies[place]
            reached.clear()
            try:
                call()
            except ContradictionError:
                reached.append(True)
            except BaseException:
                reached.clear()
            if reached:
                say(b"?", str(place), "")
            write(over, b".")
    finally:
        leave(0)


class Unittests:
    """Tests by dotted name: module, class, method. A module that does not load, or that is skipped
    as a whole, is listed by its own name."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.root, self.folder = request["root"], request["test_folder"]

    def listed(self) -> Iterator[tuple[str, str]]:
        start = os.path.join(self.root, self.folder)
        waiting: list[Any] = [unittest.TestLoader().discover(start, top_level_dir=self.root)]
        while waiting:
            item = waiting.pop(0)
            name = item.id() if isinstance(item, unittest.TestCase) else ""
            if isinstance(item, unittest.TestSuite):
                waiting += list(item)
            elif name.startswith("unittest."):
                yield item._testMethodName, ""
            else:
                yield name, (getattr(item, item._testMethodName).__doc__ or "").strip()

    def run(self, name: str, trial: Trial) -> tuple[str, str]:
        """The test's status, and what there is to say of it."""
        result = Result(self.root, trial.say)
        try:
            suite = unittest.TestLoader().loadTestsFromName(name)
        except unittest.SkipTest as skip:
            return "skipped", first_line(str(skip))
        case: Any
        (case,) = suite
        if case.id().startswith("unittest."):  # the module does not load; the last line says why
            return "error", first_line(str(case._exception).strip().rpartition("\n")[2])
        method = getattr(case, case._testMethodName)
        if not getattr(method, "__unittest_expecting_failure__", False):
            watched = trial.observed(method, (unittest.SkipTest,))
            setattr(case, case._testMethodName, watched)
        else:
            trial.returned = 1
        suite.run(result)  # type: ignore[arg-type]  # it does what a TestResult does
        if result.outcome == PASSED and (result.ran != 1 or trial.returned != 1):
            return "error", "it did not run"
        return result.outcome


class Result:
    """What unittest tells the course of a test to. It keeps the first trouble, tells the runner of
    failures at once, and has no dictionary in which a method could be put over its own."""

    __slots__ = (
        "_mirrorOutput",
        "_moduleSetUpFailed",
        "_previousTestClass",
        "_testRunEntered",
        "failfast",
        "outcome",
        "ran",
        "root",
        "say",
        "shouldStop",
    )

    def __init__(self, root: str, say: Callable[[bytes, str, str], None]) -> None:
        self.root, self.say = root, say
        self.outcome, self.ran = PASSED, 0
        self.failfast = self.shouldStop = False
        self._testRunEntered = self._moduleSetUpFailed = self._mirrorOutput = False
        self._previousTestClass = None

    def keep(self, status: str, words: str) -> None:
        if self.outcome == PASSED:
            self.outcome = (status, words)

    def trouble(self, status: str, error: BaseException) -> None:
        words = short_trace(error, self.root)
        self.keep(status, words)
        self.say(b"-", status, words)

    def startTest(self, test: Any) -> None:  # noqa: N802  # unittest's names
        self.ran += 1

    def stopTest(self, test: Any) -> None:  # noqa: N802
        pass

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        pass

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self.trouble("error", err[1])

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self.trouble("failed", err[1])

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            status = "failed" if isinstance(err[1], test.failureException) else "error"
            self.trouble(status, err[1])

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        self.keep("skipped", first_line(reason))

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self.keep("xfailed", short_trace(err[1], self.root))

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        self.keep("xpassed", "unexpected success")


class Pytests:
    """Tests by node id. pytest and its parts are loaded before the fork, from the sandbox's own
    read-only packages. A module that does not load, or that is skipped as a whole, is listed by
    its own node id."""

    def __init__(self, request: dict[str, Any]) -> None:
        import pytest

        self.main, self.root = pytest.main, request["root"]
        self.spared = (pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest)
        self.folder = request["test_folder"]
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        self.options = ["-q", "--no-header", "-p", "no:cacheprovider", f"--rootdir={self.root}"]
        self.items: list[tuple[str, str]] = []
        self.outcome, self.passed = PASSED, 0
        self.trial: Trial | None = None

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        for item in items:
            function = getattr(item, "function", None)
            self.items.append((item.nodeid, (getattr(function, "__doc__", "") or "").strip()))

    def pytest_collectreport(self, report: Any) -> None:
        if report.passed:
            return
        self.items.append((report.nodeid, ""))
        skipped = isinstance(report.longrepr, tuple)
        words = report.longrepr[2] if skipped else crash_of(report, self.root)
        self.keep("skipped" if skipped else "error", words)

    def pytest_runtest_setup(self, item: Any) -> None:
        if self.trial is None or not hasattr(item, "obj"):
            return
        if item.get_closest_marker("xfail") is not None:
            self.trial.returned = 1
        else:
            item.obj = self.trial.observed(item.obj, self.spared)

    def pytest_runtest_logreport(self, report: Any) -> None:
        expected = hasattr(report, "wasxfail")
        if report.passed and report.when == "call" and not hasattr(report, "context"):
            self.passed += 1
            if expected:
                self.keep("xpassed", "unexpected success")
        elif report.skipped:
            words = report.wasxfail if expected else reason_of(report)
            self.keep("xfailed" if expected else "skipped", first_line(words))
        elif not report.passed:
            words = crash_of(report, self.root)
            strict = report.when == "call" and words.startswith("[XPASS(strict)]")
            status = "xpassed" if strict else "failed" if report.when == "call" else "error"
            self.keep(status, words)

    def keep(self, status: str, words: str) -> None:
        if self.outcome == PASSED:
            self.outcome = (status, words)
            if self.trial is not None and status in ("failed", "error"):
                self.trial.say(b"-", status, words)

    def listed(self) -> Iterator[tuple[str, str]]:
        self.main([*self.options, "--collect-only", self.folder], plugins=[self])
        yield from self.items

    def run(self, name: str, trial: Trial) -> tuple[str, str]:
        """The test's status, and what there is to say of it."""
        self.trial = trial
        code = self.main([*self.options, name], plugins=[self])
        done = int(code) == 0 and self.passed == 1 and trial.returned == 1
        if self.outcome == PASSED and not done:
            return "error", f"pytest ended with {int(code)}, {self.passed} passed"
        return self.outcome


def reason_of(report: Any) -> str:
    told = report.longrepr
    return told[2].removeprefix("Skipped: ") if isinstance(told, tuple) else str(told)


def crash_of(report: Any, root: str) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    place = f"\n  {crash.path[len(root) :].lstrip('/')}:{crash.lineno}" if crash else ""
    said = text.replace(root, "")[:MESSAGE_CHARS]
    return ADDRESS.sub("0x...", said + place)
