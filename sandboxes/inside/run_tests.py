"""Runs tests inside a sandbox, each in a process of its own, forked from one that never loads them.

Reads a request (JSON) on stdin, answers with JSON lines on a pipe that no test inherits. A test
passes when its process ran it to the end: exit status 0, the right word on a pipe, and nothing
that judges tests replaced. The word is made after the fork, so it is not in the test's memory;
it waits in a pipe until the test is over. What a test prints is thrown away.

With `decoy` the first test that passes is run once more, made to fail at its end. If it passes all
the same, the code under test answers for the tests.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: PTH118, PTH123, PTH208, SIM105
from __future__ import annotations

import builtins
import ctypes
import json
import os
import re
import resource
import select
import signal
import sys
import time
import traceback
import types
import unittest
import unittest.case
import unittest.loader
import unittest.result
import unittest.runner
import unittest.suite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
CLOCK_STEP_S = 0.02
MESSAGE_CHARS, FRAMES = 400, 6
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,16}\b")
write, read, leave = os.write, os.read, os._exit


class DecoyError(BaseException):
    """Raised where a decoy ends; it derives from nothing that code under test would catch."""


def judges() -> dict[str, Any]:
    """What decides whether a test passes, by name: modules and classes that a test must leave
    alone. pytest loads more of its own modules as it runs, so none is known by its place."""
    found: dict[str, Any] = {
        f"{owner.__module__}.{owner.__name__}": owner
        for owner in (unittest.TestCase, unittest.TestResult, unittest.TestSuite)
    }
    modules = [builtins, unittest, unittest.case, unittest.loader, unittest.result]
    modules += [unittest.runner, signal, os, sys.modules["__main__"]]
    found |= {module.__name__: module for module in modules}
    return found | {
        name: module for name, module in list(sys.modules.items()) if name.startswith("_pytest")
    }


def fingerprint() -> dict[tuple[str, str], int]:
    """Identities of functions and classes, and of what the functions are made of."""
    found: dict[tuple[str, str], int] = {}
    for label, owner in judges().items():
        for name, value in list(vars(owner).items()):
            if isinstance(value, types.FunctionType):
                found[label, f"{name}()"] = id(value.__code__)
            if isinstance(value, types.FunctionType | types.BuiltinFunctionType | type):
                found[label, name] = id(value)
    return found


def decoy_of(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)
        raise DecoyError

    return run


def short_trace(error: BaseException, root: str) -> str:
    """Type, message and the frames inside the repository: no address, time or place of ours."""
    frames = [
        f"  {frame.filename[len(root) :].lstrip('/')}:{frame.lineno} in {frame.name}: {frame.line}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(root)
    ]
    said = f"{type(error).__name__}: {error}".replace(root, "")
    return "\n".join([first_line(said), *frames[-FRAMES:]])


def first_line(text: str) -> str:
    return ADDRESS.sub("0x...", text.strip().partition("\n")[0])[:MESSAGE_CHARS]


class Unittests:
    """Tests by dotted name: module, class, method."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.root, self.folder = request["root"], request["test_folder"]

    def listed(self) -> Iterator[tuple[str, str]]:
        start = os.path.join(self.root, self.folder)
        waiting: list[Any] = [unittest.TestLoader().discover(start, top_level_dir=self.root)]
        while waiting:
            item = waiting.pop(0)
            if isinstance(item, unittest.TestSuite):
                waiting += list(item)
            elif not item.id().startswith("unittest."):  # that is a module that does not load
                method = getattr(item, item.id().rpartition(".")[2])
                yield item.id(), (method.__doc__ or "").strip()

    def run(self, name: str, *, decoy: bool) -> str | None:
        """None when it passed, else what went wrong."""
        (case,) = unittest.TestLoader().loadTestsFromName(name)
        if decoy:
            method = name.rpartition(".")[2]
            setattr(case, method, decoy_of(getattr(case, method)))
        result = Result()
        case.run(result)
        if result.raised:
            return short_trace(result.raised[0], self.root)
        if result.skipped or result.unexpectedSuccesses:
            return "skipped" if result.skipped else "unexpected success"
        return None if result.testsRun == 1 else "it did not run"


class Result(unittest.TestResult):
    """Keeps what was raised, where the base class keeps its text."""

    def __init__(self) -> None:
        super().__init__()
        self.raised: list[BaseException] = []

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802  # unittest's name
        self.raised.append(err[1])

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self.raised.append(err[1])

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            self.raised.append(err[1])


class Pytests:
    """Tests by node id. pytest and its parts are loaded before the fork, from the sandbox's own
    read-only packages."""

    def __init__(self, request: dict[str, Any]) -> None:
        import pytest

        self.main, self.root = pytest.main, request["root"]
        self.folder = request["test_folder"]
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        self.options = ["-q", "--no-header", "-p", "no:cacheprovider", f"--rootdir={self.root}"]
        self.items: list[tuple[str, str]] = []
        self.passed, self.error = 0, ""
        self.decoy = False

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        for item in items:
            function = getattr(item, "function", None)
            self.items.append((item.nodeid, (getattr(function, "__doc__", "") or "").strip()))
            if self.decoy and function is not None:
                item.obj = decoy_of(item.obj)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.passed += 1
        elif not report.passed and not self.error:
            crash = getattr(report.longrepr, "reprcrash", None)
            text = crash.message if crash else str(report.longrepr)
            place = (
                f"\n  {crash.path[len(self.root) :].lstrip('/')}:{crash.lineno}" if crash else ""
            )
            said = text.replace(self.root, "")[:MESSAGE_CHARS]
            self.error = ADDRESS.sub("0x...", said + place)

    def listed(self) -> Iterator[tuple[str, str]]:
        self.main([*self.options, "--collect-only", self.folder], plugins=[self])
        yield from self.items

    def run(self, name: str, *, decoy: bool) -> str | None:
        self.decoy = decoy
        try:
            code = self.main([*self.options, name], plugins=[self])
        except DecoyError:
            return "decoy"
        if int(code) == 0 and self.passed == 1 and not self.error:
            return None
        return self.error or f"pytest ended with {int(code)}, {self.passed} passed"


