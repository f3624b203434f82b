"""The rows of a file that somebody else made: JSON lines, JSON or Parquet, plain or compressed.

A row that cannot be read is told with its place and costs the others nothing.
"""

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, Literal, NamedTuple, NoReturn, cast

import pyarrow.parquet as pq

from records.errors import ConfigError, ItemError
from records.sources.stored_files import StoredFile, exists, is_remote, stored_files
from synth.importing.json_stream import (
    LONGEST_BYTES,
    JsonPart,
    JsonScanner,
    list_of_member,
    object_in,
    parts_of_list,
)

FORMATS = (".parquet", ".jsonl", ".json")

BATCH_ROWS = 16
"""Of Parquet, read together; conversations are large."""

PAGES_BYTES = 1 << 20
"""Of a column of Parquet, read ahead."""

WHOLE = "the file"
"""Place of what is wrong with a file before its first row."""

SIMULATIONS = "simulations"
"""Member of a results file of tau2-bench that lists the conversations."""

ABOUT_SIMULATIONS = "info"
"""Member beside it that says what holds of every conversation."""

SHOWN_BEFORE, SHOWN_AFTER = 10, 30
"""Characters around a place where JSON ends to be any, in words about it."""


class ReadRow(NamedTuple):
    place: str
    """For people, from 1, and another one for each row of the file: `line 7`, `row 7` of Parquet,
    `row 7, line 90` of a list."""
    value: Mapping[str, Any] | ItemError
    """The row, or why it cannot be read."""


class ReadFile(NamedTuple):
    path: str
    """With a mark in the place of each byte that is no text."""
    about: Mapping[str, Any] | None
    """Of a results file of tau2-bench what it says of all its rows; None for any other file."""
    rows: Iterator[ReadRow]
    share_read: Callable[[], float | None]
    """Of the stored bytes; None where nobody knows how many there are."""


def files_at(path: str) -> list[StoredFile]:
    """ConfigError where there is none of a kind that is read."""
    if not path.strip() or not (is_remote(path) or exists(path)):
        raise ConfigError(f"FILE = {path!r}: there is no such file or folder, nor any by a pattern")
    return stored_files(path, setting="FILE", formats=FORMATS)


@contextmanager
def opened(file: StoredFile) -> Iterator[ReadFile]:
    """The file's rows, to be read once, in order. Of a file that cannot be opened, or that breaks
    off, the last row says so."""
    path = os.fsencode(file.path).decode(errors="replace")
    with ExitStack() as opening:
        try:
            about = None if file.format == ".parquet" else _about(file)
            raw, size = opening.enter_context(file.raw()), file.size
        except Exception as error:  # of who reads elsewhere, too: other files are read all the same
            rows = iter([ReadRow(WHOLE, ItemError("unreadable", f"nothing can be read: {error}"))])
            found = ReadFile(path, None, rows, lambda: None)
        else:

            def share_read() -> float | None:
                return raw.tell() / size if size and not raw.closed else None

            read = _parquet if file.format == ".parquet" else _text
            found = ReadFile(path, about, _told(read(file, raw, about)), share_read)
        yield found


def _told(rows: Iterator[ReadRow]) -> Iterator[ReadRow]:
    """With a last row where reading fails: what came before it counts."""
    place = WHOLE
    try:
        for row in rows:
            place = f"after {row.place}"
            yield row
    except Exception as error:  # Arrow's, a decompressor's, those of who reads elsewhere
        yield ReadRow(place, ItemError("unreadable", f"nothing can be read: {error}"))


def _about(file: StoredFile) -> dict[str, Any] | None:
    """Of a document with conversations in a member; None for any other file."""
    if file.format != ".json":
        return None
    with file.raw() as raw:
        scanner = _scanner(file, raw)
        if scanner.peek() != b"{":
            return None
        document = object_in(scanner, (ABOUT_SIMULATIONS,))
    if SIMULATIONS not in document.members:
        return None
    try:
        info = parsed(document.members.get(ABOUT_SIMULATIONS) or b"null")
    except ItemError:  # its conversations are taken without it
        return {}
    return info if isinstance(info, dict) else {}


def _scanner(file: StoredFile, raw: BinaryIO) -> JsonScanner:
    return JsonScanner(cast(io.BufferedReader, file.unpacked(raw, 0)))  # buffered, whatever it is


