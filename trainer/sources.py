"""Rows to learn from, in the forms in which people keep them, as conversations or texts.

A source is one of our datasets (its view `sft` or `pretrain`), or Parquet, JSON lines or text files
of anybody. Rows are read a batch at a time.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field

from records.config import Config
from records.errors import ConfigError
from records.marker import MARKER
from records.store import Dataset

BATCH_ROWS = 512

View = Literal["sft", "pretrain"]
"""Conversations, or texts."""

TRAIN = "train"
"""The split that is learnt from."""


class SourceConfig(Config):
    path: str
    """A dataset's folder, or a .parquet, .jsonl or .txt file, or a folder of such files."""
    weight: float = Field(default=1.0, gt=0.0, le=100.0)
    """How often an epoch shows each of its rows; 0.5 shows half of them."""
    held_out: bool = False
    """Also rows that are kept for tests: for scoring, never for training."""


class Conversation(NamedTuple):
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    train_turns: Sequence[bool] | None


class Sample(NamedTuple):
    sample_id: str
    split: str
    body: Conversation | str


_SHARE_GPT = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "system": "system",
    "observation": "tool",
    "tool": "tool",
}


def samples_of(source: SourceConfig, view: View) -> Iterator[Sample]:
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
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise ConfigError(f"{file}, row {number}: {error}") from error


def _of_dataset(path: Path, view: View) -> Iterator[Sample]:
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
            f"data.path = {str(path)!r} is neither a dataset nor a {', '.join(kinds)} file or a "
            "folder of such files"
        )
    return found


def _rows(file: Path) -> Iterator[Mapping[str, Any]]:
    try:
        if file.suffix == ".parquet":
            for batch in pq.ParquetFile(file).iter_batches(BATCH_ROWS):
                yield from batch.to_pylist()
        elif file.suffix == ".jsonl":
            with file.open(encoding="utf-8") as lines:
                yield from (json.loads(line) for line in lines if line.strip())
        else:
            yield {"text": file.read_text(encoding="utf-8")}
    except (pa.ArrowException, ValueError, OSError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error


def _sample(row: Mapping[str, Any], sample_id: str) -> Sample:
    split = str(row.get("split") or TRAIN)
    return Sample(sample_id, split, _body(row))


def _body(row: Mapping[str, Any]) -> Conversation | str:
    """By the columns that there are. ValueError when there are none that we know."""
    tools = _json(row.get("tools")) or ()
    if messages := _json(row.get("messages")):
        return Conversation([_plain(m) for m in messages], tools, row.get("train_turns"))
    if turns := _json(row.get("conversations")):
        told = [{"role": _SHARE_GPT[t["from"]], "content": t["value"]} for t in turns]
        return Conversation(told, tools, None)
    if row.get("prompt") is not None and row.get("completion") is not None:
        prompt, completion = (_messages(row[k], r) for k, r in _PROMPT)
        flags = [False] * len(prompt) + [True] * len(completion)
        return Conversation([*prompt, *completion], tools, flags)
    if isinstance(text := row.get("text"), str):
        return text
    raise ValueError(
        "has none of the columns messages, conversations, prompt with completion, text; it has "
        f"{', '.join(row) or 'no column'}"
    )


_PROMPT = (("prompt", "user"), ("completion", "assistant"))


def _messages(value: Any, role: str) -> list[Mapping[str, Any]]:
    value = _json(value, plain=True)
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return [_plain(message) for message in value]


def _json(value: Any, *, plain: bool = False) -> Any:
    """Structures are stored as text by some; `plain` text stays text."""
    if not isinstance(value, str):
        return value
    if plain and not value.lstrip().startswith(("[", "{")):
        return value
    return json.loads(value)


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """Without the nulls that Arrow's structs fill in."""
    return {key: value for key, value in message.items() if value is not None}
