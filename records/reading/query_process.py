"""Queries that somebody wrote, answered by a process of its own, which can be ended.

DuckDB stops a query between its steps only and keeps to its memory in its own structures alone: a
constant such as `range(1e9)` is computed while the query is planned, past both. So a query that
does not stop in time ends the process, the system refuses it more memory, and whoever asked goes
on.
"""

import contextlib
import resource
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from records.errors import ConfigError, SynthError
from records.piped_process import PipedProcess
from records.reading.query import LockedViews, QueryResult, stopped_query
from records.store.dataset import Dataset

GRACE_S = 1.0
"""Beyond its time, in which a query may still stop by itself."""

START_S = 120.0
"""For the process to begin; some seconds where the machine is busy."""

PROCESS_BYTES = 3 * 2**30
"""Of memory, for all that the process does: the program, DuckDB, an answer's rows."""


class QueryProcess:
    """One query at a time. The process starts with the first, and again after one that ended it; it
    ends with this object."""

    def __init__(self, root: Path, *, memory: str) -> None:
        self._process = PipedProcess(
            "records.reading.query_process", [f"{root}", memory], start_s=START_S
        )

    def run(self, query: str, *, most_rows: int, timeout_s: float) -> QueryResult:
        """As `LockedViews.run`, over the newest commit; ConfigError, too, for a query that takes
        more memory than there is for it."""
        try:
            channel = self._process.channel()
        except EOFError as error:
            raise ConfigError(
                "no process began that answers queries; the terminal may say why"
            ) from error
        try:
            channel.send((query, most_rows, timeout_s))
            answer = channel.recv() if channel.poll(timeout_s + GRACE_S) else None
        except (EOFError, OSError) as error:
            self.close()
            raise ConfigError(
                "the process that answers queries ended, most likely because this one takes too "
                "much memory; ask for less at a time"
            ) from error
        if answer is None:
            self.close()
            raise stopped_query(timeout_s)
        if isinstance(answer, SynthError):
            raise answer
        return answer

    def close(self) -> None:
        """End the process, if there is one."""
        self._process.close()


def main() -> None:
    """Of the process: answer until whoever asks is gone."""
    number, root, memory = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, whose end ends this
    resource.setrlimit(resource.RLIMIT_DATA, (PROCESS_BYTES, PROCESS_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    dataset = Dataset.open(root)
    views: tuple[int, LockedViews] | None = None
    gone = EOFError, OSError, MemoryError
    with Connection(int(number)) as channel, contextlib.suppress(*gone):
        channel.send("ready")
        while True:
            query, most_rows, timeout_s = channel.recv()
            try:
                commits = len(dataset.commits())
                if views is None or views[0] != commits:
                    views = commits, LockedViews(dataset, memory=memory)
                answer = views[1].run(query, most_rows=most_rows, timeout_s=timeout_s)
            except SynthError as error:
                answer = error
            channel.send(answer)
