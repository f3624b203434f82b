"""What a source of texts is."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol, get_args

TextPosition = tuple[int, int]
"""Where a text lies in its source: (file, offset), bytes into lines or plain text as they are once
decompressed, else a row."""

BadRowReason = Literal[
    "no_text_column",
    "null_text",
    "text_is_no_string",
    "not_json",
    "not_an_object",
    "not_utf8",
    "too_long",
]

BAD_ROW_REASONS: tuple[str, ...] = get_args(BadRowReason)


class SourceText(NamedTuple):
    text: str
    name: str
    """Where it stands, for people: a file and line, a module."""
    language: str | None = None
    """Two letters, where the source says."""
    answer: str | None = None
    """The final answer of mathematics, where it is known apart."""


class BadRow(NamedTuple):
    """A row of a source that holds no text which can be used."""

    reason: BadRowReason
    name: str
    """Where it stands, as a text's."""
    words: str
    """What is wrong with it."""


SourceRow = SourceText | BadRow


class TextSource(Protocol):
    """Holds no more than a batch of its texts at a time."""

    license: str

    def texts(self) -> Iterator[tuple[TextPosition, SourceRow]]:
        """All of them, in a fixed order, with the rows that are none. ConfigError for a source that
        cannot be read, or of which most rows are bad."""
        ...

    def bytes_read(self) -> tuple[int, int] | None:
        """How many stored bytes `texts` has come past, and how many there are; None if unknown."""
        ...

    def read(self, place: TextPosition) -> SourceText:
        """One of them. ConfigError if it is not there any more; TransientError where it lies
        elsewhere and cannot be reached."""
        ...
