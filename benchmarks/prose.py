"""Prose that every machine with Python has: its language reference and its docstrings."""

import ast
import json
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

from records.files import write_atomic

SHORTEST = 200
"""Letters of a text; shorter docstrings say little by themselves."""


def prose() -> Iterator[str]:
    """In a fixed order for one release of Python. Sources are parsed, never imported."""
    yield from (topics[name] for name in sorted(topics))
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds))
        yield from (text for text in found if text and len(text) >= SHORTEST)


def write_prose(path: Path) -> None:
    """As JSON lines with the column `text`."""
    write_atomic(path, "".join(json.dumps({"text": text}) + "\n" for text in prose()).encode())
