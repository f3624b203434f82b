"""The datasets that are shown, each with what is kept of it between two requests.

Whatever is kept belongs to a commit: the first request after a new one sees it.
"""

import queue
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import duckdb

from records.reading.query import LockedViews, QueryResult
from records.reading.query_process import QueryProcess
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.browser.index import TrajectoryIndex
from synth.render.yields import YieldCounts

MEMORY = "2GB"
"""For all queries of the pages over one dataset together."""

SQL_MEMORY = "1GB"
"""For a query that somebody wrote."""

SQL_TIMEOUT_S = 10.0
"""For a query that somebody wrote."""

SQL_AT_ONCE = 2
"""Queries of that kind that run together; others wait."""

_Made = TypeVar("_Made")


class ShownDataset:
    """Threads may share it."""

    def __init__(self, name: str, dataset: Dataset) -> None:
        self.name, self.dataset = name, dataset
        """`name`: its place in addresses."""
        self.index = TrajectoryIndex(dataset)
        self.yields = YieldCounts(dataset)
        self._lock = threading.RLock()
        self._views: tuple[int, LockedViews] | None = None
        self._kept: dict[str, tuple[int, Any]] = {}
        self._free: queue.LifoQueue[QueryProcess] = queue.LifoQueue()
        """Processes that answer nobody now; the one that did last goes on."""
        for _ in range(SQL_AT_ONCE):
            self._free.put(QueryProcess(dataset.root, memory=SQL_MEMORY))

    def newest(self) -> int:
        """The number of the newest commit, which lists show from now on."""
        return self.index.refresh()

    def kept(self, name: str, make: Callable[[], _Made]) -> _Made:
        """What `make` makes, made again after each commit."""
        number = self.newest()
        found = self._kept.get(name)
        if found is None or found[0] != number:
            found = self._kept[name] = (number, make())  # requests at once may each make it
        return found[1]

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """Of a query of ours over the views of the newest commit."""
        with self.cursor() as cursor:
            # through Arrow: fetching a time with its zone takes a package that is not required
            return cursor.sql(query, params=list(values)).to_arrow_table().to_pylist()

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The views of the newest commit, for reading."""
        with self._newest_views().cursor() as cursor:
            yield cursor

    def sql(self, query: str, *, most_rows: int) -> QueryResult:
        """Of a query that somebody wrote; ConfigError where it is wrong or takes too long."""
        process = self._free.get()
        try:
            return process.run(query, most_rows=most_rows, timeout_s=SQL_TIMEOUT_S)
        finally:
            self._free.put(process)

    def _newest_views(self) -> LockedViews:
        with self._lock:
            number = len(self.dataset.commits())
            if self._views is None or self._views[0] != number:
                # queries that still run hold the earlier ones, which go with the last of them
                self._views = number, LockedViews(self.dataset, memory=MEMORY)
            return self._views[1]


def shown_datasets(datasets: Sequence[Dataset]) -> dict[str, ShownDataset]:
    """By the names of their folders, as addresses can hold them; equal ones are numbered."""
    found: dict[str, ShownDataset] = {}
    for dataset in datasets:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", dataset.root.name).strip("-.") or "dataset"
        name, number = plain, 1
        while name in found:
            number += 1
            name = f"{plain}-{number}"
        found[name] = ShownDataset(name, dataset)
    return found
