"""The journal of one shard in flight: what was paid for and what the model has seen.

One SQLite file per shard with one writer. What `remember` or `record` returned from is there
after a kill -9; only a power cut may take the last moments, never the file (WAL, synchronous
NORMAL: no fsync per call, some microseconds each). What was written first stands.
"""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from records.errors import SynthError

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, response TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS observations
    (item TEXT, step TEXT, observation TEXT NOT NULL, PRIMARY KEY (item, step));
"""


DYING_S = 5.0
"""How long an opener waits for another: a process that is killed holds its files until the last of
its threads is gone, which may be in the middle of a write."""


class ShardJournal:
    """Opened by the one process that works on the shard; its calls come from one thread at a
    time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        # statements commit on their own; shard code may hop between threads, one at a time
        self._db = sqlite3.connect(
            path, timeout=DYING_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._db.executescript(
                # exclusive: a second writer is told so, and no lock is taken per call
                "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                + _TABLES
            )
            damage = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise self._broken(error) from error
        if damage != "ok":
            self._db.close()
            raise self._broken(damage)

    def cached(self, key: str) -> dict[str, Any] | None:
        """The remembered answer of a model, or None."""
        return self._one("SELECT response FROM answers WHERE key = ?", key)

    def remember(self, key: str, response: dict[str, Any]) -> None:
        """Keep an answer of a model under the digest of its request and place."""
        sql = "INSERT INTO answers VALUES (?, ?) ON CONFLICT DO NOTHING"
        if not self._insert(sql, key, response) and self.cached(key) != response:
            raise SynthError(f"{self.path} has another answer for {key}; the first one stands")

    def remembered(self) -> Iterator[dict[str, Any]]:
        """Every response, by key. Do not remember anything while iterating."""
        try:
            for (response,) in self._db.execute("SELECT response FROM answers ORDER BY key"):
                yield json.loads(response)
        except sqlite3.DatabaseError as error:
            raise self._broken(error) from error

    def observation(self, item: str, step: str) -> dict[str, Any] | None:
        """What the model saw at this step, or None if it has seen nothing yet."""
        return self._one(
            "SELECT observation FROM observations WHERE item = ? AND step = ?", item, step
        )

    def record(self, item: str, step: str, observation: dict[str, Any]) -> None:
        """Keep an observation; call it before the model sees it."""
        sql = "INSERT INTO observations VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        known = not self._insert(sql, item, step, observation)
        if known and self.observation(item, step) != observation:
            raise SynthError(
                f"{self.path} has another observation for {item} at {step}; the first one stands"
            )

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _one(self, sql: str, *key: str) -> dict[str, Any] | None:
        try:
            found = self._db.execute(sql, key).fetchone()
            return None if found is None else json.loads(found[0])
        except (sqlite3.DatabaseError, json.JSONDecodeError) as error:
            raise self._broken(error) from error

    def _insert(self, sql: str, *values: Any) -> bool:
        """False when the key was there."""
        *key, value = values
        try:
            return self._db.execute(sql, (*key, json.dumps(value))).rowcount == 1
        except sqlite3.DatabaseError as error:
            raise self._broken(error) from error

    def _broken(self, cause: Exception | str) -> SynthError:
        text = " ".join(str(cause).split())
        if "locked" in text:
            return SynthError(f"journal {self.path} is open in another process; end that one first")
        if "full" in text:
            return SynthError(f"disk full while writing {self.path}; free some space and run again")
        return SynthError(
            f"journal {self.path} cannot be used ({text}). If it is damaged, delete it and run "
            "again: what this shard had in flight is then asked for, and paid, again"
        )


def remove_journal(path: Path) -> None:
    """Once its shard is committed and nobody will ask for what it holds; what it spent is then in
    the table `llm_calls`."""
    for suffix in ("-wal", "-shm", ""):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
