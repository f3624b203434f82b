"""The rows of a file that somebody else made: JSON lines, JSON or Parquet, plain or compressed.

A row that cannot be read is told with its place and costs the others nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, NoReturn

import pyarrow.parquet as pq

from records.errors import ConfigError, ItemError
from records.sources.stored_files import StoredFile, stored_files
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

SIMULATIONS = "simulations"
"""Member of a results file of tau2-bench that lists the conversations."""

ABOUT_SIMULATIONS = ("info", "tasks")
"""Members beside it that are read with every conversation."""


class ReadRow(NamedTuple):
    place: str
    """For people: `line 7`, or `row 7` of Parquet, both from 1."""
    value: Mapping[str, Any] | ItemError
    """The row, or why it cannot be read."""


class ReadFile(NamedTuple):
    path: str
    about: Mapping[str, Any]
    """What the file says of all its rows, by `ABOUT_SIMULATIONS`; empty for most."""
    rows: Iterator[ReadRow]
    share_read: Callable[[], float | None]
    """Of the stored bytes; None where nobody knows how many there are."""


def files_at(path: str) -> list[StoredFile]:
    """ConfigError where there is none that can be read."""
    return stored_files(path, setting="FILE", formats=FORMATS)


@contextmanager
def opened(file: StoredFile) -> Iterator[ReadFile]:
    """The file's rows, to be read once, in order. ConfigError where the file itself cannot be
    read; of one that breaks off later, the last row says so."""
    about = {} if file.format == ".parquet" else _about(file)
    with _open(file) as raw:
        size = file.size

        def share_read() -> float | None:
            return raw.tell() / size if size and not raw.closed else None

        read = _parquet if file.format == ".parquet" else _text
        yield ReadFile(file.path, about or {}, _told(read(file, raw, about)), share_read)


@contextmanager
def _open(file: StoredFile) -> Iterator[BinaryIO]:
    try:
        with file.raw() as raw:
            yield raw
    except OSError as error:
        raise ConfigError(f"{file.path} cannot be read: {error}") from error


def _told(rows: Iterator[ReadRow]) -> Iterator[ReadRow]:
    """With a last row where reading fails: what came before it counts."""
    last = "the beginning"
    try:
        for row in rows:
            last = row.place
            yield row
    except ConfigError:
        raise
    except Exception as error:  # Arrow's, a decompressor's, those of who reads elsewhere
        words = f"nothing can be read after {last}: {error}"
        yield ReadRow(f"after {last}", ItemError("unreadable", words))


def _about(file: StoredFile) -> dict[str, Any] | None:
    """Of a document with conversations in a member; None for any other file."""
    if file.format != ".json":
        return None
    try:
        with _open(file) as raw:
            scanner = JsonScanner(file.unpacked(raw, 0))
            if scanner.peek() != b"{":
                return None
            document = object_in(scanner, ABOUT_SIMULATIONS)
    except (OSError, EOFError):  # reading the rows meets it again, and tells
        return None
    if SIMULATIONS not in document.members:
        return None
    found = {}
    for name in ABOUT_SIMULATIONS:
        if text := document.members.get(name):
            try:
                found[name] = parsed(text)
            except ItemError:  # its conversations are taken without it
                continue
    return found


def _text(file: StoredFile, raw: BinaryIO, about: Mapping[str, Any] | None) -> Iterator[ReadRow]:
    data = file.unpacked(raw, 0)
    if about is not None:
        scanner = JsonScanner(data)
        scanner.peek()
        yield from map(_row, list_of_member(scanner, SIMULATIONS))
        return
    kind = "lines" if file.format == ".jsonl" else _kind_of(file)
    if kind == "lines":
        yield from _lines(data)
    elif kind == "list":
        scanner = JsonScanner(data)
        scanner.peek()
        yield from map(_row, parts_of_list(scanner))
    else:
        text = data.read(LONGEST_BYTES + 1)
        kept = text if len(text) <= LONGEST_BYTES else None
        yield _row(JsonPart(1, kept, len(text), is_whole=True))


def _kind_of(file: StoredFile) -> Literal["list", "object", "lines"]:
    """What a document named `.json` is: an object that something follows is the first of lines."""
    with _open(file) as raw:
        scanner = JsonScanner(file.unpacked(raw, 0))
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
        size = len(line)
        while len(line) > LONGEST_BYTES and not line.endswith(b"\n"):
            line = data.readline(LONGEST_BYTES + 1)
            size += len(line)
        if size > LONGEST_BYTES:
            yield _row(JsonPart(number, None, size, is_whole=True))
        elif line.strip():
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            yield _row(JsonPart(number, text, size, is_whole=True))


def _row(part: JsonPart) -> ReadRow:
    place = f"line {part.line}"
    if part.text is None:
        words = f"{part.size:,} bytes; at most {LONGEST_BYTES:,} are read"
        return ReadRow(place, ItemError("too_long", words))
    if not part.is_whole and not part.text:
        return ReadRow(place, ItemError("cut_off", "the file ends before its list does"))
    try:
        return ReadRow(place, _object(parsed(part.text)))
    except ItemError as error:
        if part.is_whole:
            return ReadRow(place, error)
        return ReadRow(place, ItemError("cut_off", f"the file ends within it: {error.detail}"))


def parsed(text: bytes | str) -> Any:
    """The JSON value; ItemError for what is none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        words = f"byte {error.start} is no UTF-8 text: {error.reason}"
        raise ItemError("not_utf8", words) from error
    except RecursionError as error:
        raise ItemError("not_json", "nested too deeply") from error
    except ValueError as error:
        raise ItemError("not_json", str(error)) from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


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


def name_of(file: StoredFile) -> str:
    """Its last part, by which refused rows are remembered."""
    return Path(file.path).name
