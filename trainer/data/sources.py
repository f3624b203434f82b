"""Rows to learn from, in the forms in which people keep them, as conversations or texts.

A source is one of our datasets (its view `sft` or `pretrain`), or Parquet, JSON lines or text files
of anybody, here or elsewhere, compressed or not, or a data set that the package `datasets` reads.
Rows are read a batch at a time.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import pyarrow.parquet as pq
from pydantic import Field

from records.config import Config
from records.errors import ConfigError
from records.sources.data_sets import can_be_named, is_saved, open_data_set, unreadable
from records.sources.stored_files import StoredFile, stored_files
from records.store.dataset import Dataset
from records.store.marker import MARKER
from trainer.data.conversations import TrainingConversation, conversation_of

BATCH_ROWS = 512

ViewName = Literal["sft", "pretrain"]
"""Conversations, or texts."""

HUB = "hf://"
"""Before the name of a data set."""

SETTING = "data.sources.path"

TRAIN = "train"
"""The split that is learnt from."""


class CorpusConfig(Config):
    path: str
    """A dataset's folder; a .parquet, .jsonl or .txt file (the last two may end in .gz or .zst), a
    folder or pattern of such files, or an address of them (`s3://`, `gs://`, `https://`,
    `hf://datasets/owner/name/folder`; each kind needs its package); a data set on the Hugging Face
    hub, which is streamed (`hf://owner/name`), or a folder that `datasets` saved."""
    config: str | None = None
    """Of a data set on the hub that has several, such as a language: `en`."""
    split: str = "train"
    """Of a data set on the hub or saved, which rows."""
    weight: float = Field(default=1.0, gt=0.0, le=100.0)
    """How often an epoch shows each of its rows; 0.5 shows half of them."""
    held_out: bool = False
    """Also rows that are kept for tests: for scoring; refused where a model is trained."""


class Sample(NamedTuple):
    sample_id: str
    split: str
    body: TrainingConversation | str


def is_learnt_from(sample: Sample, source: CorpusConfig) -> bool:
    """Whether it is of the training split, or its source is named for scoring."""
    return sample.split == TRAIN or source.held_out


def samples_of(source: CorpusConfig, view: ViewName) -> Iterator[Sample]:
    """Every row of a source in a fixed order; of a dataset, of its view of that name. ConfigError
    for a path or row that cannot be read."""
    path = Path(source.path)
    if (name := _data_set_in(source.path)) is not None:
        yield from _of_rows(_of_data_set(name, source), name, name.rpartition("/")[2])
        return
    if source.config is not None or source.split != TRAIN:
        raise ConfigError(
            f"{SETTING} = {source.path!r} is no data set of the hub (hf://owner/name) and none "
            "that was saved: leave out config and split"
        )
    if (path / MARKER).is_file():
        yield from _of_dataset(path, view)
        return
    for file in _files(source.path):
        yield from _of_rows(_rows(file), file.path, file.name)


def _files(path: str) -> list[StoredFile]:
    """Without Markdown: beside rows it tells of them."""
    files = [f for f in stored_files(path, setting=SETTING) if f.format != ".md"]
    if not files:
        raise ConfigError(f"{SETTING} = {path!r} holds nothing but Markdown, which is not read")
    return files


def _of_rows(rows: Iterable[Any], where: str, name: str) -> Iterator[Sample]:
    """`where` and `name`: of what they are in, for errors and for their ids."""
    for number, row in enumerate(rows):
        try:
            yield _sample(row, f"{name}:{number}")
        except ValueError as error:
            raise ConfigError(f"{where}, row {number}: {error}") from error


def _data_set_in(path: str) -> str | None:
    """The name or folder of a data set; None for any other path. An address of the hub with more
    parts than owner and name leads to files."""
    if path.startswith(HUB) and can_be_named(name := path.removeprefix(HUB)):
        return name
    return path if is_saved(Path(path)) else None


def folder_in(path: str) -> str | None:
    """The folder of this machine that the address of a data set leads to, if it leads to one."""
    name = path.removeprefix(HUB)
    return name if path.startswith(HUB) and Path(name).is_dir() else None


def _of_data_set(name: str, source: CorpusConfig) -> Iterator[Any]:
    opened = open_data_set(name, config=source.config, split=source.split, setting=SETTING)
    rows = iter(opened)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except Exception as error:  # the package raises whatever its readers do
            raise unreadable(name, error, setting=SETTING) from error
        yield _without_nulls(row)


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


def _rows(file: StoredFile) -> Iterator[Any]:
    try:
        with file.raw() as raw:
            if file.format == ".parquet":
                for batch in pq.ParquetFile(raw).iter_batches(BATCH_ROWS):
                    yield from (_without_nulls(row) for row in batch.to_pylist())
            elif file.format == ".jsonl":
                yield from _json_lines(file.unpacked(raw, 0))
            else:
                yield {"text": file.unpacked(raw, 0).read().decode()}
    except ConfigError:
        raise
    except Exception as error:  # Arrow's, the system's, those of who reads elsewhere
        raise ConfigError(f"{file.path} cannot be read: {error}") from error


def _json_lines(data: BinaryIO) -> Iterator[Any]:
    for number, line in enumerate(data, 1):
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
