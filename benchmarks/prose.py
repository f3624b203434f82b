"""Prose that every machine with Python has: its language reference and its docstrings."""

import json
from collections.abc import Iterator
from pathlib import Path

from records.files import write_atomic
from synth.rephrasing.sources.built_in import CPython


def prose() -> Iterator[str]:
    """In a fixed order for one release of Python; no text comes twice."""
    return iter(dict.fromkeys(text.text for _, text in CPython().texts()))


def write_prose(path: Path) -> None:
    """As JSON lines with the column `text`."""
    write_atomic(path, "".join(json.dumps({"text": text}) + "\n" for text in prose()).encode())
