"""Rows to learn from, in the forms in which people keep them, as conversations or texts.

A source is one of our datasets (its view `sft` or `pretrain`), or Parquet, JSON lines or text files
of anybody. Rows are read a batch at a time.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from records.config import Config
from records.errors import ConfigError
from records.store.dataset import Dataset
from records.store.marker import MARKER
from trainer.data.conversations import TrainingConversation, conversation_of

BATCH_ROWS = 512

ViewName = Literal["sft", "pretrain"]
"""Conversations, or texts."""

TRAIN = "train"
"""The split that is learnt from."""


class CorpusConfig(Config):
    path: str
    """A dataset's folder, or a .parquet, .jsonl or .txt file, or a folder of such files."""
    weight: float = Field(default=1.0, gt=0.0, le=100.0)
    """How often an epoch shows each of its rows; 0.5 shows half of them."""
    held_out: bool = False
    """Also rows that are kept for tests: for scoring; refused where a model is trained."""


class Sample(NamedTuple):
    sample_id: str
    split: str
    body: TrainingConversation | str


def samples_of(source: CorpusConfig, view: ViewName) -> Iterator[Sample]:
    """Every row of a source in a fixed order; of a dataset, of its view of that name. ConfigError
    for a path or row that cannot be read."""
    path = Path(source.path)
    if (path / MARKER).is_file():
        yield from _of_dataset(path, view)
        return
    for file in _files(path):
        for number, row in enumerate(_rows(file)):
            try:
                yield _sample(row, f"{file.name}:{number}")
            except ValueError as error:
                raise ConfigError(f"{file}, row {number}: {error}") from error


def _of_dataset(path: Path, view: ViewName) -> Iterator[Sample]:
    key = "trajectory_id" if view == "sft" else "doc_id"
    database = Dataset.open(path).connect()
    try:
        known = [row[0] for row in database.execute("SHOW TABLES").fetchall()]
        if view not in known:
            raise ConfigError(f"{path} has no view {view!r}")
        reader = database.sql(f"SELECT * FROM {view} ORDER BY {key}").to_arrow_reader(BATCH_ROWS)
        for batch in reader:
            for row in batch.to_pylist():
                yield _sample(row, row[key])
    finally:
        database.close()


def _files(path: Path) -> list[Path]:
    kinds = (".parquet", ".jsonl", ".txt")
    if path.is_file() and path.suffix in kinds:
        return [path]
    found = sorted(p for p in path.rglob("*") if p.suffix in kinds) if path.is_dir() else []
    if not found:
        raise ConfigError(
            f"data.sources: path = {str(path)!r} is neither a dataset nor a {', '.join(kinds)} "
            "file, or a folder of such files"
        )
    return found


def _rows(file: Path) -> Iterator[Any]:
    try:
        if file.suffix == ".parquet":
            for batch in pq.ParquetFile(file).iter_batches(BATCH_ROWS):
                yield from (_without_nulls(row) for row in batch.to_pylist())
        elif file.suffix == ".jsonl":
            yield from _json_lines(file)
        else:
            yield {"text": file.read_text(encoding="utf-8")}
    except (pa.ArrowException, ValueError, OSError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error


def _json_lines(file: Path) -> Iterator[Any]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from error


def _without_nulls(value: Any) -> Any:
    """Arrow gives every struct of a column the fields of all of them: arguments of another tool,
    null. They were not there when the rows were written."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _sample(row: Any, sample_id: str) -> Sample:
    """By the columns that there are. ValueError when there are none that we know."""
    if not isinstance(row, Mapping):
        raise ValueError(f"a row is {type(row).__name__}, not an object with columns")
    split = str(row.get("split") or TRAIN)
    if (conversation := conversation_of(row)) is not None:
        return Sample(sample_id, split, conversation)
    if isinstance(text := row.get("text"), str):
        return Sample(sample_id, split, text)
    raise ValueError(
        "has none of the columns messages, conversations, prompt with completion, text; it has "
        f"{', '.join(row) or 'no column'}"
    )
