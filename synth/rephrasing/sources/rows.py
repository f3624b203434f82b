"""Rows of a source: the text in one, why there is none, and when there are too few."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from records.errors import ConfigError
from synth.rephrasing.sources.texts import BadRow, SourceRow, SourceText
from synth.rephrasing.writing.config import SourceConfig

FIRST_ROWS = 1000
"""Rows of a file that say whether it is what the settings take it for."""

FEWEST_BAD = 20
"""Bad rows that stop a run at least: a small file with a broken line is no wrong file."""

MOST_BAD = 0.5
"""Share of the first rows that may be bad."""


_LANGUAGE = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9_-]+)?")
"""A code, of which a region or a script is left away; a name such as "English" is none."""


class RowReader(Protocol):
    """The rows of one file, or of one data set, from any place on."""

    reach: int
    """How far before a place it is cheaper to read on than to begin again."""

    def begin(self, place: int) -> int:
        """The last place at or before this one from which reading can begin."""
        ...

    def rows(self, start: int) -> Iterator[tuple[int, SourceRow]]:
        """Each row with its place, from one that `begin` gave, in order."""
        ...


def text_of(row: Mapping[str, Any], config: SourceConfig, name: str) -> SourceRow:
    """The text of a table's row, or of a JSON object."""
    if config.text not in row:
        there = ", ".join(map(str, row))
        words = f"there is no {config.text!r} (sources.text), only {there}"
        return BadRow("no_text_column", name, words)
    text = row[config.text]
    if text is None:
        return BadRow("null_text", name, f"{config.text!r} (sources.text) is null")
    if not isinstance(text, str):
        words = f"{config.text!r} (sources.text) is {type(text).__name__}, no text"
        return BadRow("text_is_no_string", name, words)
    language = row.get("language")
    told = _LANGUAGE.fullmatch(language.lower()) if isinstance(language, str) else None
    try:
        text.encode()
    except UnicodeEncodeError as error:  # JSON can write half a character, and UTF-8 cannot
        return BadRow("not_utf8", name, f"half a character is no text: {error.reason}")
    return SourceText(text, name, told[1] if told else config.language)


class RowTally:
    """Counts the rows of one file. ConfigError once it is clear that the file is something else
    than the settings say."""

    def __init__(self, where: str, wanted: str) -> None:
        self._where, self._wanted = where, wanted
        self._rows = 0
        self._bad: Counter[str] = Counter()
        self._example: dict[str, BadRow] = {}

    def add(self, row: SourceRow) -> None:
        self._rows += 1
        if isinstance(row, BadRow):
            self._bad[row.reason] += 1
            self._example.setdefault(row.reason, row)
            if self._bad.total() > MOST_BAD * FIRST_ROWS and self._rows <= FIRST_ROWS:
                self._refuse()

    def end(self) -> None:
        """After the last row of the file."""
        bad = self._bad.total()
        if bad >= FEWEST_BAD and self._rows <= FIRST_ROWS and bad > MOST_BAD * self._rows:
            self._refuse()

    def end_of_source(self) -> None:
        """After the last row of a whole source, of which one at least should be a text."""
        if self._rows and self._rows == self._bad.total():
            self._refuse()

    def _refuse(self) -> None:
        [(worst, number)] = self._bad.most_common(1)
        row = self._example[worst]
        raise ConfigError(
            f"{self._where}: {self._bad.total()} of the first {self._rows} rows hold no text; "
            f"wanted is {self._wanted}; {number} of them are {worst}, as {row.name}: {row.words}"
        )
