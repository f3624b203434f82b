"""Rows again by their place, from readers that go forward.

A place in a compressed file costs a reading from its beginning, so that reading anew for each text
would take quadratic time. Texts are asked for about in the order in which they lie: a reader goes
on from where it stands, what it has passed is kept for a while, and a second one serves who asks
for what lies further back.
"""

from collections import OrderedDict
from collections.abc import Generator
from typing import cast

from synth.rephrasing.sources.rows import RowReader
from synth.rephrasing.sources.texts import BadRow, SourceRow

CURSORS = 2
"""Readers of one file: those who make shards again lie behind the others."""

RECENT_CHARS = 1 << 23
"""Of the texts that are kept after they were passed."""


class _Cursor:
    def __init__(self, rows: Generator[tuple[int, SourceRow]], position: int) -> None:
        self.rows = rows
        self.position = position
        """No row that is still to come lies before it."""


class Rereader:
    """Not for several threads at once."""

    def __init__(self, reader: RowReader) -> None:
        self._reader = reader
        self._cursors: list[_Cursor] = []
        """The one that was used last stands last."""
        self._recent: OrderedDict[int, SourceRow] = OrderedDict()
        self._recent_chars = 0

    def at(self, place: int) -> SourceRow | None:
        """The row at a place; None where none begins there."""
        if place in self._recent:
            return self._recent[place]
        cursor = self._cursor_for(place)
        for at, row in cursor.rows:
            cursor.position = at + 1
            self._remember(at, row)
            if at >= place:
                return row if at == place else None
        self._cursors.remove(cursor)
        return None

    def close(self) -> None:
        while self._cursors:
            self._cursors.pop().rows.close()

    def _cursor_for(self, place: int) -> _Cursor:
        begin = self._reader.begin(place)
        least = begin - self._reader.reach
        fitting = [c for c in self._cursors if least <= c.position <= place]
        if fitting:
            cursor = max(fitting, key=lambda c: c.position)
            self._cursors.remove(cursor)
        else:
            if len(self._cursors) == CURSORS:
                self._cursors.pop(0).rows.close()
            rows = cast(Generator[tuple[int, SourceRow]], self._reader.rows(begin))
            cursor = _Cursor(rows, begin)
        self._cursors.append(cursor)
        return cursor

    def _remember(self, place: int, row: SourceRow) -> None:
        if place in self._recent:
            return
        self._recent[place] = row
        self._recent_chars += _chars(row)
        while self._recent_chars > RECENT_CHARS and len(self._recent) > 1:
            self._recent_chars -= _chars(self._recent.popitem(last=False)[1])


def _chars(row: SourceRow) -> int:
    return len(row.words) if isinstance(row, BadRow) else len(row.text)
