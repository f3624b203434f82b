"""The batches of a run that are under way: which requests they hold, and where they are.

A batch is written down when its file has been uploaded, before it is created, and again with the id
that the server gives it. So whoever asks the same request again, after a kill as well, finds it.
All processes of a run share one SQLite file.
"""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from records.digest import digest
from records.errors import SynthError
from synth.llm.settings.profile import Profile

_TABLES = (
    "CREATE TABLE IF NOT EXISTS batches"
    " (name TEXT PRIMARY KEY, url TEXT NOT NULL, file_id TEXT NOT NULL, batch_id TEXT)",
    "CREATE TABLE IF NOT EXISTS requests"
    " (key TEXT, batch TEXT, profile TEXT NOT NULL, call_id TEXT NOT NULL,"
    " PRIMARY KEY (key, batch))",
    "CREATE INDEX IF NOT EXISTS by_batch ON requests (batch)",
)

BUSY_S = 60.0
"""How long a statement waits for another process's, each of which takes milliseconds."""

LOOK_AGAIN_S = 0.05
"""Between two tries to be the one process that creates batches."""


class BatchedRequest(NamedTuple):
    """One request of a batch as it is written down."""

    key: str
    """The journal's; on the wire it is the `custom_id`."""
    profile: Profile
    """By which it was shaped."""
    call_id: str
    """Of its row in the ledger."""


class KnownBatch(NamedTuple):
    name: str
    """Ours, which its metadata hold."""
    file_id: str
    """Of its requests."""
    batch_id: str | None
    """The server's; None: it may never have been created."""


class BatchStore:
    """Of one run. The file is made with the first batch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: sqlite3.Connection | None = None

    def batch_of(self, key: str, url: str) -> tuple[KnownBatch, BatchedRequest] | None:
        """The newest batch at `url` that holds this request."""
        if self._opened is None and not self.path.exists():
            return None
        found = self._run(
            "SELECT name, file_id, batch_id, profile, call_id FROM requests"
            " JOIN batches ON name = batch WHERE key = ? AND url = ?"
            " ORDER BY requests.rowid DESC LIMIT 1",
            key,
            url,
        )
        if not found:
            return None
        *batch, profile, call_id = found[0]
        known = Profile.model_validate_json(profile)
        return KnownBatch(*batch), BatchedRequest(key, known, call_id)

    def uploaded(
        self, name: str, url: str, file_id: str, requests: Sequence[BatchedRequest]
    ) -> None:
        """Before the batch is created. Not even a power cut loses it."""
        self._run("PRAGMA synchronous=FULL")
        self._run("BEGIN IMMEDIATE")
        self._run("INSERT INTO batches VALUES (?, ?, ?, NULL)", name, url, file_id)
        for key, profile, call_id in requests:
            given = profile.model_dump_json(exclude_none=True)
            self._run("INSERT INTO requests VALUES (?, ?, ?, ?)", key, name, given, call_id)
        self._run("COMMIT")
        self._run("PRAGMA synchronous=NORMAL")

    def created(self, name: str, batch_id: str) -> None:
        self._run("UPDATE batches SET batch_id = ? WHERE name = ?", batch_id, name)

    def forget(self, name: str) -> None:
        """A batch that was never created."""
        self._run("BEGIN IMMEDIATE")
        self._run("DELETE FROM requests WHERE batch = ?", name)
        self._run("DELETE FROM batches WHERE name = ?", name)
        self._run("COMMIT")

    def done(self, key: str) -> None:
        """What came of the request is written down elsewhere; the batch goes with its last."""
        self._run("BEGIN IMMEDIATE")
        self._run("DELETE FROM requests WHERE key = ?", key)
        self._run(
            "DELETE FROM batches WHERE NOT EXISTS (SELECT 1 FROM requests WHERE batch = name)"
        )
        self._run("COMMIT")

    @asynccontextmanager
    async def alone(self, url: str) -> AsyncIterator[None]:
        """No other process, and nobody else in this one, creates batches at `url` meanwhile. The
        lock goes with the process that holds it."""
        path = self.path.with_name(f"{self.path.stem}-{digest(url)[:12]}.lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(LOOK_AGAIN_S)
            yield
        finally:
            os.close(handle)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _run(self, sql: str, *values: str) -> list[tuple[str, ...]]:
        try:
            return self._db().execute(sql, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise SynthError(
                f"{self.path} cannot be used ({error}). It holds which batches the run has under "
                "way: free some space if the disk is full, else delete it and run again, and what "
                "they hold is asked for, and paid, again"
            ) from error

    def _db(self) -> sqlite3.Connection:
        if self._opened is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._opened = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
            self._opened.execute("PRAGMA journal_mode=WAL")
            self._opened.execute("PRAGMA synchronous=NORMAL")  # no fsync for each that is done
            for table in _TABLES:
                self._opened.execute(table)
        return self._opened
