"""Runs tests inside a sandbox, each in a process of its own, forked from one that never loads them.

Reads a request (JSON) on stdin, answers with JSON lines on a pipe that no test inherits. What a
test prints is thrown away. How a pass is told from a forged one stands in `guard`, `runners` and
`inverted`: a word, which is made after the fork, says what came of a test, and no trouble was told
before it.

With `decoy` one of the tests that pass is run once more, made to fail at its end. If it passes all
the same, the code under test answers for the tests.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: PTH100, PTH112, PTH118, PTH120, PTH123, PTH208, SIM105
from __future__ import annotations

import _socket
import ctypes
import importlib
import json
import os
import resource
import select
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sandboxes.inside import guard, inverted, runners, tripwire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

sys.path.pop(0)
for name in [name for name in sys.modules if name.partition(".")[0] in ("sandboxes", "ctypes")]:
    del sys.modules[name]  # a project may have a package of that name, and may not have our ctypes
del sys.modules["_ctypes"]

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
MOST_HEARD = 100
"""Messages of one test that are listened to."""


def child(runner: Any, request: dict[str, Any], name: str, fd: int, how: dict[str, Any]) -> None:
    """Runs one test, tells its outcome and leaves; never returns. Its last line is where the
    thread that knows the word finds it."""
    say, trusted = guard.speaker(fd), (*tripwire.SYSTEM, tests_of(request))
    own = [guard, tripwire, runners, inverted, sys.modules["__main__"]]
    without = request["without"]
    finished, forever = guard.start_witness(
        fd,
        sys._getframe(),
        # no variable of this frame may hold it, since code under test can look at the frame
        guard.seals(own, [runners.Result, runners.Trial], request),
        "place" not in without,
    )
    resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_s"], request["cpu_s"]))
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.setpgid(0, 0)
    if "tripwire" not in without:
        tripwire.arm(trusted, request["excused"], say)
    sys.path += folders(request)
    try:
        trial = runners.Trial(say, fd, root=request["root"], **how)
        outcome = runner.run(name, trial)
    except runners.DecoyError:
        outcome = ("failed", "decoy")
    except BaseException as error:
        outcome = ("error", runners.short_trace(error, request["root"]))
    guard.rest(outcome, finished, forever)


def tests_of(request: dict[str, Any]) -> str:
    path = os.path.normpath(os.path.join(request["root"], request["test_folder"]))
    return path + "/" if os.path.isdir(path) else path


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


class TestReport:
    """What the runner heard of one test."""

    def __init__(self, status: str, words: str = "", suspect: int | None = None) -> None:
        self.status, self.words, self.suspect = status, words, suspect


def one(runner: Any, request: dict[str, Any], name: str, **how: Any) -> TestReport:
    """The outcome of one test."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        os.close(request["report"])
        ours.close()
        child(runner, request, name, theirs.detach(), how)
    theirs.close()
    word = os.urandom(guard.WORD_BYTES)
    try:
        ours.send(word)
        heard, status = wait(pid, ours, request["wall_s"])
    except OSError:
        heard, status = [], os.waitpid(pid, 0)[1]
    kill_all(pid)
    ours.close()
    return outcome_of(request, heard, status, word)


def outcome_of(
    request: dict[str, Any], heard: list[bytes], status: int | None, word: bytes
) -> TestReport:
    """A pass needs the word, said once, and no trouble told before it."""
    without = request["without"]
    if status is None:
        return TestReport("failed", f"it did not end within {request['wall_s']} s")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number in (signal.SIGXCPU, signal.SIGKILL) and not heard:
            return TestReport(
                "failed", f"it used more than {request['cpu_s']} s of CPU, or was killed"
            )
        return TestReport("failed", f"it was ended by signal {number}")
    marks = b"!" if "trouble told at once" in without else b"!-"
    troubles = [said(message[1:]) for message in heard if message[:1] and message[0] in marks]
    suspects = [said(message[1:])[0] for message in heard if message[:1] == b"?"]
    suspect = next((int(place) for place in suspects if place.isdigit()), None)
    known = [m[1 + len(word) :] for m in heard if m[: 1 + len(word)] == b"+" + word]
    number = os.WEXITSTATUS(status)
    if "word" in without and not known and number == 0:
        return TestReport("passed")
    last, words = said(known[0]) if len(known) == 1 and number == 0 else ("", "")
    if last and (last != "passed" or not troubles):
        return TestReport(last, words, suspect)
    if troubles:
        return TestReport(
            "error" if troubles[0][0] == "error" else "failed", troubles[0][1], suspect
        )
    return TestReport("failed", f"its process ended with status {number} before the test did")


