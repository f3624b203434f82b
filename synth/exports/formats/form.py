"""What a format of exports is: its files, their columns, and what becomes of a stored row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from records.chat.declarations import Style
from records.tables.schemas import Row
from synth.exports.formats.messages import Arguments, Reasoning

FileType = Literal["parquet", "jsonl"]

ExportSource = Literal["conversations", "tasks", "pairs", "attempts"]
"""What a row of a part is made of: an exported conversation; the first one of each task; a
preference pair; an exported conversation or one that the agent failed."""


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """What a user may ask of a format beside its name."""

    reasoning: Reasoning = "none"
    declarations: Style = "json"
    arguments: Arguments = "object"


class LeftOutError(Exception):
    """A stored row that a format cannot hold; its words are the reason that is counted."""


RowMaker = Callable[[Row, FormatOptions], Row]
"""Of a stored row, whose `messages` are a list with thoughts as asked for and whose `tools` are the
stored text, the row of a file. A value of a JSON column is a Python value, or JSON text."""


@dataclass(frozen=True, slots=True)
class ExportPart:
    """Files of one kind in an export: what the Hub calls a configuration of a data set."""

    name: str
    source: ExportSource
    columns: Mapping[str, pa.DataType]
    """In order; empty for lines that are no table."""
    row: RowMaker
    meanings: Mapping[str, str]
    """Of columns that are not in `columns.MEANINGS`."""

    def pattern(self, file_type: FileType) -> str:
        """Of the files of a split, which stands for `{}`."""
        first = self.name == "default"
        if file_type == "parquet":
            return "data/{}-*" if first else self.name + "/{}-*"
        return "{}.jsonl" if first else self.name + "/{}.jsonl"


@dataclass(frozen=True, slots=True)
class WrittenExport:
    """What an export has written when its further files are made."""

    name: str
    """Of the folder."""
    splits: tuple[str, ...]
    """Of the first part."""
    pattern: str
    """Of the first part's files."""
    file_type: FileType

    def files(self, split: str) -> str:
        return self.pattern.format(split)


@dataclass(frozen=True, slots=True)
class ExportFormat:
    name: str
    title: str
    """What it is, in one sentence for the card and the help."""
    file_types: tuple[FileType, ...]
    """Allowed ones; the first is the default."""
    parts: tuple[ExportPart, ...]
    """The first is called default."""
    load: Callable[[WrittenExport], tuple[str, str]]
    """Language and lines of a program, or of a configuration, that reads the export."""
    reasoning: tuple[Reasoning, ...] = ("none", "field", "think")
    why_no_reasoning: str = ""
    """Where not every way is allowed: why, and what to do."""
    arguments: tuple[Arguments, ...] = ()
    """Of calls, where they are values of their own; empty where the format has one way."""
    keeps_flags: bool = True
    """Whether it can say that an assistant's message carries no loss."""
    marks: tuple[str, ...] = ()
    """Columns of `marks.csv`, for lines that take no key of ours: a line a row, in order."""
    beside: Callable[[WrittenExport], Mapping[str, str]] = lambda _: {}
    """Further files by name."""
    notes: str = ""
    """For the card, in markdown: what a reader has to know of the files."""


def chosen_columns(row: Row, columns: Mapping[str, pa.DataType], **made: Any) -> Row:
    """The row of a file: what was made for it, the rest as it is stored."""
    return {name: made[name] if name in made else row[name] for name in columns}
