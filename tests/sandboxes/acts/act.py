"""One act of an agent in its sandbox, and what may come of it."""

import textwrap
from typing import Any, NamedTuple

Call = tuple[str, dict[str, Any]]

WORKS, UNREADABLE, ENDED = "works", "unreadable", "ended"


class Act(NamedTuple):
    name: str
    calls: tuple[Call, ...]
    codes: frozenset[str | None]
    """Error codes that the last call may have; None where it is no error."""
    after: frozenset[str]
    """What the next ordinary call may find: it works, it says that the repository cannot be read,
    or that the sandbox has ended. Several where the kernel decides."""


def act(
    name: str,
    *calls: Call,
    code: str | set[str | None] | None = None,
    after: str | set[str] = WORKS,
) -> Act:
    codes = frozenset(code) if isinstance(code, set) else frozenset({code})
    return Act(name, calls, codes, frozenset({after} if isinstance(after, str) else after))


def sh(name: str, script: str, *more: Call, **expected: Any) -> Act:
    """A shell command, and calls after it."""
    return act(name, ("run_shell", {"command": script}), *more, **expected)


def py(name: str, script: str, *more: Call, **expected: Any) -> Act:
    """A program of Python, started from a shell."""
    program = textwrap.dedent(script).strip()
    return sh(name, f"python - <<'END'\n{program}\nEND", *more, **expected)