def _text(file: StoredFile, raw: BinaryIO, about: Mapping[str, Any] | None) -> Iterator[ReadRow]:
    if about is not None:
        scanner = _scanner(file, raw)
        scanner.peek()
        yield from _numbered(list_of_member(scanner, SIMULATIONS))
        return
    kind = "lines" if file.format == ".jsonl" else _kind_of(file)
    if kind == "lines":
        yield from _lines(file.unpacked(raw, 0))
    elif kind == "list":
        scanner = _scanner(file, raw)
        scanner.peek()
        yield from _numbered(parts_of_list(scanner))
    else:
        text = file.unpacked(raw, 0).read(LONGEST_BYTES + 1)
        kept = text if len(text) <= LONGEST_BYTES else None
        yield _row(JsonPart(1, kept, len(text), is_whole=False), "line 1")


def _numbered(parts: Iterator[JsonPart]) -> Iterator[ReadRow]:
    for number, part in enumerate(parts, 1):
        yield _row(part, f"row {number}, line {part.line}")


def _kind_of(file: StoredFile) -> Literal["list", "object", "lines"]:
    """What a document named `.json` is: an object that something follows is the first of lines."""
    with file.raw() as raw:
        scanner = _scanner(file, raw)
        match scanner.peek():
            case b"[":
                return "list"
            case b"{":
                return "object" if object_in(scanner, ()).is_alone else "lines"
    return "lines"


def _lines(data: BinaryIO) -> Iterator[ReadRow]:
    number = 0
    while line := data.readline(LONGEST_BYTES + 1):
        number += 1
        size, place = len(line), f"line {number}"
        while len(line) > LONGEST_BYTES and not line.endswith(b"\n"):
            line = data.readline(LONGEST_BYTES + 1)
            size += len(line)
        if size > LONGEST_BYTES:
            yield _row(JsonPart(number, None, size, is_whole=True), place)
        elif line.strip():
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            yield _row(JsonPart(number, text, size, is_whole=line.endswith(b"\n")), place)


def _row(part: JsonPart, place: str) -> ReadRow:
    if part.text is None:
        words = f"{part.size:,} bytes; at most {LONGEST_BYTES:,} are read"
        return ReadRow(place, ItemError("too_long", words))
    if not part.is_whole and not part.text:
        return ReadRow(place, ItemError("cut_off", "the file ends before its list does"))
    try:
        return ReadRow(place, _object(parsed(part.text)))
    except ItemError as error:
        if part.is_whole or error.reason != "not_json":
            return ReadRow(place, error)
        return ReadRow(place, ItemError("cut_off", f"the file ends within it: {error.detail}"))


def parsed(text: bytes | str, what: str = "it") -> Any:
    """The JSON value; ItemError for what is none. `what`: for words about it."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        words = f"byte {error.start + 1} of {what} is no UTF-8 text: {error.reason}"
        raise ItemError("not_utf8", words) from error
    except RecursionError as error:
        raise ItemError("not_json", f"{what} is nested too deeply") from error
    except json.JSONDecodeError as error:
        near = error.doc[max(0, error.pos - SHOWN_BEFORE) : error.pos + SHOWN_AFTER]
        place = f"{error.msg.removesuffix(' at')} at character {error.pos + 1}, in {near!r}"
        raise ItemError("not_json", f"{what} is no JSON: {place}") from error
    except ValueError as error:
        raise ItemError("not_json", f"{what} is no JSON: {error}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"it holds {constant}")


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        words = f"a JSON object is wanted for every conversation, not {type(value).__name__}"
        raise ItemError("not_an_object", words)
    return value


def _parquet(file: StoredFile, raw: BinaryIO, _: Mapping[str, Any] | None) -> Iterator[ReadRow]:
    number = 0
    with pq.ParquetFile(raw, buffer_size=PAGES_BYTES, pre_buffer=False) as parquet:
        for batch in parquet.iter_batches(BATCH_ROWS, use_threads=False):
            for index in range(batch.num_rows):
                number += 1
                yield ReadRow(f"row {number}", _of_batch(batch, index))


def _of_batch(batch: Any, index: int) -> Mapping[str, Any] | ItemError:
    try:
        row = {name: batch.column(name)[index].as_py() for name in batch.schema.names}
    except UnicodeDecodeError as error:
        return ItemError("not_utf8", f"a column holds bytes that are no UTF-8: {error.reason}")
    size = sum(len(value) for value in row.values() if isinstance(value, str))
    if size > LONGEST_BYTES:
        return ItemError("too_long", f"{size:,} characters; at most {LONGEST_BYTES:,} are read")
    return _without_nulls(row)


def _without_nulls(value: Any) -> Any:
    """Arrow gives every struct of a column the fields of all of them; what is null in one was not
    there when it was written."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
