"""What one dataset has committed, kept in memory: read once per process, then only added to.

`Dataset` objects of one process share it, so that a shard's commit costs the same whether it is
the first or the thousandth.
"""

import hashlib
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from records.errors import ConfigError, SynthError
from records.store.commits import Commit, Part, commit_path, newest_number, read_commit
from records.tables.columns import aligned, renamed, spec_of
from records.tables.renames import REMOVED
from records.tables.schemas import SCHEMA_VERSION, TableSpec
from records.tables.tables import TABLES

Key = Any


class CommitLog:
    """Use under `lock`. `refresh` first: another process may have committed since."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lock = threading.RLock()
        self.commits: list[Commit] = []
        """Without their items, which grow with the dataset: `Dataset` reads those again."""
        self.shards: dict[tuple[str, str, int], int] = {}
        """(run_id, stage, shard) -> commit number."""
        self.with_items: set[str] = set()
        """Stages that accounted for items."""
        self._replaced: dict[str, dict[Key, int]] = {}
        """Table -> key -> newest commit that superseded the row. Empty in most datasets."""
        self._keys: dict[str, dict[Key, int]] = {}
        """Table -> live key -> commit, for tables that were asked for."""
        self._keys_up_to: dict[str, int] = {}
        """Table -> commit up to which its keys are in `_keys`."""
        self._seen: dict[str, KeyDigests] = {}
        """Table -> every key that any commit brought, for tables that were committed to here."""
        self._items: dict[str, ItemCommits] = {}
        """Stage -> where its items are named, for stages that were asked about some of them."""
        self._verified: set[str] = set()
        self._columns: dict[tuple[str, ...], tuple[str, ...]] = {}

    def refresh(self) -> int:
        """Read the commits that are new on disk; the number of the last one, 0 for none."""
        newest = 0 if self.commits else newest_number(self.root)
        while commit := read_commit(self.root, len(self.commits) + 1):
            self._add(commit)
        if len(self.commits) < newest:
            raise SynthError(
                f"{commit_path(self.root, len(self.commits) + 1)} is missing but commit {newest} "
                "is there; restore it from a copy: without it committed rows cannot be found"
            )
        return len(self.commits)

    def add(self, commit: Commit, keys: dict[str, list[Key]]) -> None:
        """Take in a commit just written here, whose keys need no reading."""
        self._add(commit, keys)
        for table, new in keys.items():
            if (seen := self._seen.get(table)) and seen.up_to == commit.number - 1:
                seen.add(new, commit.number)

    def _add(self, commit: Commit, keys: dict[str, list[Key]] | None = None) -> None:
        for part in commit.parts:
            _check_known(part)
        if commit.supersedes:
            for part in commit.parts:
                replaced = keys[part.table] if keys else self._part_keys(part)
                self._replaced.setdefault(part.table, {}).update(
                    dict.fromkeys(replaced, commit.number)
                )
        self.commits.append(self._slim(commit))
        self.shards[commit.run_id, commit.stage, commit.shard] = commit.number
        if commit.items:
            self.with_items.add(commit.stage)

    def _slim(self, commit: Commit) -> Commit:
        parts = tuple(
            part.model_copy(
                update={"columns": self._columns.setdefault(part.columns, part.columns)}
            )
            for part in commit.parts
        )
        return commit.model_copy(update={"items": {}, "parts": parts})

    def commits_of(self, stage: str, items: Collection[str] | None = None) -> list[int]:
        """Numbers of the commits of a stage, oldest first; with `items`, of those that name one of
        them, and perhaps of a few more."""
        if items is None:
            return [known.number for known in self.commits if known.stage == stage]
        named = self._items.setdefault(stage, ItemCommits())
        for known in self.commits[named.up_to :]:
            if known.stage == stage and (commit := read_commit(self.root, known.number)):
                named.add(list(commit.items), known.number)
        named.up_to = len(self.commits)
        return named.of(items)

    def taken(self, table: str, new: Sequence[Key]) -> list[Key]:
        """Those of the keys that are committed and those that come twice, in order."""
        seen = self._seen.setdefault(table, KeyDigests())
        for number, part in self.parts(table, after=seen.up_to):
            seen.add(self._part_keys(part), number)
        seen.up_to = len(self.commits)
        # a digest that was seen may be another key's, or a row's that does not count any more
        committed = self.keys(table) if seen.any_of(new) else {}
        return duplicates(new, committed)

    def parts(self, table: str, *, after: int = 0) -> Iterator[tuple[int, Part]]:
        """(commit number, part) of the table, in commit order."""
        for commit in self.commits[after:]:
            for part in commit.parts:
                if part.table == table:
                    yield commit.number, part

    def keys(self, table: str) -> dict[Key, int]:
        """Live primary keys of the table -> the commit they stand in. Read-only."""
        keys, after = self._keys.setdefault(table, {}), self._keys_up_to.get(table, 0)
        for number, part in self.parts(table, after=after):
            keys.update(dict.fromkeys(self._part_keys(part), number))
        self._keys_up_to[table] = len(self.commits)
        owner = spec_of(table).owner
        if owner and any(
            commit.supersedes and any(part.table == owner for part in commit.parts)
            for commit in self.commits[after:]
        ):
            self._drop_orphans(spec_of(table), TABLES[owner], keys)
        return keys

    def _drop_orphans(self, spec: TableSpec, owner: TableSpec, keys: dict[Key, int]) -> None:
        """Take out rows that are older than the superseding row of their owner."""
        position = spec.primary_key.index(owner.primary_key[0])
        replaced = self._replaced[owner.name]
        dead = [key for key, number in keys.items() if replaced.get(key[position], 0) > number]
        for key in dead:
            del keys[key]

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The table's live rows, unsorted; every column of the schema unless some are named."""
        spec = spec_of(table)
        chosen = (
            spec.schema if columns is None else pa.schema([spec.schema.field(c) for c in columns])
        )
        parts = (self.read_part(number, part, columns) for number, part in self.parts(table))
        return pa.concat_tables([chosen.empty_table(), *parts])

    def read_part(self, number: int, part: Part, columns: Sequence[str] | None = None) -> pa.Table:
        """The live rows of one part, in their order; `number` is its commit's."""
        spec = spec_of(part.table)
        if not self._replaced.get(part.table) and not self._replaced.get(spec.owner or ""):
            return aligned(spec, self._part(part, columns), columns)
        keys = self.keys(part.table)
        stored = aligned(spec, self._part(part))
        live = [keys.get(key) == number for key in keys_in(spec, stored)]
        stored = stored.filter(pa.array(live, pa.bool_()))
        return stored if columns is None else stored.select(columns)

    def _part_keys(self, part: Part) -> list[Key]:
        spec = spec_of(part.table)
        stored = self._part(part, columns=spec.primary_key)
        return keys_in(spec, aligned(spec, stored, spec.primary_key))

    def _part(self, part: Part, columns: Sequence[str] | None = None) -> pa.Table:
        """The part under today's names; its sha256 is checked the first time a process reads it."""
        path = self.root / "tables" / part.table / part.name
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise SynthError(
                f"{path} is missing though it was committed; restore it from a copy"
            ) from None
        if part.name not in self._verified:
            if hashlib.sha256(data).hexdigest() != part.sha256:
                raise SynthError(f"{path} is not what was committed (sha256); restore it")
            self._verified.add(part.name)
        spec, earlier = spec_of(part.table), part.schema_version < SCHEMA_VERSION
        names = spec.schema.names if columns is None else columns
        there = [spec.renamed.get(name, name) if earlier else name for name in names]
        wanted = [name for name in there if name in part.columns]
        stored = pq.ParquetFile(pa.BufferReader(data)).read(columns=wanted, use_threads=False)
        return renamed(spec, stored) if earlier else stored


