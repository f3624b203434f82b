"""Rows by their keys, for stages over more rows than memory holds.

An index says which parts hold a key; a part is read when one of its rows is asked for, and only
the parts used last are kept. Who asks for neighbours together reads each part about once.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from records.schemas import Row

if TYPE_CHECKING:
    from records.store import Dataset

KEEP = 1000
"""Rows kept in memory, as parts: those of the shards in flight, which lie side by side."""

FEWEST = 4
"""Parts that are kept however many rows they have: two shards, each across two parts."""


class RowsBy(Mapping[str, list[Row]]):
    """The rows of a table that share a value of one column, as they were committed when it was
    made; none for a value that no row has is a KeyError. Rows are shared: do not change them."""

    def __init__(self, dataset: "Dataset", table: str, column: str, *, keep: int = KEEP) -> None:
        self._dataset, self._table, self._column = dataset, table, column
        self._keep, self._kept = keep, 0
        self._parts: OrderedDict[int, dict[str, list[Row]]] = OrderedDict()
        self._where: dict[str, tuple[int, ...]] = {}
        for number, values in dataset.column(table, column):
            here = (number,)  # shared by all keys of the part
            for value in dict.fromkeys(values):
                before = self._where.get(value)
                self._where[value] = here if before is None else before + here

    def __getitem__(self, key: str) -> list[Row]:
        return [row for number in self._where[key] for row in self._part(number).get(key, ())]

    def __contains__(self, key: object) -> bool:  # the default would read the part
        return key in self._where

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)

    def _part(self, number: int) -> dict[str, list[Row]]:
        if number in self._parts:
            self._parts.move_to_end(number)
            return self._parts[number]
        while len(self._parts) >= FEWEST and self._kept > self._keep:
            _, oldest = self._parts.popitem(last=False)
            self._kept -= sum(map(len, oldest.values()))
        rows: dict[str, list[Row]] = {}
        for row in self._dataset.rows_of_commit(self._table, number):
            rows.setdefault(row[self._column], []).append(row)
            self._kept += 1
        self._parts[number] = rows
        return rows


class RowBy(Mapping[str, Row]):
    """As `RowsBy`, for a column that is the table's whole key: one row each."""

    def __init__(self, dataset: "Dataset", table: str, column: str, *, keep: int = KEEP) -> None:
        self._rows = RowsBy(dataset, table, column, keep=keep)

    def __getitem__(self, key: str) -> Row:
        return self._rows[key][-1]

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
