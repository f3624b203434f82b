"""Rows of a file by its format: JSON lines, plain text in segments, Parquet."""

import json
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, BinaryIO, Protocol

import pyarrow.parquet as pq

from records.errors import ConfigError
from records.sources.stored_files import BATCH_ROWS, PAGES_BYTES, StoredFile
from synth.rephrasing.sources.rows import RowReader, text_of
from synth.rephrasing.sources.texts import BadRow, SourceRow, SourceText
from synth.rephrasing.writing.config import SourceConfig

SEGMENT_BYTES = 1 << 16
"""Plain text is read in segments of about so many bytes, each to the end of a paragraph."""

LONGEST_BYTES = 1 << 24
"""Of one text. A longer line of a file, or a paragraph, is no text."""


class FileReader(RowReader, Protocol):
    @property
    def passed(self) -> int:
        """Bytes of the file, as it is stored, that the reading under way has come past."""
        ...


def reader_of(file: StoredFile, config: SourceConfig) -> FileReader:
    match file.format:
        case ".parquet":
            return _Parquet(file, config)
        case ".jsonl":
            return _Lines(file, config)
        case _:
            return _Segments(file, config)


class _Bytes:
    """Rows whose places are bytes."""

    def __init__(self, file: StoredFile, config: SourceConfig) -> None:
        self._file, self._config = file, config
        self.reach, self.begin = file.reach, file.begin
        self._raw: BinaryIO | None = None

    @property
    def passed(self) -> int:
        return 0 if self._raw is None or self._raw.closed else self._raw.tell()

    @contextmanager
    def _opened(self, start: int) -> Iterator[BinaryIO]:
        with self._file.raw() as self._raw:
            yield self._file.unpacked(self._raw, start)


class _Lines(_Bytes):
    def rows(self, start: int) -> Iterator[tuple[int, SourceRow]]:
        offset = start
        with self._opened(start) as data:
            while line := data.readline(LONGEST_BYTES):
                size = len(line)
                name = f"{self._file.name}@{offset}"
                if size == LONGEST_BYTES and not line.endswith(b"\n"):
                    size += _passed_line(data)
                    yield offset, BadRow("too_long", name, f"a line of {size:,} bytes")
                elif line.strip():
                    yield offset, self._of_line(line, name)
                offset += size

    def _of_line(self, line: bytes, name: str) -> SourceRow:
        try:
            row = json.loads(line)
        except UnicodeDecodeError as error:
            return BadRow("not_utf8", name, f"byte {error.start} of the line: {error.reason}")
        except (ValueError, RecursionError) as error:
            return BadRow("not_json", name, f"no line of JSON: {error}")
        if not isinstance(row, dict):
            words = f"a JSON object is wanted on every line, not {type(row).__name__}"
            return BadRow("not_an_object", name, words)
        return text_of(row, self._config, name)


class _Segments(_Bytes):
    def rows(self, start: int) -> Iterator[tuple[int, SourceRow]]:
        offset = start
        with self._opened(start) as data:
            while segment := _segment(data):
                size = len(segment)
                name = f"{self._file.name}@{offset}" if offset else self._file.name
                if size >= LONGEST_BYTES:
                    size += _passed_paragraph(data)
                    yield offset, BadRow("too_long", name, f"a paragraph of {size:,} bytes")
                else:
                    yield offset, self._of_bytes(segment, name)
                offset += size

    def _of_bytes(self, segment: bytes, name: str) -> SourceRow:
        try:
            return SourceText(segment.decode(), name, self._config.language)
        except UnicodeDecodeError as error:
            words = f"byte {error.start} of {len(segment)} is no UTF-8 text: {error.reason}"
            return BadRow("not_utf8", name, words)


class _Parquet:
    """Rows whose places are their numbers; reading begins at the beginning of a row group."""

    reach = 0

    def __init__(self, file: StoredFile, config: SourceConfig) -> None:
        self._file, self._config = file, config
        self._passed = 0.0

    @property
    def passed(self) -> int:
        return int(self._passed * (self._file.size or 0))

    def begin(self, place: int) -> int:
        return self._starts[max(0, bisect_right(self._starts, place) - 1)]

    def rows(self, start: int) -> Iterator[tuple[int, SourceRow]]:
        with self._opened() as parquet:
            groups = [g for g, first in enumerate(self._starts) if first >= start]
            names, at = self._columns(parquet), start
            for batch in parquet.iter_batches(
                BATCH_ROWS, row_groups=groups, columns=names, use_threads=False
            ):
                columns = {name: _values(batch.column(name)) for name in names}
                self._passed = at / parquet.metadata.num_rows
                for values in zip(*columns.values(), strict=True):
                    yield at, self._of_row(dict(zip(names, values, strict=True)), at)
                    at += 1

    def _of_row(self, row: dict[str, Any], at: int) -> SourceRow:
        name = f"{self._file.name}:{at}"
        if row[self._config.text] is _NOT_UTF8:
            return BadRow("not_utf8", name, f"{self._config.text!r} holds bytes that are no UTF-8")
        return text_of(row, self._config, name)

    @cached_property
    def _starts(self) -> list[int]:
        """Of each row group, the number of its first row; empty groups have none of their own."""
        with self._opened() as parquet:
            starts = [0]
            for group in range(parquet.num_row_groups - 1):
                starts.append(starts[-1] + parquet.metadata.row_group(group).num_rows)
            return starts

    @contextmanager
    def _opened(self) -> Iterator[pq.ParquetFile]:
        with (
            self._file.raw() as raw,
            pq.ParquetFile(raw, buffer_size=PAGES_BYTES, pre_buffer=False) as parquet,
        ):
            yield parquet

    def _columns(self, parquet: pq.ParquetFile) -> list[str]:
        names = parquet.schema_arrow.names
        if self._config.text not in names:
            raise ConfigError(
                f"{self._file.path} has no column {self._config.text!r} (sources.text), only "
                f"{', '.join(names)}"
            )
        return [name for name in (self._config.text, "language") if name in names]


_NOT_UTF8 = object()


def _values(column: Any) -> list[Any]:
    """Of an Arrow column; `_NOT_UTF8` for strings that are none, which Parquet lets pass."""
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return _NOT_UTF8


def _segment(data: BinaryIO) -> bytes:
    """The next bytes up to the end of a paragraph behind `SEGMENT_BYTES`, or to the end; from
    `LONGEST_BYTES` on the beginning of one that is too long."""
    segment = data.read(SEGMENT_BYTES)
    while segment and len(segment) < LONGEST_BYTES:
        line = data.readline(LONGEST_BYTES)
        segment += line
        if not line or (not line.strip() and segment.endswith(b"\n")):
            break
    return segment


def _passed_line(data: BinaryIO) -> int:
    """Bytes of the rest of a line."""
    passed = 0
    while line := data.readline(LONGEST_BYTES):
        passed += len(line)
        if line.endswith(b"\n"):
            break
    return passed


def _passed_paragraph(data: BinaryIO) -> int:
    """Bytes of the rest of a paragraph."""
    passed = 0
    while line := data.readline(LONGEST_BYTES):
        passed += len(line)
        if line == b"\n" or (not line.strip() and line.endswith(b"\n")):
            break
    return passed
