"""What stands between code under test and the verdict on it, in the process that runs them both.

* The word. A test has passed when the runner outside the process hears a word that it made after
  the fork. One thread knows it, in a variable of its own, from before any code under test is
  loaded; it says it once the main thread rests in the runner's own frame, with nothing above.
* The seals. Classes and functions that judge tests are the same before and after, and the
  dictionaries of the most important ones were not written to in between, not even for a while.
* The tripwire. Python reports what reaches below the language (ctypes, all objects, other threads'
  frames, tracing, code objects); where code under test does that, the process ends.

What is told to the runner outside cannot be taken back: it goes through a socket, which, unlike a
pipe, nobody can open by its name in /proc.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: PTH112, PTH118, PTH120, PTH123
from __future__ import annotations

import _thread
import builtins
import ctypes
import gc
import os
import signal
import sys
import types
import unittest
import unittest.case
import unittest.loader
import unittest.runner
import unittest.suite
from importlib.machinery import SourceFileLoader as SourceLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

WORD_BYTES = 16
MOST_SAID = 8000
VERSION_AT = 24
"""Where a dictionary holds the number that each write to it changes (PyDictObject in 3.11)."""

HAS_VERSIONS = sys.version_info < (3, 12)

# ------------------------------------------------------------------ what is said to the runner


def speaker(fd: int) -> Callable[[bytes, str, str], None]:
    """Says what can no longer be taken back: a mark, a status, words."""
    write, least = os.write, MOST_SAID

    def say(mark: bytes, status: str, words: str) -> None:
        write(fd, mark + status.encode() + b"\0" + words.encode(errors="replace")[:least])

    return say


# ---------------------------------------------------------------------------------- the word


def rest(outcome: tuple[str, str], finished: Any, forever: Any) -> None:
    """Where the main thread waits until its process ends."""
    finished.release()
    forever.acquire()


def last_line(code: types.CodeType) -> int:
    return max(line for _, _, line in code.co_lines() if line is not None)


def witness(
    fd: int,
    main: int,
    frame: types.FrameType,
    ready: Any,
    finished: Any,
    seals: Seals,
    strict: bool,
) -> None:
    """The thread that knows the word. `frame` is the main thread's, whose last line calls `rest`;
    not `strict`, it does not look where the main thread is."""
    frames, write, leave, stop_collecting = sys._current_frames, os.write, os._exit, gc.disable
    code, line, least = rest.__code__, last_line(frame.f_code), MOST_SAID
    try:
        word = os.read(fd, WORD_BYTES)
        ready.release()
        finished.acquire()
        stop_collecting()  # else callbacks of the collector would run here, above this frame
        top = frames().get(main)
        mark, status, words = b"-", "failed", "the code under test reached for the verdict"
        there = top is not None and top.f_code is code and top.f_back is frame
        if top is not None and (not strict or (there and frame.f_lineno == line)):
            mark, (status, words) = b"+", top.f_locals["outcome"]
        if status == "passed" and (broken := seals.broken()):
            mark, status, words = b"-", "failed", broken
        said = status.encode() + b"\0" + words.encode(errors="replace")[:least]
        write(fd, mark + word + said if mark == b"+" else mark + said)
        leave(0)
    except BaseException:  # nobody else's handler may see this frame
        leave(1)


def start_witness(fd: int, frame: types.FrameType, seals: Seals, strict: bool) -> tuple[Any, Any]:
    """Returns once the word is known: (lock that says the test is over, lock to wait for)."""
    ready, finished, forever = (_thread.allocate_lock() for _ in range(3))
    for lock in (ready, finished, forever):
        lock.acquire()
    main = _thread.get_ident()
    _thread.start_new_thread(witness, (fd, main, frame, ready, finished, seals, strict))
    ready.acquire()
    return finished, forever


# ---------------------------------------------------------------------------------- the seals


def judges(libraries: list[str]) -> dict[str, Any]:
    """What decides whether a test passes, by name: modules and classes that a test must leave
    alone, the `libraries` of the tests among them. pytest loads more of its own modules as it runs,
    so none is known by its place."""
    found: dict[str, Any] = {
        f"{owner.__module__}.{owner.__name__}": owner for owner in sealed_classes()
    }
    modules = [builtins, unittest, unittest.case, unittest.loader, unittest.runner]
    modules += [signal, os]
    modules += [sys.modules[name] for name in libraries]
    found |= {module.__name__: module for module in modules}
    return found | {
        name: module for name, module in list(sys.modules.items()) if name.startswith("_pytest")
    }


def sealed_classes() -> Iterator[type]:
    yield from (unittest.TestCase, unittest.TestSuite, vars(unittest.case)["_Outcome"])
    parts = (("_pytest.runner", "CallInfo"), ("_pytest.reports", "TestReport"))
    for module, name in (*parts, ("_pytest.raises", "RaisesExc")):
        found = getattr(sys.modules.get(module), name, None)
        if isinstance(found, type):
            yield found


def fingerprint(libraries: list[str]) -> dict[tuple[str, str], int]:
    """Identities of functions and classes, and of what the functions are made of; of what finds
    modules, too."""
    found: dict[tuple[str, str], int] = {("finders", str(id(f))): id(f) for f in sys.meta_path}
    for label, owner in judges(libraries).items():
        for name, value in list(vars(owner).items()):
            if isinstance(value, types.FunctionType):
                found[label, f"{name}()"] = id(value.__code__)
            if isinstance(value, types.FunctionType | types.BuiltinFunctionType | type):
                found[label, name] = id(value)
    return found


class Seals:
    """What the judging objects were when this was made. The request's `loose` names those
    that the project's own tests write to; its `without` leaves out "seals", or only the "versions"
    of dictionaries."""

    def __init__(
        self, own: list[types.ModuleType], classes: list[type], request: dict[str, Any]
    ) -> None:
        without, loose = request["without"], request["loose"]
        self.libraries = request["libraries"]
        self.before = {} if "seals" in without else fingerprint(self.libraries)
        dictionaries = [] if "builtins" in loose else [vars(builtins)]
        if "TestCase" not in loose:
            classes = [*classes, *sealed_classes()]
        dictionaries += [vars(module) for module in own]
        dictionaries += [gc.get_referents(vars(one))[0] for one in classes]
        told = HAS_VERSIONS and not {"seals", "versions"} & {*without}
        places = [id(one) + VERSION_AT for one in dictionaries] if told else []
        self.versions = [ctypes.c_uint64.from_address(place) for place in places]
        self.seen = [version.value for version in self.versions]

    def broken(self) -> str | None:
        after = fingerprint(self.libraries)
        new = [one for one in sys.meta_path if ("finders", str(id(one))) not in self.before]
        same = not self.before or all(type(one).__module__.startswith("_pytest") for one in new)
        same = same and all(after.get(key) == value for key, value in self.before.items())
        if same and self.seen == [version.value for version in self.versions]:
            return None
        return "the code under test replaced what judges it"


# ------------------------------------------------------------------------- the tests' own code


def keep_compiled(tests: str) -> None:
    """Have the modules of the tests compiled here, once, and not in every process that runs one.
    What is compiled later is what stands in the file, whoever replaces `compile` there."""
    compiled: dict[str, tuple[bytes, types.CodeType]] = {}
    for folder, _, names in os.walk(tests) if os.path.isdir(tests) else [(".", [], [])]:
        for path in [os.path.join(folder, name) for name in names if name.endswith(".py")]:
            with open(path, "rb") as file:
                source = file.read()
            try:
                compiled[path] = (source, compile(source, path, "exec", dont_inherit=True))
            except (SyntaxError, ValueError, RecursionError):
                continue
    plain = SourceLoader.source_to_code

    def source_to_code(self: Any, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        known = compiled.get(path)
        if known is not None and known[0] == data:
            return known[1]
        return plain(self, data, path, _optimize=_optimize)

    SourceLoader.source_to_code = source_to_code  # type: ignore[method-assign]


# ------------------------------------------------------------------------------- the tripwire

NATIVE = frozenset({"ctypes", "_ctypes", "_testcapi", "_testinternalcapi", "cffi", "_cffi_backend"})
FIELDS = frozenset({"__code__", "__defaults__", "__kwdefaults__"})
EVENTS = {
    "gc.get_objects": "objects",
    "gc.get_referrers": "objects",
    "gc.get_referents": "objects",
    "sys._current_frames": "frames",
    "sys._current_exceptions": "frames",
    "sys.settrace": "tracing",
    "sys.setprofile": "tracing",
    "sys.addaudithook": "tracing",
    "code.__new__": "code",
    "marshal.load": "code",
}
WATCHED = (*EVENTS, "marshal.loads", "import", "object.__setattr__", "compile")
SYSTEM = ("/usr/", "/opt/")
"""Read-only inside: the interpreter, installed packages, this program."""


def reach(event: str, args: tuple[Any, ...], trusted: tuple[str, ...]) -> str | None:
    """What kind of reaching below the language this event is; None for all else."""
    if event in EVENTS:
        return EVENTS[event]
    if event == "marshal.loads":
        # importing does this; the path is that of the importing function, or of one that plays it
        path = sys._getframe(2).f_locals.get("bytecode_path")
        if not isinstance(path, str) or not path.startswith(SYSTEM):
            return "code"
        return None if is_text_of(bytes(args[0]), path) else "code"
    if event[:7] == "ctypes.":
        return "native"
    if event == "import":
        foreign = isinstance(args[1], str) and not args[1].startswith(SYSTEM)
        return "native" if foreign or str(args[0]).partition(".")[0] in NATIVE else None
    if event == "object.__setattr__" and args[1] in FIELDS:
        return "code" if args[0].__code__.co_filename.startswith(trusted) else None
    if event == "object.__setattr__" and args[1] == "__class__":
        judging = type(args[0]).__module__.startswith(("unittest", "_pytest", __name__))
        return "code" if judging else None
    if event == "compile" and isinstance(args[1], str) and args[1].startswith(trusted):
        return None if is_text_of(args[0], args[1]) else "code"
    return None


def is_text_of(source: Any, path: str) -> bool:
    """Whether this is what stands in the file that it claims to be."""
    if not isinstance(source, bytes):
        return False
    try:
        with open(path, "rb") as file:
            return file.read().endswith(source)  # compiled code stands behind a header
    except OSError:
        return False


def arm(
    trusted: tuple[str, ...], excused: list[str], say: Callable[[bytes, str, str], None]
) -> None:
    """End the process, as failed, where code that stands in no `trusted` file does what `reach`
    tells, itself or through the standard library. `excused` are kinds that the project does."""
    getframe, leave, free, kind_of = sys._getframe, os._exit, frozenset(excused), reach
    library = (os.path.dirname(os.__file__) + "/", "<frozen ")

    def may() -> bool:
        try:
            frame: types.FrameType | None = getframe(2)
        except ValueError:  # called by C alone, in a thread
            return False
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith(library):
                return code.co_filename.startswith(trusted)
            if code.co_name == "<module>":  # the library's own import of its parts
                return True
            frame = frame.f_back
        return False

    watched = frozenset(WATCHED)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event not in watched and event[:7] != "ctypes.":
            return
        kind = kind_of(event, args, trusted)
        if kind is not None and kind not in free and not may():
            say(b"!", "failed", f"the code under test reaches for what judges it: {event}")
            leave(1)

    sys.addaudithook(hook)
