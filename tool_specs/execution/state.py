"""The state of a domain: tables of rows, copy-on-write, with an incremental hash and a diff.

A table is a shared base that never changes and this episode's changes over it, so a snapshot
costs what has changed and not what there is. Rows are dicts that are replaced, never altered.
Everything observable (order, hash, next id) follows from the rows alone and not from how they
came to be: equal states answer equally.
"""

import json
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from heapq import merge
from typing import Any

from tool_specs.execution.indexes import EntityRow, IndexEntry, Indexes, Order, RowIndex, entry_of
from tool_specs.language.values import equal

StateToken = tuple[int, str]
"""(length of a key, key): sorts PT-999 before PT-1001, and is the order in which rows are read."""

RowChange = dict[str, Any]
"""{"op": create|update|delete, "entity", "id", "before", "after"}; both sides hold the changed
fields alone for an update, the whole row otherwise."""

_MODULUS = 1 << 128
_FOLD_AT = 256
"""Changes over a base that are not worth folding into a new one."""

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def row_digest(entity: str, row: EntityRow) -> int:
    """128 bits of a row. A state's hash is the sum of them, so the order of changes is nothing."""
    text = f"{entity}\x1f{_encode(row)}"
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest())


def token_of(key: str) -> StateToken:
    return len(key), key


class Base:
    """Rows that many environments share. Indexes are built when first asked for and then shared
    too."""

    __slots__ = ("_indexes", "order", "rows")

    def __init__(self, rows: Mapping[str, EntityRow]) -> None:
        self.rows = dict(rows)
        self.order = sorted(map(token_of, self.rows))
        self._indexes = Indexes()

    def index(self, fields: tuple[str, ...], order: Order) -> RowIndex:
        index = self._indexes.find(fields, order)
        if index is None:
            index = RowIndex.of(self.rows.items(), fields, order)
            self._indexes.keep(index)
        return index


class Table:
    """One entity's rows: a base, and what this environment changed (None marks a deleted row)."""

    __slots__ = ("_indexes", "_order", "_shared", "base", "changed")

    def __init__(self, base: Base) -> None:
        self.base = base
        self.changed: dict[str, EntityRow | None] = {}
        self._order: list[StateToken] = []
        self._indexes = Indexes()
        self._shared = False

    def get(self, key: str) -> EntityRow | None:
        if key in self.changed:
            return self.changed[key]
        return self.base.rows.get(key)

    def put(self, key: str, row: EntityRow | None) -> None:
        """Set or, with None, delete. O(log changes) and the memory move of a list insert."""
        if self._shared:
            self.changed, self._order = dict(self.changed), list(self._order)
            self._indexes, self._shared = Indexes(), False
        token, old = token_of(key), self.changed.get(key)
        if old is None and row is not None:
            insort(self._order, token)
        elif old is not None and row is None:
            _remove(self._order, token)
        for index in self._indexes.kept.values():
            _reindex(index, key, old, row)
        if row is None and key not in self.base.rows:
            self.changed.pop(key, None)
        else:
            self.changed[key] = row

    def snapshot(self) -> "Table":
        """A table that changes on its own from here. Folds many changes into a new base first."""
        if len(self.changed) > max(_FOLD_AT, len(self.base.rows)):
            self.base = Base(dict(self._merged(self.base.order, self._order)))
            self.changed, self._order, self._indexes = {}, [], Indexes()
        copy = Table(self.base)
        copy.changed, copy._order, copy._indexes = self.changed, self._order, self._indexes
        copy._shared = self._shared = True
        return copy

    def rows(self) -> Iterator[EntityRow]:
        """All rows in order."""
        return (row for _, row in self._merged(self.base.order, self._order))

    def matching(self, wanted: Mapping[str, Any], order: Order = ()) -> Iterator[EntityRow]:
        """Rows whose fields are the wanted values, or whose list fields hold them, in the given
        order; by index."""
        if not wanted and not order:
            return self.rows()
        fields = tuple(sorted(wanted))
        values = tuple(wanted[field] for field in fields)
        found = self.base.index(fields, order).lists.get(values, [])
        own = self._index(fields, order).lists.get(values, []) if self.changed else []
        return (row for _, row in self._merged(found, own))

    def _index(self, fields: tuple[str, ...], order: Order) -> RowIndex:
        """Of the changed rows alone."""
        index = self._indexes.find(fields, order)
        if index is None:
            kept = ((key, row) for key, row in self.changed.items() if row is not None)
            index = RowIndex.of(kept, fields, order)
            self._indexes.keep(index)
        return index

    def _merged(
        self, of_base: Sequence[IndexEntry], own: Sequence[IndexEntry]
    ) -> Iterator[tuple[str, EntityRow]]:
        """Lazy, so that a reader who stops after a page pays for a page."""
        rows, changed = self.base.rows, self.changed
        if not changed:
            return ((entry[-1], rows[entry[-1]]) for entry in of_base)
        entries = (entry for entry in of_base if entry[-1] not in changed)
        keys = (entry[-1] for entry in (merge(entries, own) if own else entries))
        return ((key, rows[key] if (row := changed.get(key)) is None else row) for key in keys)

    def last_number(self, prefix: str) -> int:
        """The largest number among keys of the form prefix + number, 0 without any."""
        largest = 0
        for order in (self.base.order, self._order):
            for _, key in reversed(order):
                number = key.removeprefix(prefix)
                if key.startswith(prefix) and number.isdecimal() and self.get(key) is not None:
                    largest = max(largest, int(number))
                    break
        return largest


