"""Indexes of a table's rows: by the values of some fields, each list in the order of others."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

EntityRow = dict[str, Any]

Order = tuple[tuple[str, bool], ...]
"""(field, descending), the most important first; ties, and no order at all, go by key."""

IndexEntry = tuple[Any, ...]
"""What the order compares, then (length of the key, key): PT-999 stands before PT-1001."""

MOST_INDEXES = 32
"""Of one table that are kept, the latest used: a hundred tools ask for hundreds, each as large as
the table."""


class Down:
    """A text that sorts the other way round."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __lt__(self, other: "Down") -> bool:
        return other.text < self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Down) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def entry_of(key: str, row: EntityRow, order: Order) -> IndexEntry:
    return (*(_compared(row[field], down) for field, down in order), len(key), key)


def _compared(value: Any, down: bool) -> tuple[bool, Any]:
    """Nulls last either way."""
    if value is None or not down:
        return value is None, value
    return False, Down(value) if isinstance(value, str) else -value


class RowIndex:
    """Entries of rows, sorted, by what `fields` hold; a row stands under each element of a list."""

    __slots__ = ("fields", "lists", "order")

    def __init__(self, fields: tuple[str, ...], order: Order) -> None:
        self.fields, self.order = fields, order
        self.lists: dict[tuple[Any, ...], list[IndexEntry]] = {}

    @classmethod
    def of(
        cls, rows: Iterable[tuple[str, EntityRow]], fields: tuple[str, ...], order: Order
    ) -> "RowIndex":
        index = cls(fields, order)
        for key, row in rows:
            entry = entry_of(key, row, order)
            for values in index.values_of(row):
                index.lists.setdefault(values, []).append(entry)
        for entries in index.lists.values():
            entries.sort()
        return index

    def values_of(self, row: EntityRow) -> Iterator[tuple[Any, ...]]:
        held = [row[field] for field in self.fields]
        return product(*(dict.fromkeys(v) if isinstance(v, list) else (v,) for v in held))


class Indexes:
    """The indexes of one table, by (fields, order)."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: dict[tuple[tuple[str, ...], Order], RowIndex] = {}

    def find(self, fields: tuple[str, ...], order: Order) -> RowIndex | None:
        index = self.kept.pop((fields, order), None)
        if index is not None:
            self.kept[fields, order] = index  # the latest used stands last
        return index

    def keep(self, index: RowIndex) -> None:
        self.kept[index.fields, index.order] = index
        if len(self.kept) > MOST_INDEXES:
            del self.kept[next(iter(self.kept))]
