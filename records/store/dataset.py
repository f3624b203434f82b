"""The dataset on disk: `commit` adds rows for good, everything else reads what was committed.

A dataset is one folder:

    dataset.json                       marker: what this folder is
    commits/000001.json                one per shard, written last; the only truth (`commits.py`)
    tables/<table>/<part>.parquet      zstd; exists for readers once a commit names it
    views.sql                          a DuckDB view per table over the committed parts
    lease.json                         who writes here now (`lease.py`)
    plans/<run_id>/<stage>.json        the shard plan, written before the first request
    profiles/<run_id>.json             what the run's endpoints can do
    batches/<run_id>.sqlite            which batches of requests the run has under way
    journal/<run_id>/<stage>-00000.sqlite  answers and observations of one shard (`journal.py`)

Primary keys are unique over all commits. A commit with `supersedes=True` may bring keys that are
committed already: the newest row of a key counts, and rows that describe a superseded row of
another table (`TableSpec.owner`) go with it.
"""

import hashlib
import io
import re
import secrets
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from records.errors import ConfigError, SynthError
from records.files import (
    TEMPORARY,
    create_exclusive,
    locked,
    make_folder,
    prepared,
    write_atomic,
)
from records.store import lease, views
from records.store.commits import Commit, ItemStatus, Part, commit_path, read_commit
from records.store.log import CommitLog, Key, duplicates, keys_in
from records.store.marker import MARKER, make_dataset, read_marker
from records.tables.columns import decode, encode, given_columns, spec_of
from records.tables.schemas import SCHEMA_VERSION, Row, TableSpec

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""What a run id and a stage may be: both become file names."""

WINDOW = "@"
"""Between a stage and the number of a window in the name of a plan."""
_LOGS: dict[tuple[Path, str], CommitLog] = {}
_LOGS_LOCK = threading.Lock()


class StagedCommit(NamedTuple):
    """What `Dataset.append` makes a commit of: parts that lie in their folders, named by none."""

    commit: Commit
    keys: dict[str, list[Key]]
    """Primary keys of the new rows by table."""


class Dataset:
    """One dataset folder. Threads may share it; several processes may commit under one lease."""

    def __init__(self, root: Path, dataset_id: str) -> None:
        self.root = root
        with _LOGS_LOCK:
            # by id too: a folder deleted and made anew is another dataset
            self._log = _LOGS.setdefault((root, dataset_id), CommitLog(root))

    @classmethod
    def create_or_open(cls, path: str | Path) -> "Dataset":
        """For commands that write: makes a dataset of a missing or empty folder."""
        root = Path(path).resolve()
        if read_marker(root) is None:
            make_dataset(root)
        return cls.open(root)

    @classmethod
    def open(cls, path: str | Path) -> "Dataset":
        """For commands that read: refuses a folder that is missing, empty or not a dataset."""
        root = Path(path).resolve()
        marker = read_marker(root)
        if marker is None:
            what = f"it has no {MARKER}" if root.exists() else "there is no such folder"
            raise ConfigError(f"{path} is no dataset: {what}")
        return cls(root, marker.dataset_id)

    def commit(
        self,
        *,
        run_id: str,
        stage: str,
        shard: int,
        tables: Mapping[str, Sequence[Row]],
        items: Mapping[str, ItemStatus] | None = None,
        supersedes: bool = False,
    ) -> int:
        """Make the rows of one shard and the fate of its items permanent; the commit's number.

        All or nothing, also under kill -9 and a full disk. Refuses rows whose key is committed
        already and a (run, stage, shard) that is, unless `supersedes`. Blocks for some
        milliseconds of fsync: call it from a thread where that matters.
        """
        staged = self.prepare(
            run_id=run_id,
            stage=stage,
            shard=shard,
            tables=tables,
            items=items,
            supersedes=supersedes,
        )
        return self.append(staged)

    def prepare(
        self,
        *,
        run_id: str,
        stage: str,
        shard: int,
        tables: Mapping[str, Sequence[Row]],
        items: Mapping[str, ItemStatus] | None = None,
        supersedes: bool = False,
    ) -> StagedCommit:
        """The costly half of `commit`: the parts written, for `append` to name, perhaps in another
        process under the same lease. Until then no reader sees them."""
        _check_names(run_id, stage)
        _check_reasons(items or {})
        encoded = {
            table: encode(table, rows, run_id=run_id) for table, rows in tables.items() if rows
        }
        keys = {table: keys_in(spec_of(table), stored) for table, stored in encoded.items()}
        with locked(self.root / MARKER, exclusive=False):
            lease.check_ours(self.root)
            written: list[Path] = []
            try:
                parts = [
                    self._write_part(f"{stage}-{shard:05d}", *part, written)
                    for part in encoded.items()
                ]
            except BaseException:
                self._discard(written)
                raise
        commit = Commit(
            number=0,
            run_id=run_id,
            stage=stage,
            shard=shard,
            supersedes=supersedes,
            parts=tuple(parts),
            items=dict(items or {}),
        )
        return StagedCommit(commit, keys)

    def append(self, staged: StagedCommit) -> int:
        """The other half of `commit`; its parts are removed when they may not be committed."""
        try:
            with locked(self.root / MARKER, exclusive=False):
                lease.check_ours(self.root)
                with self._log.lock:
                    return self._append(staged.commit, staged.keys)
        except BaseException:
            self._discard(
                [self.root / "tables" / part.table / part.name for part in staged.commit.parts]
            )
            raise

    def rows(self, table: str, columns: Sequence[str] | None = None) -> list[Row]:
        """All committed rows sorted by primary key, JSON columns as Python values.

        Without `columns`: exactly what `commit` takes, so neither `run_id` nor `schema_version`;
        name them to get them.
        """
        spec = spec_of(table)
        wanted = list(columns) if columns is not None else given_columns(spec)
        if unknown := [name for name in wanted if name not in spec.schema.names]:
            raise ConfigError(f"{table} has no columns {unknown}; it has {spec.schema.names}")
        read = list(dict.fromkeys([*wanted, *spec.primary_key]))
        with self._log.lock:
            self._log.refresh()
            stored = self._log.read(table, read)
        return decode(spec, _sorted(spec, stored).select(wanted))

    def column(self, table: str, column: str) -> Iterator[tuple[int, list[Any]]]:
        """(commit number, the column's values) for each part of the table, in commit order."""
        for number, part in self._parts(table):
            with self._log.lock:
                yield number, self._log.read_part(number, part, [column])[column].to_pylist()

    def arrow_of_commit(
        self, table: str, number: int, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows that a commit brought and that still count, in the order in which they were
        committed; without `columns` those that `rows` gives."""
        spec = spec_of(table)
        wanted = list(columns) if columns is not None else given_columns(spec)
        with self._log.lock:
            [part] = [p for p in self._log.commits[number - 1].parts if p.table == table]
            return self._log.read_part(number, part, wanted)

    def in_commits(self, table: str, columns: Sequence[str] | None = None) -> Iterator[list[Row]]:
        """The rows of every commit that brought some of the table, one commit after another."""
        for number, _ in self._parts(table):
            yield decode(spec_of(table), self.arrow_of_commit(table, number, columns))

    def _parts(self, table: str) -> list[tuple[int, Part]]:
        spec_of(table)
        with self._log.lock:
            self._log.refresh()
            return list(self._log.parts(table))

    def arrow(self, table: str) -> pa.Table:
        """All committed rows as one Arrow table in schema order, sorted by primary key."""
        with self._log.lock:
            self._log.refresh()
            stored = self._log.read(table)
        return _sorted(spec_of(table), stored)

    def ids(self, table: str, *, before: int | None = None) -> set[Key]:
        """Committed primary keys: the value itself for a key of one column, else tuples.

        With `before`: only of rows that commits with smaller numbers brought.
        """
        spec_of(table)
        with self._log.lock:
            self._log.refresh()
            keys = self._log.keys(table)
            return {key for key, number in keys.items() if before is None or number < before}

    def item_statuses(self, stage: str) -> dict[str, ItemStatus]:
        """Item -> what became of it in this stage, by the newest commit that names it; without
        those that it left pending."""
        newest: dict[str, ItemStatus] = {}
        for items in self.items_of(stage):
            newest.update(items)
        return {i: status for i, status in newest.items() if status.status != "pending"}

    def items_of(
        self, stage: str, of: Collection[str] | None = None, *, after: int = 0
    ) -> Iterator[dict[str, ItemStatus]]:
        """What became of items in this stage, by commit `after` a number, oldest first; read from
        the files as one goes on. With `of`, only of commits that name one of these items."""
        with self._log.lock:
            self._log.refresh()
            numbers = self._log.commits_of(stage, of)
        for number in numbers:
            if number > after and (commit := read_commit(self.root, number)):
                yield commit.items

    def stages(self) -> list[str]:
        """Those that accounted for items, in the order of their first commit."""
        with self._log.lock:
            self._log.refresh()
            return [
                s
                for s in dict.fromkeys(c.stage for c in self._log.commits)
                if s in self._log.with_items
            ]

    def commits(self) -> list[Commit]:
        """Every commit, oldest first, without its items: see `items_of`."""
        with self._log.lock:
            self._log.refresh()
            return list(self._log.commits)

    def has_shard(self, run_id: str, stage: str, shard: int) -> bool:
        """Is this shard committed? Then there is nothing left to do for it."""
        with self._log.lock:
            self._log.refresh()
            return (run_id, stage, shard) in self._log.shards

    def connect(self, tables: Collection[str] | None = None) -> duckdb.DuckDBPyConnection:
        """DuckDB in memory with the dataset's views: one per table, `sft` and `rl`; or those of
        `tables` alone, since all of them take it a twentieth of a second."""
        return views.connect(self.root, self.commits(), tables=tables)

    def views(self) -> str:
        """The statements that make the views in any DuckDB, wherever it is started."""
        return views.views_sql(self.commits(), folder=self.root.absolute())

    def plan_path(self, run_id: str, stage: str, window: int = 0) -> Path:
        """Of a stage that is planned in windows, each but the first has a name of its own."""
        part = f"{WINDOW}{window:06d}" if window else ""
        return self.root / "plans" / run_id / f"{stage}{part}.json"

    def profiles_path(self, run_id: str) -> Path:
        """What a run's endpoints can do (`synth.llm.profiles`)."""
        return self.root / "profiles" / f"{run_id}.json"

    def batches_path(self, run_id: str) -> Path:
        """Which batches of requests a run has under way (`synth.llm.endpoint.batch_store`)."""
        return self.root / "batches" / f"{run_id}.sqlite"

    def journal_path(self, run_id: str, stage: str, shard: int) -> Path:
        return self.root / "journal" / run_id / f"{stage}-{shard:05d}.sqlite"

    def sweep(self) -> None:
        """Remove what killed writers left and bring `views.sql` up to date.

        `records.store.lease.hold` calls it while no commit can be under way; nobody else should.
        """
        with self._log.lock:
            self._log.refresh()
            committed = {part.name for commit in self._log.commits for part in commit.parts}
            for folder in (".", "commits", "tables/*", "plans/*"):
                for path in self.root.glob(f"{folder}/{TEMPORARY}*"):
                    path.unlink(missing_ok=True)
            for path in (self.root / "tables").glob("*/*.parquet"):
                if path.name not in committed:
                    path.unlink()
            text = views.views_sql(self._log.commits).encode()
            path = self.root / views.FILE
            if not path.exists() or path.read_bytes() != text:
                write_atomic(path, text)

    def _check_new(
        self, shard: tuple[str, str, int], keys: Mapping[str, list[Key]], *, supersedes: bool
    ) -> None:
        """Under the log's lock, after a refresh."""
        if not supersedes and (number := self._log.shards.get(shard)):
            run_id, stage, index = shard
            raise SynthError(
                f"shard {index} of {stage} (run {run_id}) is committed already, as commit "
                f"{number} of {self.root}; nothing was written"
            )
        for table, new in keys.items():
            twice = duplicates(new, {}) if supersedes else self._log.taken(table, new)
            if twice:
                raise SynthError(
                    f"{len(twice)} rows of {table} have a primary key "
                    f"({', '.join(spec_of(table).primary_key)}) that is taken, first {twice[0]!r}; "
                    "nothing was written"
                )

    def _write_part(self, prefix: str, table: str, stored: pa.Table, written: list[Path]) -> Part:
        buffer = io.BytesIO()
        pq.write_table(stored, buffer, compression="zstd")
        data = buffer.getvalue()
        path = self.root / "tables" / table / f"{prefix}-{secrets.token_hex(6)}.parquet"
        written.append(path)
        write_atomic(path, data)
        return Part(
            table=table,
            name=path.name,
            rows=stored.num_rows,
            sha256=hashlib.sha256(data).hexdigest(),
            columns=tuple(stored.column_names),
            schema_version=SCHEMA_VERSION,
        )

    def _append(self, unnumbered: Commit, keys: dict[str, list[Key]]) -> int:
        """Give the commit the next free number. Under the log's lock.

        Another process may take that number first. Then its commit is read, the keys are checked
        against it, and the next number is tried, so no two commits ever hold the same key.
        """
        make_folder(self.root / "commits")
        while True:
            number = self._log.refresh() + 1
            shard = (unnumbered.run_id, unnumbered.stage, unnumbered.shard)
            self._check_new(shard, keys, supersedes=unnumbered.supersedes)
            commit = unnumbered.model_copy(update={"number": number})
            # the views' bytes are on the disk before the commit, so that a full disk is met
            # while there is nothing to undo
            text = views.views_sql([*self._log.commits, commit])
            with prepared(self.root / views.FILE, text.encode()) as new_views:
                data = (commit.model_dump_json() + "\n").encode()
                if not create_exclusive(commit_path(self.root, number), data):
                    continue
                self._log.add(commit, keys)
                new_views.replace(self.root / views.FILE)
            if self._log.refresh() > number:  # a faster writer's views may just have been replaced
                write_atomic(self.root / views.FILE, views.views_sql(self._log.commits).encode())
            return number

    def _discard(self, written: list[Path]) -> None:
        """Remove parts of a commit that failed, unless it is the step after that failed."""
        with self._log.lock:
            self._log.refresh()
            committed = {part.name for commit in self._log.commits for part in commit.parts}
        for path in written:
            if path.name not in committed:
                path.unlink(missing_ok=True)


def _sorted(spec: TableSpec, stored: pa.Table) -> pa.Table:
    return stored.sort_by([(name, "ascending") for name in spec.primary_key])


def _check_names(*names: str) -> None:
    for name in names:
        if not NAME.fullmatch(name):
            raise SynthError(f"{name!r} cannot name a file; allowed: {NAME.pattern}")


def _check_reasons(items: Mapping[str, ItemStatus]) -> None:
    """Nothing is dropped, failed or left pending in silence."""
    for item, (status, reason, _) in items.items():
        if status != "kept" and not reason:
            raise SynthError(f"item {item!r} is {status} without a reason; give one word")