def _remove(entries: list[Any], entry: Any) -> None:
    del entries[bisect_left(entries, entry)]


def _reindex(index: RowIndex, key: str, old: EntityRow | None, new: EntityRow | None) -> None:
    if old is not None:
        entry = entry_of(key, old, index.order)
        for values in index.values_of(old):
            _remove(index.lists[values], entry)
    if new is not None:
        entry = entry_of(key, new, index.order)
        for values in index.values_of(new):
            insort(index.lists.setdefault(values, []), entry)


class State:
    """Tables by entity and the clock, with the log of the call that is under way.

    `put` takes effect at once; `commit` gives the net changes since the last commit and moves the
    hash; `rollback` undoes them.
    """

    __slots__ = ("_before", "now", "start", "tables", "total")

    def __init__(self, tables: dict[str, Table], total: int, start: str, now: str) -> None:
        self.tables = tables
        self.total = total
        self.now = now
        """What now() returns."""
        self.start = start
        """What it returned in the seed."""
        self._before: dict[tuple[str, str], EntityRow | None] = {}

    @classmethod
    def of(cls, rows: Mapping[str, Mapping[str, EntityRow]], now: str = "") -> "State":
        """{entity: {key: row}}, and the clock; linear, so build once and take snapshots."""
        tables = {entity: Table(Base(table)) for entity, table in rows.items()}
        state = cls(tables, 0, now, now)
        state.total = state.total_from_scratch()
        return state

    @property
    def hash(self) -> str:
        """Over all rows, and over the clock once it has moved."""
        if self.now == self.start:
            return f"{self.total:032x}"
        clock = row_digest("\x1fclock", {"now": self.now})
        return f"{(self.total + clock) % _MODULUS:032x}"

    def total_from_scratch(self) -> int:
        """What `total` must equal: the sum over every row, for tests and new states."""
        tables = self.tables.items()
        return sum(row_digest(name, row) for name, t in tables for row in t.rows()) % _MODULUS

    def get(self, entity: str, key: str) -> EntityRow | None:
        return self.tables[entity].get(key)

    def put(self, entity: str, key: str, row: EntityRow | None) -> None:
        table = self.tables[entity]
        if (entity, key) not in self._before:
            self._before[entity, key] = table.get(key)
        table.put(key, row)

    def deleted(self) -> list[tuple[str, str]]:
        """(entity, key) of rows that were there at the last commit and are not now."""
        return [
            (entity, key)
            for (entity, key), before in self._before.items()
            if before is not None and self.get(entity, key) is None
        ]

    def commit(self) -> list[RowChange]:
        """Net changes, in the order in which rows were first touched; none for no difference."""
        changes: list[RowChange] = []
        for (entity, key), before in self._before.items():
            after = self.get(entity, key)
            if before is after:
                continue
            removed = 0 if before is None else row_digest(entity, before)
            added = 0 if after is None else row_digest(entity, after)
            if removed == added:
                continue
            self.total += added - removed
            changes.append(_change(entity, key, before, after))
        self.total %= _MODULUS
        self._before.clear()
        return changes

    def rollback(self) -> None:
        for (entity, key), before in self._before.items():
            self.tables[entity].put(key, before)
        self._before.clear()

    def snapshot(self) -> "State":
        """A state of its own, at the cost of the number of entities."""
        tables = {name: table.snapshot() for name, table in self.tables.items()}
        return State(tables, self.total, self.start, self.now)


def _change(entity: str, key: str, before: EntityRow | None, after: EntityRow | None) -> RowChange:
    op = "update" if before and after else "create" if after else "delete"
    if before and after:
        names = [name for name in after if not equal(before[name], after[name])]
        before, after = {n: before[n] for n in names}, {n: after[n] for n in names}
    return {"op": op, "entity": entity, "id": key, "before": before, "after": after}
