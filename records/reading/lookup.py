"""Rows by their keys, for stages over more rows than memory holds.

An index says which parts hold a key; a part is read when one of its rows is asked for, and only
the parts used last are kept. Who asks for neighbours together reads each part about once.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping

import pyarrow as pa

from records.store.dataset import Dataset
from records.tables.columns import decode, spec_of
from records.tables.schemas import Row, TableSpec

KEEP = 1000
"""Rows kept in memory, as parts: those of the shards in flight, which lie side by side."""

FEWEST = 4
"""Parts that are kept however many rows they have: two shards, each across two parts."""


class RowsBy(Mapping[str, list[Row]]):
    """The rows of a table that share a value of one column, as they were committed when it was
    made; none for a value that no row has is a KeyError. Rows are shared: do not change them."""

    def __init__(self, dataset: Dataset, table: str, column: str, *, keep: int = KEEP) -> None:
        self._dataset, self._table, self._column = dataset, table, column
        self._keep, self._kept = keep, 0
        self._parts: OrderedDict[int, _Part] = OrderedDict()
        self._where: dict[str, tuple[int, ...]] = {}
        for number, values in dataset.column(table, column):
            here = (number,)  # shared by all keys of the part
            for value in dict.fromkeys(values):
                before = self._where.get(value)
                self._where[value] = here if before is None else before + here

    def __getitem__(self, key: str) -> list[Row]:
        return [row for number in self._where[key] for row in self._part(number)[key]]

    def __contains__(self, key: object) -> bool:  # the default would read the part
        return key in self._where

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)

    def _part(self, number: int) -> "_Part":
        if number in self._parts:
            self._parts.move_to_end(number)
            return self._parts[number]
        while len(self._parts) >= FEWEST and self._kept > self._keep:
            _, oldest = self._parts.popitem(last=False)
            self._kept -= oldest.stored.num_rows
        stored = self._dataset.arrow_of_commit(self._table, number)
        self._parts[number] = _Part(spec_of(self._table), stored, self._column)
        self._kept += stored.num_rows
        return self._parts[number]


class _Part:
    """The rows of one commit; each is made of its columns when it is first asked for."""

    def __init__(self, spec: TableSpec, stored: pa.Table, column: str) -> None:
        self._spec, self.stored = spec, stored
        self._places: dict[str, list[int]] = {}
        for place, value in enumerate(stored[column].to_pylist()):
            self._places.setdefault(value, []).append(place)
        self._made: dict[str, list[Row]] = {}

    def __getitem__(self, key: str) -> list[Row]:
        """Empty where a newer commit's rows have taken the place of these."""
        if key not in self._made:
            places = self._places.get(key, [])
            if places and places[-1] - places[0] < len(places):  # side by side: nothing is copied
                rows = self.stored.slice(places[0], len(places))
            else:
                rows = self.stored.take(places)
            self._made[key] = decode(self._spec, rows)
        return self._made[key]


class RowBy(Mapping[str, Row]):
    """As `RowsBy`, for a column that is the table's whole key: one row each."""

    def __init__(self, dataset: Dataset, table: str, column: str, *, keep: int = KEEP) -> None:
        self._rows = RowsBy(dataset, table, column, keep=keep)

    def __getitem__(self, key: str) -> Row:
        return self._rows[key][-1]

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
