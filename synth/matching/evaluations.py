"""Evaluations in files: every row, and every string in it, whatever its column is called.

A row is a line of JSON lines, a row of Parquet, an element of a JSON list (any other JSON is one
row), or a text file as a whole.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from records.errors import ConfigError
from records.sources.stored_files import (
    BATCH_ROWS,
    FORMATS,
    PAGES_BYTES,
    StoredFile,
    stored_files,
)

EVALUATION_FORMATS = (*FORMATS, ".json")


class EvaluationRow(NamedTuple):
    path: str
    """Of its file."""
    number: int
    """From 0, in the file."""
    value: Any
    """A JSON value; of a text file its text."""


def check_evaluations(paths: Iterable[str], *, setting: str) -> None:
    """ConfigError for a path that holds no file of an evaluation."""
    for path in paths:
        stored_files(path, setting=setting, formats=EVALUATION_FORMATS)


def evaluation_rows(path: str, *, setting: str) -> Iterator[EvaluationRow]:
    """Of all files at a path, a pattern or an address, which `setting` names in errors. ConfigError
    for one that cannot be read, and for a line that is no JSON: an evaluation that is left out
    would not be missed."""
    for file in stored_files(path, setting=setting, formats=EVALUATION_FORMATS):
        try:
            for number, value in enumerate(_values(file)):
                yield EvaluationRow(file.path, number, value)
        except Exception as error:  # of JSON, Arrow, the system, or who has the file
            raise ConfigError(f"{setting}: {file.path} cannot be read: {error}") from error


def short_names(paths: Collection[str]) -> dict[str, str]:
    """Path -> its shortest end that no other of the paths has: `tasks.json`, or where each of
    several folders has one, `airline/tasks.json`."""
    parts = {path: PurePosixPath(path).parts for path in paths}
    names: dict[str, str] = {}
    length = 1
    while left := parts.keys() - names.keys():
        ends = Counter(own[-length:] for own in parts.values())
        for path in left:
            end = parts[path][-length:]
            if ends[end] == 1 or length >= len(parts[path]):
                names[path] = str(PurePosixPath(*end))
        length += 1
    return names


def evaluation_texts(path: str, *, setting: str) -> Iterator[str]:
    """Every string of `evaluation_rows`."""
    for row in evaluation_rows(path, setting=setting):
        yield from strings_in(row.value)


def strings_in(value: Any) -> Iterator[str]:
    """Of a JSON value, in its order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_in(inner)


def _values(file: StoredFile) -> Iterator[Any]:
    match file.format:
        case ".parquet":
            yield from _of_parquet(file)
        case ".jsonl":
            yield from _of_lines(file)
        case ".json":
            value = json.loads(_text(file))
            yield from value if isinstance(value, list) else [value]
        case _:
            yield _text(file)


def _text(file: StoredFile) -> str:
    with file.raw() as raw:
        return file.unpacked(raw, 0).read().decode()


def _of_lines(file: StoredFile) -> Iterator[Any]:
    with file.raw() as raw:
        for line in file.unpacked(raw, 0):
            if line.strip():
                yield json.loads(line)


def _of_parquet(file: StoredFile) -> Iterator[Any]:
    with file.raw() as raw, pq.ParquetFile(raw, buffer_size=PAGES_BYTES, pre_buffer=False) as rows:
        for batch in rows.iter_batches(BATCH_ROWS, use_threads=False):
            yield from batch.to_pylist()
