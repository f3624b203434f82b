"""What was exported, as the card tells it."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from synth.exports.formats.messages import Reasoning


@dataclass(frozen=True, slots=True)
class PartContents:
    """Files of one kind, as the card tells them."""

    name: str
    rows: Mapping[str, int]
    """By split."""
    pattern: str
    """Of the files of a split, which stands for `{}`."""
    columns: Mapping[str, pa.DataType]
    """Empty for lines that are no table."""
    meanings: Mapping[str, str]
    """Of columns of which this kind of file has its own."""
    typed: bool
    """Whether the files themselves say the types of their columns."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What was exported, as the card tells it."""

    name: str
    """Of the folder."""
    format: str
    title: str
    parts: tuple[PartContents, ...]
    """The first is loaded where no other is named."""
    left_out: Mapping[str, int]
    text_arguments: int
    reasoning: Reasoning
    thoughts: int
    flags_lost: int
    language: str
    snippet: str
    """Lines in this language that read the export."""
    notes: str
