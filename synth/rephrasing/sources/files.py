"""Texts in files: Parquet, JSON lines, plain text, or a folder of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from records.errors import ConfigError
from synth.rephrasing.sources.texts import SourceText, TextPosition
from synth.rephrasing.writing.config import SourceConfig

SUFFIXES = (".parquet", ".jsonl", ".txt", ".md")

BATCH_ROWS = 256

SEGMENT_BYTES = 1 << 16
"""Plain text is read in segments of about so many bytes, each to the end of a paragraph."""

LONGEST_BYTES = 1 << 24
"""Of one text. A longer line of a file, or a paragraph, is an error: it is no text."""


class Files:
    def __init__(self, config: SourceConfig) -> None:
        """ConfigError for a folder without a file that can be read."""
        self.license = config.license
        self._config = config
        root = Path(config.path)
        if root.is_file() and root.suffix in SUFFIXES:
            self._files = [root]
        else:
            found = root.rglob("*") if root.is_dir() else ()
            self._files = sorted(p for p in found if p.is_file() and p.suffix in SUFFIXES)
        if not self._files:
            raise ConfigError(f"sources.path = {config.path!r} holds no {', '.join(SUFFIXES)} file")
        self._group: tuple[int, int, list[dict[str, Any]]] | None = None
        """The row group that was read last: file, first row, rows."""
        self._groups: dict[int, list[int]] = {}
        """By Parquet file the number of the first row of each group, and of the end."""

    def texts(self) -> Iterator[tuple[TextPosition, SourceText]]:
        for number, file in enumerate(self._files):
            try:
                match file.suffix:
                    case ".parquet":
                        yield from self._rows(number)
                    case ".jsonl":
                        yield from self._lines(number)
                    case _:
                        yield from self._segments(number)
            except (pa.ArrowException, OSError) as error:
                raise ConfigError(f"{file} cannot be read: {error}") from error

    def read(self, place: TextPosition) -> SourceText:
        number, offset = place
        file = self._files[number] if number < len(self._files) else None
        if file is None:
            raise ConfigError(f"{self._config.path} has fewer files than when the run was planned")
        try:
            if file.suffix == ".parquet":
                return self._row(number, offset)
            with file.open("rb") as data:
                data.seek(offset)
                if file.suffix == ".jsonl":
                    return self._of_line(file, offset, data.readline(LONGEST_BYTES))
                return self._of_bytes(file, offset, _segment(data))
        except (pa.ArrowException, OSError) as error:
            raise ConfigError(f"{file} cannot be read: {error}") from error

    def _lines(self, number: int) -> Iterator[tuple[TextPosition, SourceText]]:
        file, offset = self._files[number], 0
        with file.open("rb") as data:
            while line := data.readline(LONGEST_BYTES):
                if line.strip():
                    yield (number, offset), self._of_line(file, offset, line)
                offset += len(line)

    def _of_line(self, file: Path, offset: int, line: bytes) -> SourceText:
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ConfigError(f"{file}, byte {offset}: no line of JSON: {error}") from error
        if not isinstance(row, dict):
            raise ConfigError(f"{file}, byte {offset}: a JSON object is wanted on every line")
        return self._text(row, f"{file.name}@{offset}")

    def _segments(self, number: int) -> Iterator[tuple[TextPosition, SourceText]]:
        file, offset = self._files[number], 0
        with file.open("rb") as data:
            while segment := _segment(data):
                yield (number, offset), self._of_bytes(file, offset, segment)
                offset += len(segment)

    def _of_bytes(self, file: Path, offset: int, data: bytes) -> SourceText:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"{file} is not UTF-8 text: {error}") from error
        return SourceText(
            text, f"{file.name}@{offset}" if offset else file.name, self._config.language
        )

    def _rows(self, number: int) -> Iterator[tuple[TextPosition, SourceText]]:
        file, at = self._files[number], 0
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(BATCH_ROWS, columns=self._columns(file, parquet)):
                for row in batch.to_pylist():
                    yield (number, at), self._text(row, f"{file.name}:{at}")
                    at += 1

    def _row(self, number: int, at: int) -> SourceText:
        """By its row group, of which the last is kept: neighbours are asked for together."""
        file, kept = self._files[number], self._group
        if kept is None or kept[0] != number or not kept[1] <= at < kept[1] + len(kept[2]):
            with pq.ParquetFile(file) as parquet:
                starts = self._starts(number, parquet)
                group = max(g for g, start in enumerate(starts) if start <= at)
                if at >= starts[-1]:
                    raise ConfigError(f"{file} has fewer rows than when the run was planned")
                rows = parquet.read_row_group(group, columns=self._columns(file, parquet))
                kept = self._group = number, starts[group], rows.to_pylist()
        return self._text(kept[2][at - kept[1]], f"{file.name}:{at}")

    def _starts(self, number: int, parquet: pq.ParquetFile) -> list[int]:
        if number not in self._groups:
            starts = [0]
            for group in range(parquet.num_row_groups):
                starts.append(starts[-1] + parquet.metadata.row_group(group).num_rows)
            self._groups[number] = starts
        return self._groups[number]

    def _columns(self, file: Path, parquet: pq.ParquetFile) -> list[str]:
        names = parquet.schema_arrow.names
        if self._config.text not in names:
            raise ConfigError(
                f"{file} has no column {self._config.text!r} (sources.text), only "
                f"{', '.join(names)}"
            )
        return [name for name in (self._config.text, "language") if name in names]

    def _text(self, row: dict[str, Any], name: str) -> SourceText:
        text = row.get(self._config.text)
        if not isinstance(text, str):
            raise ConfigError(
                f"{name}: {self._config.text!r} (sources.text) is {type(text).__name__}, no text; "
                f"there are {', '.join(map(str, row))}"
            )
        language = row.get("language")
        known = language if isinstance(language, str) and language else self._config.language
        return SourceText(text, name, known)


def _segment(data: Any) -> bytes:
    """The next bytes up to the end of a paragraph behind `SEGMENT_BYTES`, or to the end."""
    segment = data.read(SEGMENT_BYTES)
    while segment and len(segment) < LONGEST_BYTES:
        line = data.readline(LONGEST_BYTES)
        segment += line
        if not line or (not line.strip() and segment.endswith(b"\n")):
            break
    return segment
