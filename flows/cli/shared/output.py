"""How commands talk: lines for people on stderr, results on stdout."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

UNCUT = 1_000_000
"""Columns of a table that goes to a file or a program, which has no edge to cut an id at."""


def say(line: str) -> None:
    """A line for the person at the terminal."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def counted(counts: Mapping[str, int]) -> str:
    """Reasons with their numbers, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{key.replace('_', ' ')} {count}" for key, count in ordered)


def print_rows(names: Sequence[str], rows: Iterable[Sequence[Any]], *, json_: bool) -> None:
    """Rows on stdout: a table for people, or a JSON list of objects."""
    if json_:
        objects = [dict(zip(names, row, strict=True)) for row in rows]
        print(json.dumps(objects, default=str, ensure_ascii=False))  # noqa: T201
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*names)
    for row in rows:
        table.add_row(*(Text("" if value is None else str(value)) for value in row))
    Console(width=None if sys.stdout.isatty() else UNCUT).print(table)
