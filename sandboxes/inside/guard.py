"""What stands between code under test and the verdict on it, in the process that runs them both.

* The word. A test has passed when the runner outside the process hears a word that it made after
  the fork. One thread knows it, in a variable of its own, from before any code under test is
  loaded; it says it once the main thread rests in the runner's own frame, with nothing above.
* The seals. Classes and functions that judge tests are the same before and after, and the
  dictionaries of the most important ones were not written to in between, not even for a while.
  That thread alone holds them, and comparing them calls nothing that code under test could define.
* The tripwire, in `tripwire`.

What is told to the runner outside cannot be taken back: it goes through a socket, which, unlike a
pipe, nobody can open by its name in /proc.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: PTH112, PTH118, PTH123
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

# Names of this module's own dictionary, which is sealed: whoever replaces a built-in function has
# nothing called by the thread that knows the word.
from builtins import BaseException, any, dict, getattr, id, isinstance, list, str, tuple, type  # noqa: UP029
from importlib.machinery import SourceFileLoader as SourceLoader
from types import BuiltinFunctionType, FunctionType
from typing import NamedTuple

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
    broken: Callable[[], str | None],
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
            outcome = top.f_locals["outcome"]
            if type(outcome) is tuple and [type(part) for part in outcome] == [str, str]:
                mark, (status, words) = b"+", outcome
        if status == "passed" and (complaint := broken()):
            mark, status, words = b"-", "failed", complaint
        said = status.encode() + b"\0" + words.encode(errors="replace")[:least]
        write(fd, mark + word + said if mark == b"+" else mark + said)
        leave(0)
    except BaseException:  # nobody else's handler may see this frame
        leave(1)


def start_witness(
    fd: int, frame: types.FrameType, broken: Callable[[], str | None], strict: bool
) -> tuple[Any, Any]:
    """Returns once the word is known: (lock that says the test is over, lock to wait for). Where
    that lies, nothing leads to `broken`: the caller must not keep it."""
    ready, finished, forever = (_thread.allocate_lock() for _ in range(3))
    for lock in (ready, finished, forever):
        lock.acquire()
    main = _thread.get_ident()
    _thread.start_new_thread(witness, (fd, main, frame, ready, finished, broken, strict))
    ready.acquire()
    return finished, forever


# ---------------------------------------------------------------------------------- the seals


REPLACED = "the code under test replaced what judges it"


class Sealed(NamedTuple):
    """A module or class that a test must leave alone, and what it held when it was sealed."""

    owner: Any
    kind: type
    held: dict[str, Any]
    parts: tuple[tuple[str, Any, types.CodeType | None], ...]
    """Its functions and classes by name, and what the functions are made of."""

    def is_whole(self) -> bool:
        if type(self.owner) is not self.kind:
            return False
        now = of_plain_names(self.held)
        return not any(
            now.get(name) is not value or (code is not None and value.__code__ is not code)
            for name, value, code in self.parts
        )


def sealed(owner: Any) -> Sealed:
    held = dictionary_of(owner)
    parts = [
        (name, value, value.__code__ if type(value) is FunctionType else None)
        for name, value in held.items()
        if isinstance(value, FunctionType | BuiltinFunctionType | type)
    ]
    return Sealed(owner, type(owner), held, tuple(parts))


def dictionary_of(owner: Any) -> dict[str, Any]:
    """That of a class, too, itself."""
    if isinstance(owner, types.ModuleType):
        return vars(owner)
    return next(one for one in gc.get_referents(owner) if type(one) is dict)


def of_plain_names(held: dict[str, Any]) -> dict[str, Any]:
    """A copy; without names of a type of somebody's own, which would be asked for their hash."""
    return {name: value for name, value in list(held.items()) if type(name) is str}


def sealed_classes() -> Iterator[type]:
    yield from (unittest.TestCase, unittest.TestSuite, vars(unittest.case)["_Outcome"])
    parts = (("_pytest.runner", "CallInfo"), ("_pytest.reports", "TestReport"))
    for module, name in (*parts, ("_pytest.raises", "RaisesExc")):
        found = getattr(sys.modules.get(module), name, None)
        if isinstance(found, type):
            yield found


def loaded_judges(libraries: list[str]) -> dict[str, Any]:
    """Modules that must stay loaded under their names: the `libraries` of the tests, and pytest's,
    which loads more of its own as it runs."""
    ours = [name for name in sys.modules if name.startswith("_pytest")]
    return {name: sys.modules[name] for name in (*libraries, *ours)}


def whole_modules(libraries: list[str]) -> Callable[[], bool]:
    """Tells whether modules, classes and what finds modules are what they are now."""
    loaded, modules, path = loaded_judges(libraries), sys.modules, sys.meta_path
    kept = [builtins, unittest, unittest.case, unittest.loader, unittest.runner, signal, os]
    seals = tuple(sealed(owner) for owner in (*kept, *loaded.values(), *sealed_classes()))
    names, finders = tuple(loaded.items()), tuple(path)
    rewrite = sys.modules.get("_pytest.assertion.rewrite")
    rewriting = getattr(rewrite, "AssertionRewritingHook", None)
    plain = type(sys)

    def whole() -> bool:
        if any(not one.is_whole() for one in seals):
            return False
        if type(sys) is not plain or sys.modules is not modules or sys.meta_path is not path:
            return False
        now, found = of_plain_names(modules), list(path)
        if any(now.get(name) is not module for name, module in names):
            return False
        if any(not any(one is finder for one in found) for finder in finders):
            return False
        return not any(
            type(one) is not rewriting and not any(one is finder for finder in finders)
            for one in found
        )

    return whole


def versions_of(
    own: list[types.ModuleType], classes: list[type], request: dict[str, Any]
) -> list[memoryview]:
    """Where the numbers stand that each write to a dictionary of what judges changes."""
    loose = request["loose"]
    owners: list[Any] = [*own, *classes, Sealed] + ([] if "builtins" in loose else [builtins])
    owners += [] if "TestCase" in loose else sealed_classes()
    places = [id(dictionary_of(owner)) + VERSION_AT for owner in owners]
    return [memoryview(ctypes.c_uint64.from_address(at)).cast("B").cast("Q") for at in places]


def seals(
    own: list[types.ModuleType], classes: list[type], request: dict[str, Any]
) -> Callable[[], str | None]:
    """Tells whether the judging objects are no longer what they are now. The request's `loose`
    names those that the project's own tests write to; its `without` leaves out "seals", or only
    the "versions" of dictionaries."""
    without = request["without"]
    if "seals" in without:
        return lambda: None
    told = HAS_VERSIONS and "versions" not in without
    versions = versions_of(own, classes, request) if told else []
    seen = tuple((version, version[0]) for version in versions)
    whole = whole_modules(request["libraries"])

    def broken() -> str | None:
        for version, number in seen:  # first: then no name that is used below was replaced
            if version[0] != number:
                return REPLACED
        return None if whole() else REPLACED

    return broken


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
