"""Texts in files: one file, those of a folder, of a pattern or at an address."""

from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock

from records.errors import ConfigError, ItemError, TransientError
from records.sources.stored_files import stored_files
from synth.rephrasing.sources.formats import FileReader, reader_of
from synth.rephrasing.sources.rereading import Rereader
from synth.rephrasing.sources.rows import RowTally
from synth.rephrasing.sources.texts import BadRow, SourceRow, SourceText, TextPosition
from synth.rephrasing.writing.config import SourceConfig

OPEN_FILES = 4
"""Kept open to read texts again."""


class Files:
    def __init__(self, config: SourceConfig) -> None:
        """ConfigError where there is no file that can be read."""
        self.license = config.license
        self._config = config
        self._files = stored_files(config.path)
        self._rereaders: OrderedDict[int, Rereader] = OrderedDict()
        self._reading = Lock()
        self._number = 0
        self._reader: FileReader | None = None
        """The file that `texts` has come to, and who reads it."""

    def bytes_read(self) -> tuple[int, int] | None:
        """As `TextSource.bytes_read`; of files on this machine."""
        sizes = [file.size for file in self._files]
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes):
            return None
        passed = self._reader.passed if self._reader is not None else 0
        return sum(known[: self._number]) + passed, sum(known)

    def texts(self) -> Iterator[tuple[TextPosition, SourceRow]]:
        wanted = f"text under {self._config.text!r} (sources.text)"
        of_all = RowTally(self._config.path, wanted)
        for number, file in enumerate(self._files):
            is_text = file.format in (".txt", ".md")
            check = RowTally(file.path, "UTF-8 text" if is_text else wanted)
            self._number, self._reader = number, reader_of(file, self._config)
            try:
                for place, row in self._reader.rows(0):
                    check.add(row)
                    of_all.add(row)
                    yield (number, place), row
            except ConfigError:
                raise
            except Exception as error:  # Arrow's, the system's, those of who reads elsewhere
                raise ConfigError(f"{file.path} cannot be read: {error}") from error
            check.end()
        self._number, self._reader = len(self._files), None
        of_all.end_of_source()

    def read(self, place: TextPosition) -> SourceText:
        number, offset = place
        if number >= len(self._files):
            raise ConfigError(f"{self._config.path} has fewer files than when the run was planned")
        file = self._files[number]
        try:
            with self._reading:
                row = self._rereader(number).at(offset)
        except ConfigError:
            raise
        except Exception as error:
            with self._reading:
                if number in self._rereaders:
                    self._rereaders.pop(number).close()
            kind = ConfigError if file.system is None else TransientError
            raise kind(f"{file.path} cannot be read: {error}") from error
        if row is None:
            raise ConfigError(
                f"{file.path} has changed since the run was planned: no text begins at {offset}"
            )
        if isinstance(row, BadRow):
            raise ItemError("source_changed", f"{row.name} changed since the run was planned")
        return row

    def _rereader(self, number: int) -> Rereader:
        if number not in self._rereaders:
            if len(self._rereaders) == OPEN_FILES:
                self._rereaders.popitem(last=False)[1].close()
            reader = reader_of(self._files[number], self._config)
            self._rereaders[number] = Rereader(reader)
        self._rereaders.move_to_end(number)
        return self._rereaders[number]
