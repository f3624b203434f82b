"""Ends the process of a test where code under test reaches below the language.

Python reports such reaching as events: ctypes, all objects, frames, tracing, code objects. Another
interpreter in the same process reports nothing, so that none may be loaded.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: PTH120, PTH123
from __future__ import annotations

import ctypes
import os
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NATIVE = ("ctypes", "_ctypes", "cffi", "_cffi_backend", "_xxtestfuzz")
INTERPRETERS = ("_xxsubinterpreters", "_xxinterpchannels")
INTERPRETERS += ("_interpreters", "_interpchannels", "_interpqueues")
"""In another interpreter of the process nothing is reported."""

REFUSED_MODULES = frozenset((*NATIVE, *INTERPRETERS))
FIELDS = frozenset({"__code__", "__defaults__", "__kwdefaults__"})
FRAME_OF = frozenset({"tb_frame", "gi_frame", "cr_frame", "ag_frame"})
HANDING = FRAME_OF | {"currentframe", "stack", "trace", "getouterframes", "getinnerframes", "frame"}
HANDING |= {"walk_stack", "walk_tb", "_task_get_stack", "<lambda>", "<genexpr>", "<listcomp>"}
"""Functions of libraries that hand frames to their callers."""

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
    "sqlite3.enable_load_extension": "native",
    "sqlite3.load_extension": "native",
    "sys._getframe": "stack",
}
WATCHED = (*EVENTS, "marshal.loads", "import", "compile")
WATCHED += ("object.__setattr__", "object.__getattr__")
SYSTEM = ("/usr/", "/opt/")
"""Read-only inside: the interpreter, installed packages, this program."""

OURS = "sandboxes.inside."


def reach(
    event: str, args: tuple[Any, ...], trusted: tuple[str, ...], frame: types.FrameType | None
) -> str | None:
    """What kind of reaching below the language this event in `frame` is; None for all else."""
    if event in EVENTS:
        return EVENTS[event]
    if event == "marshal.loads":
        # importing does this; the path is that of the importing function, or of one that plays it
        path = None if frame is None else frame.f_locals.get("bytecode_path")
        if not isinstance(path, str) or not path.startswith(SYSTEM):
            return "code"
        return None if is_text_of(bytes(args[0]), path) else "code"
    if event[:7] == "ctypes.":
        return "native"
    if event == "import":
        foreign = isinstance(args[1], str) and not args[1].startswith(SYSTEM)
        top = str(args[0]).partition(".")[0]
        known = top in REFUSED_MODULES or top.startswith("_test")  # those of CPython's own tests
        return "native" if foreign or known else None
    if event == "object.__getattr__":
        return "stack" if args[1] in FRAME_OF else None
    if event == "object.__setattr__" and args[1] in FIELDS:
        return "code" if args[0].__code__.co_filename.startswith(trusted) else None
    if event == "object.__setattr__" and args[1] == "__class__":
        judging = type(args[0]).__module__.startswith(("unittest", "_pytest", OURS))
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


def frames_unheard() -> Callable[[], types.FrameType]:
    """Gives the frame of its caller. Unlike `sys._getframe` it is not reported itself."""
    state, frame = ctypes.pythonapi.PyThreadState_Get, ctypes.pythonapi.PyThreadState_GetFrame
    state.restype, frame.argtypes, frame.restype = (
        ctypes.c_void_p,
        [ctypes.c_void_p],
        ctypes.py_object,
    )
    return lambda: frame(state()).f_back


def may_reach(frame: types.FrameType | None, trusted: tuple[str, ...]) -> bool:
    """Whether a `trusted` file does this, or the library's own import of its parts."""
    library = (os.path.dirname(os.__file__) + "/", "<frozen ")
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(library):
            return code.co_filename.startswith(trusted)
        if code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False  # called by C alone, in a thread


def may_look(frame: types.FrameType | None, trusted: tuple[str, ...], wanted: str) -> bool:
    """Whether a function of a `trusted` file asks for a frame by its name, and keeps it. Libraries
    look at the frames of their callers for the name of a module, or a line."""
    if frame is None or wanted not in frame.f_code.co_names:
        return False
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(trusted) or code.co_name not in HANDING:
            return code.co_filename.startswith(trusted)
        frame = frame.f_back
    return False


def arm(
    trusted: tuple[str, ...], excused: list[str], say: Callable[[bytes, str, str], None]
) -> None:
    """End the process, as failed, where code that stands in no `trusted` file does what `reach`
    tells, itself or through the standard library. `excused` are kinds that the project does."""
    here, leave, free, kind_of = frames_unheard(), os._exit, frozenset(excused), reach
    watched, may, look = frozenset(WATCHED), may_reach, may_look

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event not in watched and event[:7] != "ctypes.":
            return
        if event == "object.__getattr__" and args[1] not in FRAME_OF:
            return
        frame = here().f_back
        kind = kind_of(event, args, trusted, frame)
        if kind is None or kind in free:
            return
        wanted = "_getframe" if event == "sys._getframe" else args[1] if kind == "stack" else None
        if may(frame, trusted) if wanted is None else look(frame, trusted, wanted):
            return
        say(b"!", "failed", f"the code under test reaches for what judges it: {event}")
        leave(1)

    sys.addaudithook(hook)