def said(message: bytes) -> tuple[str, str]:
    status, _, words = message.decode(errors="replace").partition("\0")
    return status, words


def wait(pid: int, ours: _socket.socket, wall_s: float) -> tuple[list[bytes], int | None]:
    """What the child said, and its status; None when time ran out."""
    heard: list[bytes] = []
    deadline = time.monotonic() + wall_s
    ended = os.pidfd_open(pid)
    ours.setblocking(False)
    try:
        while (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([ours, ended], [], [], left)
            while len(heard) < MOST_HEARD and (message := received(ours)):
                heard.append(message)
            if ended in ready:
                return heard, os.waitpid(pid, 0)[1]
            if len(heard) >= MOST_HEARD:
                return heard, None
    finally:
        os.close(ended)
    return heard, None


def received(ours: _socket.socket) -> bytes:
    try:
        return ours.recv(1 << 16)
    except OSError:
        return b""


def folders(request: dict[str, Any]) -> list[str]:
    """Where the code under test is imported from. At the end of the path: it hides no library."""
    return [os.path.normpath(os.path.join(request["root"], path)) for path in request["paths"]]


def listing(runner: Any, request: dict[str, Any]) -> list[list[str]]:
    """Names and docstrings of all tests, found in a child."""
    out_r, out_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out_r)
        os.close(request["report"])
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        sys.path += folders(request)
        found = sorted(runner.listed())
        with os.fdopen(out_w, "w") as file:
            json.dump(found, file)
        os._exit(0)
    os.close(out_w)
    with os.fdopen(out_r) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return json.loads(text or "[]")


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    libc = ctypes.CDLL(None)
    if "hidden" not in request["without"]:
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # no test looks into this process, or at its pipes
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    report = request["report"] = os.dup(1)
    os.chdir(request["root"])

    def say(**line: Any) -> None:
        os.write(report, json.dumps(line).encode() + b"\n")

    for library in request["libraries"]:  # before anything could put its own in their place
        importlib.import_module(library)
    guard.keep_compiled(tests_of(request))
    runner = (runners.Pytests if request["runner"] == "pytest" else runners.Unittests)(request)
    names = request["tests"]
    if names is None:
        tests = listing(runner, request)
        say(tests=tests)
        if request["only"] is None:
            return
        names = [name for name, _ in tests if request["only"] in name]
    made = inverted.Inversions(request["root"], request["own"], every=request["every_copy"])
    slow, passed = 0, []
    for name in names:
        say(begins=name)
        if slow >= request["max_slow"]:
            say(test=name, status="failed", words="not run: too many tests did not end")
            continue
        turned, every = request["turned"].get(name), request["every_copy"]
        source = None if "copies" in request["without"] else made.of(name, turned)
        outcome = one(runner, request, name, source=source, only=turned, every=every)
        slow += outcome.words.startswith(("it did not end", "it used more"))
        passed += [name] if outcome.status == "passed" else []
        say(test=name, **vars(outcome))
    if "decoy" not in request["without"] and passed:
        drawn = passed[int.from_bytes(os.urandom(4), "big") % len(passed)]
        say(decoy=one(runner, request, drawn, decoy=True).status == "passed")
    say(done=True)


main()
