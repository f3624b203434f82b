"""What a source of texts is."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

TextPosition = tuple[int, int]
"""Where a text lies in its source: (file, offset), bytes into lines or plain text, else a row."""


class SourceText(NamedTuple):
    text: str
    name: str
    """Where it stands, for people: a file and line, a module."""
    language: str | None = None
    """Two letters, where the source says."""
    answer: str | None = None
    """The final answer of mathematics, where it is known apart."""


class TextSource(Protocol):
    """Holds no more than a batch of its texts at a time."""

    license: str

    def texts(self) -> Iterator[tuple[TextPosition, SourceText]]:
        """All of them, in a fixed order."""
        ...

    def read(self, place: TextPosition) -> SourceText:
        """One of them. ConfigError if it is not there any more."""
        ...
