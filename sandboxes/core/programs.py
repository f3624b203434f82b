"""Programs of `sandboxes/inside`, run in any sandbox as they stand here."""

from pathlib import Path

from sandboxes.core import python_env


def program(path: Path) -> list[str]:
    """How to run a program of `sandboxes/inside` in any sandbox, which need not be given it."""
    return [python_env.base_python(), "-I", "-S", "-B", "-c", path.read_text(encoding="utf-8")]


def last_words(stderr: bytes) -> str:
    """The last line of what a program said, fit for a terminal: a stranger's files may have a part
    in it."""
    lines = stderr[-4_000:].decode(errors="replace").strip().splitlines()
    return "".join(c if c.isprintable() else "?" for c in lines[-1])[:500] if lines else ""
