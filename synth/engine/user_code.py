"""Python files that the user has named: known by their content, run in this process, and faults of
theirs told as theirs and not as this project's.

A file may do all that the process may, so only files that the user has named are run, and none of a
run that was started from the UI.
"""

import hashlib
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from pydantic import Field, model_validator

from records.config import Config
from records.errors import ConfigError


class UserFile(Config):
    """In a config file just the path. A kind of files is a subclass that says what it is."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset({"path"})
    WHAT: ClassVar[str]
    """What such a file is, with its article."""
    EXAMPLE: ClassVar[str]
    """A name of one."""

    path: str
    """Of a Python file."""
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    """Of its content when the run was configured. A run is never resumed with another one."""

    @model_validator(mode="before")
    @classmethod
    def _as_it_is(cls, given: Any) -> Any:
        path = given.get("path") if isinstance(given, Mapping) else given
        if not isinstance(path, str) or not path.endswith(".py"):
            raise ValueError(f"{cls.WHAT} is the path of a Python file, such as {cls.EXAMPLE}")
        try:
            found = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror}") from error
        if isinstance(given, Mapping) and given.get("sha256", found) != found:
            raise ValueError(
                f"{path} was edited since; put back what it was, or make a run of its own with the "
                "edited one"
            )
        return {"path": path, "sha256": found}

    def run(self) -> Mapping[str, Any]:
        """Run the file; what it defines, by name. ConfigError, with the line, where it fails, and
        for a file that was edited."""
        source = Path(self.path).read_bytes()
        if hashlib.sha256(source).hexdigest() != self.sha256:
            raise ConfigError(
                f"{self.path} was edited after the run was configured; start the run again"
            )
        module = ModuleType(f"synth_user_file_{self.sha256[:16]}")
        module.__file__ = self.path
        sys.modules[module.__name__] = module  # where pydantic and dataclasses look names up
        try:
            exec(compile(source, self.path, "exec"), module.__dict__)
        except Exception as error:
            raise ConfigError(
                f"{self.path} cannot be loaded: {fault_in(self.path, error)}"
            ) from error
        return module.__dict__


def fault_in(path: str, error: Exception) -> str:
    """`line 12: NameError: ...`, the innermost line of the file itself."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    words = str(error)
    if isinstance(error, SyntaxError):
        lines, words = [error.lineno], error.msg
    place = f"line {lines[-1]}: " if lines else ""
    return f"{place}{type(error).__name__}: {words}"