class KeyDigests:
    """The keys of a table in 8 bytes each, since there are millions. Says "maybe" or "no"."""

    def __init__(self) -> None:
        self.up_to = 0
        """Commit up to which the keys are in."""
        self._runs: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        """Sorted; each at least twice as long as the next, so that adding stays cheap."""

    def add(self, keys: Sequence[Key], number: int) -> None:
        self._runs.append(np.sort(_digests(keys)))
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]))
        self.up_to = number

    def any_of(self, keys: Sequence[Key]) -> bool:
        """False: none of them was added."""
        wanted = _digests(keys)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, wanted), max(0, len(run) - 1))
            if len(run) and bool(np.any(run[places] == wanted)):
                return True
        return False


class ItemCommits:
    """Which commits name an item, in 12 bytes for each time."""

    def __init__(self) -> None:
        self.up_to = 0
        """Commit up to which items are in."""
        self._runs: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        """(sorted digests, numbers); each at least twice as long as the next."""

    def add(self, items: Sequence[str], number: int) -> None:
        self._runs.append(_by_digest(_digests(items), np.full(len(items), number, np.int32)))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            (a, of_a), (b, of_b) = self._runs.pop(), self._runs.pop()
            self._runs.append(_by_digest(np.concatenate([a, b]), np.concatenate([of_a, of_b])))

    def of(self, items: Collection[str]) -> list[int]:
        """Numbers of the commits, in order."""
        wanted = np.unique(_digests(items))
        found: set[int] = set()
        for digests, numbers in self._runs:
            first = np.searchsorted(digests, wanted, "left")
            last = np.searchsorted(digests, wanted, "right")
            for start, end in zip(first[first < last], last[first < last], strict=True):
                found.update(numbers[start:end].tolist())
        return sorted(found)


def _by_digest(
    digests: "np.ndarray[Any, Any]", numbers: "np.ndarray[Any, Any]"
) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
    order = np.argsort(digests, kind="stable")
    return digests[order], numbers[order]


def _digests(keys: Collection[Key]) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """Python's own, which holds within one process."""
    return np.fromiter(map(hash, keys), dtype=np.int64, count=len(keys))


def keys_in(spec: TableSpec, stored: pa.Table) -> list[Key]:
    """Primary keys in row order: the value itself for one column, else tuples."""
    columns = [stored[name].to_pylist() for name in spec.primary_key]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def duplicates(keys: Iterable[Key], committed: Mapping[Key, int]) -> list[Key]:
    """Keys that are committed already or come twice, in order."""
    seen: set[Key] = set()
    twice = []
    for key in keys:
        if key in committed or key in seen:
            twice.append(key)
        seen.add(key)
    return twice


def _check_known(part: Part) -> None:
    """A table or column that this program does not know was written by a newer one."""
    spec = TABLES.get(part.table)
    if spec is None:
        unknown = [part.table]
    else:
        earlier = spec.renamed.values() if part.schema_version < SCHEMA_VERSION else ()
        removed = REMOVED.get(part.table, frozenset())
        unknown = sorted(set(part.columns) - {*spec.schema.names, *earlier, *removed})
    if part.schema_version > SCHEMA_VERSION:
        unknown.append(f"schema version {part.schema_version}")
    if unknown:
        raise ConfigError(
            f"the dataset is newer than the program: part {part.name} of table {part.table} has "
            f"{', '.join(unknown)}, unknown to this version; update agentic-synth"
        )
