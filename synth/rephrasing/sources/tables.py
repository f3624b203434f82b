"""Texts of a data set that the package `datasets` reads: saved on disk, or by name on the hub."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from records.errors import ConfigError, ItemError, TransientError
from records.sources.data_sets import can_be_named, open_data_set, unreadable
from synth.rephrasing.sources.rereading import Rereader
from synth.rephrasing.sources.rows import RowTally, text_of
from synth.rephrasing.sources.texts import BadRow, SourceRow, SourceText, TextPosition
from synth.rephrasing.writing.config import SourceConfig

BATCH_ROWS = 256


class DataSet:
    """Of one that was saved the rows lie in Arrow files that are mapped, so reading one by number
    is cheap; any other is streamed, and nothing of it is stored here."""

    def __init__(self, config: SourceConfig) -> None:
        """ConfigError for what is neither a folder nor a name on the hub."""
        if not can_be_named(config.path):
            raise ConfigError(
                f"sources.path = {config.path!r} is neither a folder nor a name on the Hugging "
                "Face hub, such as owner/name"
            )
        self.license = config.license
        self._config = config
        self._opened: _SavedRows | _StreamedRows | None = None
        self._rereader: Rereader | None = None
        self._reading = Lock()

    def texts(self) -> Iterator[tuple[TextPosition, SourceRow]]:
        check = RowTally(self._config.path, f"text under {self._config.text!r} (sources.text)")
        try:
            for number, row in self._reader().rows(0):
                check.add(row)
                yield (0, number), row
        except ConfigError:
            raise
        except Exception as error:  # the package raises whatever its readers do
            raise self._unreadable(error) from error
        check.end_of_source()

    def bytes_read(self) -> None:
        """The package does not say."""

    def read(self, place: TextPosition) -> SourceText:
        with self._reading:
            try:
                if self._rereader is None:
                    self._rereader = Rereader(self._reader())
                row = self._rereader.at(place[1])
            except ConfigError:
                raise
            except Exception as error:
                self._rereader = None  # its readers have ended with the error
                unreadable = self._unreadable(error)
                if isinstance(self._opened, _StreamedRows):
                    raise TransientError(str(unreadable)) from error
                raise unreadable from error
        if row is None:
            raise ConfigError(f"{self._config.path} has fewer rows than when the run was planned")
        if isinstance(row, BadRow):
            raise ItemError("source_changed", f"{row.name} changed since the run was planned")
        return row

    def _reader(self) -> "_SavedRows | _StreamedRows":
        if self._opened is None:
            rows = self._load()
            names = rows.column_names
            if names is not None and self._config.text not in names:
                raise ConfigError(
                    f"{self._config.path} has no column {self._config.text!r} (sources.text), only "
                    f"{', '.join(names)}"
                )
            kind = _SavedRows if hasattr(rows, "__len__") else _StreamedRows
            self._opened = kind(rows, self._config)
        return self._opened

    def _load(self) -> Any:
        config = self._config
        return open_data_set(
            config.path, config=config.config, split=config.split, setting="sources"
        )

    def _unreadable(self, error: Exception) -> ConfigError:
        return unreadable(self._config.path, error, setting="sources")


class _Rows:
    """Rows whose places are their numbers."""

    def __init__(self, rows: Any, config: SourceConfig) -> None:
        self._rows, self._config = rows, config

    def _text(self, row: Mapping[str, Any], number: int) -> SourceRow:
        return text_of(row, self._config, f"{Path(self._config.path).name}:{number}")


class _SavedRows(_Rows):
    reach = 0

    def begin(self, place: int) -> int:
        return place

    def rows(self, start: int) -> Iterator[tuple[int, SourceRow]]:
        wanted = [n for n in (self._config.text, "language") if n in self._rows.column_names]
        rows = self._rows.select_columns(wanted)
        for first in range(start, len(rows), BATCH_ROWS):
            batch = rows[first : first + BATCH_ROWS]
            for number, values in enumerate(zip(*batch.values(), strict=True), first):
                yield number, self._text(dict(zip(batch, values, strict=True)), number)


class _StreamedRows(_Rows):
    reach = 0

    def begin(self, place: int) -> int:
        """A stream has one beginning."""
        return 0

    def rows(self, start: int) -> Iterator[tuple[int, SourceRow]]:
        for number, row in enumerate(self._rows):
            yield number, self._text(row, number)
