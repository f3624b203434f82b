"""Texts of evaluations: every string in every row, whatever its column is called."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq

from records.errors import ConfigError
from records.sources.stored_files import StoredFile, stored_files
from synth.rephrasing.sources.formats import BATCH_ROWS, PAGES_BYTES


def evaluation_texts(path: str) -> Iterator[str]:
    """Of all files at a path, a pattern or an address. ConfigError for one that cannot be read, and
    for a line that is no JSON: an evaluation that is left out would not be missed."""
    for file in stored_files(path, setting="decontaminate"):
        try:
            match file.format:
                case ".parquet":
                    yield from _of_parquet(file)
                case ".jsonl":
                    yield from _of_lines(file)
                case _:
                    with file.raw() as raw:
                        yield file.unpacked(raw, 0).read().decode()
        except Exception as error:  # of JSON, Arrow, the system, or who has the file
            raise ConfigError(f"decontaminate: {file.path} cannot be read: {error}") from error


def _of_lines(file: StoredFile) -> Iterator[str]:
    with file.raw() as raw:
        for line in file.unpacked(raw, 0):
            if line.strip():
                yield from _strings_in(json.loads(line))


def _of_parquet(file: StoredFile) -> Iterator[str]:
    with file.raw() as raw, pq.ParquetFile(raw, buffer_size=PAGES_BYTES, pre_buffer=False) as rows:
        for batch in rows.iter_batches(BATCH_ROWS, use_threads=False):
            yield from _strings_in(batch.to_pylist())


def _strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings_in(inner)
