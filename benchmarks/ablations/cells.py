"""Cells: one training run each, whose result is written once.

A cell is found again by a digest of everything that decides its result, so that a second start of
the same ablations goes on where the first one stopped, and changed settings make new cells.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.measured import machine
from records.config import Config
from records.digest import digest
from records.files import write_atomic

VERSION = 1
"""Raised when the same settings would give another result."""


class Cell(Config):
    ablation: str
    name: str
    """Short and readable, one of its kind within an ablation and a seed."""
    seed: int
    settings: dict[str, Any]
    """All else that decides the result, as JSON values."""

    @property
    def key(self) -> str:
        return f"{self.ablation}-{self.name}-{digest(VERSION, self.model_dump(mode='json'))}"


Result = dict[str, Any]


class Results:
    """Files `<key>.json` in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Result] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, cell: Cell) -> Result | None:
        if cell.key not in self._known:
            path = self._folder / f"{cell.key}.json"
            if not path.exists():
                return None
            self._known[cell.key] = json.loads(path.read_text())
        return self._known[cell.key]["result"]

    def seconds(self, cell: Cell) -> float:
        self.get(cell)
        return self._known[cell.key]["seconds"]

    def put(self, cell: Cell, result: Result, seconds: float) -> None:
        whole = {
            "cell": cell.model_dump(mode="json"),
            "result": result,
            "seconds": round(seconds, 1),
            "machine": machine(),
        }
        write_atomic(self._folder / f"{cell.key}.json", json.dumps(whole).encode())

    def commits(self, cells: Iterable[Cell]) -> list[str]:
        """Of the code that the results were made by, sorted."""
        found = [self._known[c.key]["machine"] for c in cells if self.get(c) is not None]
        return sorted({str(m["commit"]) for m in found})

    def loads(self, cells: Iterable[Cell]) -> list[float]:
        """Of the machine when each result's process began."""
        return [self._known[c.key]["machine"]["load"] for c in cells if self.get(c) is not None]


Done = Mapping[str, tuple[Cell, Result]]
"""Finished cells of one ablation and one seed, by name."""
