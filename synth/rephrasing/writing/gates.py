"""Gates: what a rewrite is looked through for and dropped, whatever its fidelity.

    gates = ["personal_data", "my_gates.py:toxicity"]

`personal_data` is built in. All else is a hook, a function of the user's own that a file or a
module holds, since what is toxic or unwanted is for a model to say and not for a list of words. It
takes a text and gives None, a reason in words, or a score from 0 to 1. Hooks run in this process
with all that the process may do, so only those that the user has named are run, and none of a run
that was started from the UI. The digest of a hook's file is part of the identity of a run.
"""

import hashlib
import importlib
import sys
import threading
from collections.abc import Callable, Iterable
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from records.config import Config
from records.errors import ConfigError
from synth.engine.user_code import fault_in

BuiltInGate = Literal["personal_data"]

TextGate = Callable[[str], str | None]
"""Text -> what was found, in words, or None."""


class GateHook(Config):
    """A function of the user's own; in a config file just `hook`, as text."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"hook"})

    hook: str
    """`my_gates.py:toxicity` or `my_package.gates:toxicity`: the file or module, and the name of
    the function, which is also the reason of the drop."""
    at: float = Field(default=0.5, ge=0.0, le=1.0)
    """Score from which on a rewrite is dropped, where the function gives scores."""
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    """Of the file's content and the function's name when the run was configured. A run is never
    resumed with another one."""

    @model_validator(mode="before")
    @classmethod
    def _as_it_is(cls, given: Any) -> Any:
        values = {"hook": given} if isinstance(given, str) else dict(given or {})
        hook = values.get("hook")
        found = _digest(_file_of(hook), hook) if isinstance(hook, str) else None
        if values.get("sha256", found) != found:
            raise ValueError(
                f"{hook} was edited since; put back what it was, or make a run of its own with the "
                "edited one"
            )
        return values | ({"sha256": found} if found else {})

    @property
    def name(self) -> str:
        """Of the function."""
        return self.hook.rpartition(":")[2]


GateSetting = BuiltInGate | GateHook


def gates_of(gates: Iterable[GateSetting]) -> list[tuple[str, TextGate]]:
    """Name and function of each gate of a configuration, hooks loaded, in order. ConfigError for a
    hook that cannot be loaded or two gates of one name. A hook is called from threads, but from one
    at a time."""
    loaded = [_gate(gate) for gate in gates]
    names = [name for name, _ in loaded]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"gates: two gates are called {name!r}; rename one of the functions")
    return loaded


def gate_versions(gates: Iterable[GateSetting]) -> dict[str, str]:
    """What each gate's findings hang on beside the text, by the gate's name."""
    return {_name(gate): _version(gate) for gate in gates}


def _name(gate: GateSetting) -> str:
    return gate if isinstance(gate, str) else gate.name


def _version(gate: GateSetting) -> str:
    if isinstance(gate, GateHook):
        return f"{gate.sha256[:16]}@{gate.at}"
    from synth.rephrasing.writing.personal_data import personal_data_version

    return personal_data_version()


def _gate(gate: GateSetting) -> tuple[str, TextGate]:
    if isinstance(gate, GateHook):
        return gate.name, _hooked(gate.hook, gate.sha256, gate.at)
    # loading what it knows of telephone numbers is for those who look for them
    from synth.rephrasing.writing.personal_data import personal_data

    return gate, personal_data


@cache
def _hooked(hook: str, sha256: str, at: float) -> TextGate:
    function, path, lock = _load(hook, sha256), str(_file_of(hook)), threading.Lock()

    def find(text: str) -> str | None:
        try:
            with lock:
                found = function(text)
        except Exception as error:
            raise ConfigError(f"gate {hook} failed: {fault_in(path, error)}") from error
        if found is None or (isinstance(found, str) and found):
            return found
        if not isinstance(found, int | float) or not 0.0 <= found <= 1.0:
            raise ConfigError(
                f"gate {hook} gave {found!r}; it gives None, a reason in words, or a score from 0 "
                "to 1"
            )
        return f"score {found:.3f}" if found >= at else None

    return find


def _load(hook: str, sha256: str) -> Callable[[str], Any]:
    path = _file_of(hook)
    if _digest(path, hook) != sha256:
        raise ConfigError(f"{hook} was edited after the run was configured; start the run again")
    place, _, name = hook.rpartition(":")
    try:
        module = importlib.import_module(place) if not place.endswith(".py") else _run(path, sha256)
    except Exception as error:
        raise ConfigError(f"{hook} cannot be loaded: {fault_in(str(path), error)}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise ConfigError(f"{path} has no function {name!r}; a hook is named as FILE:FUNCTION")
    return function


def _run(path: Path, sha256: str) -> ModuleType:
    module = ModuleType(f"synth_gate_{sha256[:16]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where pydantic and dataclasses look names up
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module


def _file_of(hook: str) -> Path:
    """ValueError where there is none. Nothing is loaded yet, not the packages of a module either:
    settings may be somebody else's whose programs are not run."""
    place, _, name = hook.rpartition(":")
    if not place or not name.isidentifier():
        raise ValueError(
            f"{hook!r} is no gate: it is 'personal_data', or FILE:FUNCTION such as "
            "my_gates.py:toxicity, or MODULE:FUNCTION"
        )
    if place.endswith(".py"):
        return Path(place)
    found, within = None, None
    for depth in range(1, place.count(".") + 2):
        found = PathFinder.find_spec(".".join(place.split(".")[:depth]), within)
        if found is None:
            break
        within = found.submodule_search_locations or []
    if found is None or found.origin is None:
        raise ValueError(f"{hook}: there is no module {place!r}; install it, or name its file")
    return Path(found.origin)


def _digest(path: Path, hook: str) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    return hashlib.sha256(content + b"\0" + hook.rpartition(":")[2].encode()).hexdigest()
