"""Finds the mutations of source files and prints them as one JSON list.

Standard input is an object: `finder` is the text of `sandboxes/code/mutations.py`, `files` a list
of path and text, `memory` the most bytes to take. A mutation is a list of the file's number, the
operator, the line, the offset, the length of what is replaced, and what replaces it.
"""

# This program runs alone in a bare interpreter.
# ruff: noqa: T201
import json
import resource
import sys
from types import ModuleType
from typing import Any


def found_in(finder: Any, path: str, text: str) -> "list[tuple[Any, ...]]":
    try:
        found = finder.mutations_of(path, text)
    except (RecursionError, MemoryError):  # nested deeper than Python can follow
        return []
    return [(m.operator, m.line, m.start, len(m.old), m.new) for m in found]


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    resource.setrlimit(resource.RLIMIT_DATA, (request["memory"], request["memory"]))
    finder = sys.modules["finder"] = ModuleType("finder")
    exec(compile(request["finder"], "mutations.py", "exec"), finder.__dict__)
    rows = []
    for number, (path, text) in enumerate(request["files"]):
        rows += [(number, *row) for row in found_in(finder, path, text)]
    print(json.dumps(rows))


main()
