"""What lists and facets are made of: the typed columns of the trajectories, in memory.

Parquet in thousands of parts is opened part by part, which takes seconds; a list must not. So the
columns that one filters by are read once, and after that only from new commits. It also knows in
which parts the rows about a trajectory lie, so that showing one opens a handful of files.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from records.store import views
from records.store.commits import Commit
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.publish.rows import rows_of

NONE = "(none)"
"""Stands for a value that is not there, so that one can filter by it."""

KEYED = {
    "trajectories": "trajectory_id",
    "tool_calls": "trajectory_id",
    "verdicts": "trajectory_id",
    "curation": "trajectory_id",
    "tasks": "task_id",
}
"""Tables of which only the parts are read that hold a trajectory, and the column that tells. Their
rows grow with the trajectories; the others are read whole."""

WHOLE = ("domains", "labels", "runs")
"""What else a conversation is shown with."""

LISTED = ("trajectories", "tasks", "domains", "curation")
"""Tables that a list is made of."""


class TrajectoryIndex:
    """Threads may share it. `refresh` brings it up to the newest commit."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._db = duckdb.connect(
            config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
        )
        self._lock = threading.Lock()
        self._up_to = 0
        self._parts: list[tuple[int, str]] = []
        """(commit number, part name) by the number that stands in the table `places`."""
        self._make_tables()

    def refresh(self) -> int:
        """The number of the commit that it is up to: all of it or, after a failure, what it was."""
        with self._lock:
            commits = self._dataset.commits()
            new = commits[self._up_to :]
            if not new:
                return self._up_to
            before = self._parts
            self._db.begin()
            try:
                if any(map(_replaces_listed, new)):
                    new = commits  # rows are gone: from the beginning
                    self._parts = []
                    self._make_tables()
                self._add(new, is_first=len(new) == len(commits))
                self._db.commit()
            except BaseException:
                self._db.rollback()
                self._parts = before
                raise
            self._up_to = len(commits)
            return self._up_to

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """Of a query over the table `shown`, which has a row for each trajectory."""
        with self._db.cursor() as cursor:
            return rows_of(cursor, query, values)

    def failures_of(self, rows: Sequence[Row]) -> dict[str, Row]:
        """Of rows of `shown` the verdict that rejects each, by its `trajectory_id`; one query for
        all of them."""
        failed = [row for row in rows if row["failed_criterion"] and row["accepted"] is False]
        if not failed:
            return {}
        of = {row["trajectory_id"]: row["episode_id"] or row["trajectory_id"] for row in failed}
        with self.views_of(*of, tables=("verdicts",)) as db:
            wanted = [row["trajectory_id"] for row in failed], list(of.values())
            named = [row["grading_id"] for row in failed], [r["failed_criterion"] for r in failed]
            return {row["trajectory_id"]: row for row in rows_of(db, _FAILURES, [*wanted, *named])}

    @contextmanager
    def views_of(
        self, *trajectory_ids: str, tables: Sequence[str] = (*KEYED, *WHOLE)
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """The dataset's views over no more commits than tell of the episodes of these
        trajectories."""
        with self._lock:  # a rebuild numbers the parts anew
            found = self.rows(_EPISODES, [list(trajectory_ids)])
            keys = [*trajectory_ids, *{v for row in found for v in row.values() if v is not None}]
            wanted = {self._parts[row["part"]][1] for row in self.rows(_PARTS_OF, [keys])}
            commits = self._dataset.commits()[: self._up_to]
        chosen = [
            commit.model_copy(update={"parts": parts})
            for commit in commits
            if (parts := tuple(p for p in commit.parts if p.table in WHOLE or p.name in wanted))
        ]
        with views.connect(self._dataset.root, chosen, tables=tables) as db:
            yield db

    def _make_tables(self) -> None:
        self._make_views([])
        self._db.execute(
            "CREATE OR REPLACE TABLE known_tasks AS SELECT task_id, complexity FROM tasks"
        )
        self._db.execute(
            "CREATE OR REPLACE TABLE known_domains AS SELECT domain_id, name FROM domains"
        )
        self._db.execute(f"CREATE OR REPLACE TABLE shown AS {_SHOWN}")
        self._db.execute("CREATE OR REPLACE TABLE places (key VARCHAR, part INTEGER)")

    def _add(self, new: Sequence[Commit], *, is_first: bool) -> None:
        self._make_views(new)
        self._db.execute("INSERT INTO known_tasks SELECT task_id, complexity FROM tasks")
        self._db.execute("INSERT INTO known_domains SELECT domain_id, name FROM domains")
        self._db.execute(f"INSERT INTO shown {_SHOWN}")
        for table, key in KEYED.items():
            self._add_places(table, key, new)
        if is_first:
            return  # the view of all commits knows the newest curation
        for commit in new:
            if any(part.table == "curation" for part in commit.parts):
                self._make_views([commit])
                self._db.execute(_CURATED_AGAIN)

    def _make_views(self, commits: Sequence[Commit]) -> None:
        self._db.execute(views.views_sql(commits, folder=self._dataset.root, tables=LISTED))

    def _add_places(self, table: str, key: str, commits: Iterable[Commit]) -> None:
        parts = [(c.number, p.name) for c in commits for p in c.parts if p.table == table]
        if not parts:
            return
        first = len(self._parts)
        self._parts = [*self._parts, *parts]
        paths = [str(self._dataset.root / "tables" / table / name) for _, name in parts]
        names = [name for _, name in parts]
        numbers = list(range(first, first + len(parts)))
        self._db.execute(_PLACES.format(key=key), [paths, names, numbers])


def _replaces_listed(commit: Commit) -> bool:
    return commit.supersedes and any(part.table in LISTED for part in commit.parts)


CURATED = (
    *("accepted", "drop_reason", "failed_criterion", "attributed_to", "score", "decided_by"),
    *("grading_id", "curation_id"),
)
"""Columns of the newest curation."""

_SHOWN = f"""
SELECT t.trajectory_id, t.task_id, t.run_id,
  coalesce(t.server, d.name, t.domain_id, '{NONE}') AS domain,
  coalesce(t.variant, '{NONE}') AS variant, coalesce(k.complexity, '{NONE}') AS complexity,
  coalesce(t.outcome, '{NONE}') AS outcome,
  coalesce(t.termination_reason, '{NONE}') AS termination_reason,
  coalesce(t.split, '{NONE}') AS split,
  coalesce(json_extract_string(t.models, '$.agent'), '{NONE}') AS model,
  t.attempt, t.num_messages, t.num_tool_calls, t.num_errors, t.episode_id, t.session,
  t.parent_call_id, {", ".join(f"t.{name}" for name in CURATED)}
FROM trajectories AS t LEFT JOIN known_tasks AS k USING (task_id)
LEFT JOIN known_domains AS d USING (domain_id)"""

_CURATED_AGAIN = f"""
UPDATE shown SET {", ".join(f"{name} = c.{name}" for name in CURATED)}
FROM curation AS c WHERE c.trajectory_id = shown.trajectory_id"""

_PLACES = """
INSERT INTO places
SELECT DISTINCT {key}, number FROM read_parquet($1, filename = true)
JOIN (SELECT unnest($2) AS part, unnest($3) AS number) ON part = parse_filename(filename)"""

_PARTS_OF = "SELECT DISTINCT part FROM places WHERE key IN (SELECT unnest($1))"

_EPISODES = """
SELECT trajectory_id, task_id, episode_id FROM shown
WHERE coalesce(episode_id, trajectory_id) IN (
  SELECT coalesce(episode_id, trajectory_id) FROM shown WHERE list_contains($1, trajectory_id))"""

# code's verdict comes last, and so stays where a judge was asked, too
_FAILURES = """
SELECT w.trajectory_id, v.criterion_id, v.kind, checked_by, evidence
FROM verdicts AS v JOIN (
  SELECT unnest($1) AS trajectory_id, unnest($2) AS episode_id, unnest($3) AS grading_id,
    unnest($4) AS criterion_id) AS w
  ON v.trajectory_id = w.episode_id AND v.grading_id = w.grading_id
    AND v.criterion_id = w.criterion_id
WHERE v.passed = false AND checked_by IN ('code', 'judge') ORDER BY checked_by DESC"""