def child(runner: Any, request: dict[str, Any], name: str, to: int, frm: int, decoy: bool) -> None:
    """Runs one test and leaves; never returns."""
    before = fingerprint()
    resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_s"], request["cpu_s"]))
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.setpgid(0, 0)
    sys.path += folders(request)
    try:
        failure = runner.run(name, decoy=decoy)
    except DecoyError:
        failure = "decoy"
    except BaseException as error:
        failure = short_trace(error, request["root"])
    after = fingerprint()
    if failure is None and any(after.get(key) != value for key, value in before.items()):
        failure = "the code under test replaced what judges it"
    if failure is not None:
        write(to, b"-" + failure.encode(errors="replace")[:8000])
        leave(1)
    write(to, b"+" + read(frm, 16))
    leave(0)


def kill_all(group: int) -> None:
    """The test's group, and whatever it left behind: orphans become children of this process."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
    me = str(os.getpid())
    while True:
        left = [pid for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == me]
        if not left:
            return
        for pid in left:
            try:
                os.kill(int(pid), signal.SIGKILL)
                os.waitpid(int(pid), 0)
            except (ProcessLookupError, ChildProcessError):
                pass


def parent_of(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[1]
    except OSError:
        return ""


def one(runner: Any, request: dict[str, Any], name: str, *, decoy: bool = False) -> str | None:
    """The outcome of one test: None, or why it did not pass."""
    out_r, out_w = os.pipe()
    in_r, in_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(request["report"])
        os.close(out_r)
        os.close(in_w)
        child(runner, request, name, out_w, in_r, decoy)
    os.close(out_w)
    os.close(in_r)
    word = os.urandom(16)
    write(in_w, word)
    said, status = wait(pid, out_r, request["wall_s"])
    kill_all(pid)
    os.close(out_r)
    os.close(in_w)
    if status is None:
        return f"it did not end within {request['wall_s']} s"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number in (signal.SIGXCPU, signal.SIGKILL) and not said:
            return f"it used more than {request['cpu_s']} s of CPU, or was killed"
        return f"it was ended by signal {number}"
    if os.WEXITSTATUS(status) == 0 and said == b"+" + word:
        return None
    if said[:1] == b"-":
        return said[1:].decode(errors="replace")
    return f"its process ended with status {os.WEXITSTATUS(status)} before the test did"


def wait(pid: int, fd: int, wall_s: float) -> tuple[bytes, int | None]:
    """What the child said, and its status; None when time ran out."""
    said, deadline = b"", time.monotonic() + wall_s
    while time.monotonic() < deadline:
        if select.select([fd], [], [], CLOCK_STEP_S)[0]:
            data = os.read(fd, 8192)
            said += data
            if data and len(said) < 16384:
                continue
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            while select.select([fd], [], [], 0)[0] and (data := os.read(fd, 8192)):
                said += data
            return said, status
    return said, None


def folders(request: dict[str, Any]) -> list[str]:
    """Where the code under test is imported from. At the end of the path: it hides no library."""
    return [os.path.normpath(os.path.join(request["root"], path)) for path in request["paths"]]


def listing(runner: Any, request: dict[str, Any]) -> list[list[str]]:
    """Names and docstrings of all tests, found in a child."""
    out_r, out_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out_r)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        sys.path += folders(request)
        found = sorted(runner.listed())
        with os.fdopen(out_w, "w") as file:
            json.dump(found, file)
        leave(0)
    os.close(out_w)
    with os.fdopen(out_r) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return json.loads(text or "[]")


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # no test looks into this process, or at its pipes
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    report = request["report"] = os.dup(1)
    os.chdir(request["root"])

    def say(**line: Any) -> None:
        write(report, json.dumps(line).encode() + b"\n")

    runner = (Pytests if request["runner"] == "pytest" else Unittests)(request)
    names = request["tests"]
    if names is None:
        tests = listing(runner, request)
        say(tests=tests)
        if request["only"] is None:
            return
        names = [name for name, _ in tests if request["only"] in name]
    slow, passed = 0, []
    for name in names:
        say(begins=name)
        if slow >= request["max_slow"]:
            say(test=name, failure="not run: too many tests did not end")
            continue
        failure = one(runner, request, name)
        slow += failure is not None and failure.startswith(("it did not end", "it used more"))
        passed += [name] if failure is None else []
        say(test=name, failure=failure)
    if request["decoy"] and passed:
        say(decoy=one(runner, request, passed[0], decoy=True) is None)
    say(done=True)


main()
