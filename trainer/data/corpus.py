"""Tokens on disk: every document of the sources, tokenised once, read at random afterwards.

A corpus is a folder of `tokens.i32` and `learnt.u1` (flat, one entry a token), `documents.parquet`
(a row a document: where it lies and where it is from) and `corpus.json`, written last. What it was
made from is its fingerprint: a run goes on with the very rows it began with, whatever has been
added to a dataset since.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from records.digest import digest
from records.errors import ConfigError
from records.files import write_atomic
from trainer.data.chat import Encoded, encode_chat
from trainer.data.conversations import TrainingConversation
from trainer.data.declarations import Style
from trainer.data.sources import TRAIN, CorpusConfig, Sample, ViewName, samples_of
from trainer.data.tokenizer import Tokenizer

VERSION = 2
"""Raised when the same rows would give other tokens."""

TOKENS, LEARNT, DOCUMENTS, MARK = "tokens.i32", "learnt.u1", "documents.parquet", "corpus.json"

BATCH_DOCUMENTS = 4096

LEFT_OUT = {
    "held_out": "kept for tests",
    "too_long": "conversation of more tokens than data.row_tokens",
    "nothing_to_learn": "without a token to be learnt",
}
"""Why a row is left out -> what that means."""

_SCHEMA = pa.schema(
    [
        ("sample_id", pa.utf8()),
        ("source", pa.int32()),
        ("start", pa.int64()),
        ("tokens", pa.int64()),
        ("learnt", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Corpus:
    """An open corpus; arrays are mapped, not read."""

    tokens: np.ndarray
    """int32, all documents one after the other."""
    learnt: np.ndarray
    """uint8, 1 where the token is to be learnt."""
    starts: np.ndarray
    """int64, first token of each document."""
    lengths: np.ndarray
    """int64, tokens of each document."""
    sources: np.ndarray
    """int32, index of each document's source."""
    weights: tuple[float, ...]
    """Of each source."""
    left_out: dict[str, int]
    """Rows that are not in it, by reason."""
    fingerprint: str

    @property
    def num_tokens(self) -> int:
        return int(self.lengths.sum())


def make_corpus(
    sources: Sequence[CorpusConfig],
    tokenizer: Tokenizer,
    folder: Path,
    *,
    view: ViewName = "sft",
    style: Style = "json",
    longest: int | None = None,
) -> Corpus:
    """Tokenise the sources into `folder`, or open what an earlier call has made of the same.

    Rows kept for tests are left out, unless their source says `held_out`; so are conversations of
    more than `longest` tokens, which cannot be cut without losing what they show, and those with
    nothing to learn. ConfigError when nothing is left, or the folder holds another corpus.
    """
    wanted = {
        "version": VERSION,
        "sources": [source.identity() for source in sources],
        "tokenizer": digest(tokenizer.fingerprint),
        "view": view,
        "style": style,
        "longest": longest,
    }
    if (folder / MARK).exists():
        mark = _mark(folder)
        if mark.get("made_from") != wanted:
            raise ConfigError(
                f"{folder} holds tokens of other sources or of another tokenizer; choose another "
                "output folder, or remove it"
            )
        return open_corpus(folder)
    folder.mkdir(parents=True, exist_ok=True)
    writer = _Writer(folder)
    with writer:
        for number, source in enumerate(sources):
            encode = partial(_encoded, tokenizer, style=style, longest=longest)
            for sample in samples_of(source, view):
                if sample.split != TRAIN and not source.held_out:
                    writer.left_out["held_out"] += 1
                else:
                    writer.add(sample.sample_id, number, encode(sample))
    if not writer.documents:
        told = (f"{n} {why}: {LEFT_OUT[why]}" for why, n in writer.left_out.items())
        reasons = "; ".join(told) or "no rows"
        raise ConfigError(f"data: nothing to learn from ({reasons})")
    mark = {
        "made_from": wanted,
        "weights": [source.weight for source in sources],
        "left_out": dict(writer.left_out),
        "fingerprint": digest(wanted, writer.end, writer.documents),
    }
    write_atomic(folder / MARK, json.dumps(mark, indent=2).encode())
    return open_corpus(folder)


def open_corpus(folder: Path) -> Corpus:
    """ConfigError for a folder whose files do not hold together."""
    mark = _mark(folder)
    try:
        table = pq.read_table(folder / DOCUMENTS, columns=["start", "tokens", "source"])
        corpus = Corpus(
            tokens=np.memmap(folder / TOKENS, dtype=np.int32, mode="r"),
            learnt=np.memmap(folder / LEARNT, dtype=np.uint8, mode="r"),
            starts=table["start"].to_numpy(),
            lengths=table["tokens"].to_numpy(),
            sources=table["source"].to_numpy(),
            weights=tuple(mark["weights"]),
            left_out=mark["left_out"],
            fingerprint=mark["fingerprint"],
        )
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise _damaged(folder, str(error)) from error
    if len(corpus.tokens) != corpus.num_tokens or len(corpus.learnt) != corpus.num_tokens:
        raise _damaged(folder, f"it says {corpus.num_tokens} tokens")
    return corpus


def _mark(folder: Path) -> dict[str, Any]:
    try:
        mark = json.loads((folder / MARK).read_text())
    except (OSError, ValueError) as error:
        raise _damaged(folder, f"{MARK}: {error}") from error
    return mark


def _damaged(folder: Path, why: str) -> ConfigError:
    return ConfigError(f"{folder} is damaged ({why}); remove it, and it is made again")


def _encoded(
    tokenizer: Tokenizer, sample: Sample, *, style: Style, longest: int | None
) -> Encoded | str:
    """The tokens, or why the row is left out."""
    if isinstance(sample.body, TrainingConversation):
        body = sample.body
        encoded = encode_chat(
            tokenizer, body.messages, body.tools, train_turns=body.train_turns, style=style
        )
        if longest is not None and len(encoded.ids) > longest:
            return "too_long"
    else:
        ids = [*tokenizer.encode(sample.body), tokenizer.end]
        encoded = Encoded(ids, [True] * len(ids))
    return encoded if any(encoded.learnt[1:]) else "nothing_to_learn"  # nothing leads to the first


class _Writer:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: list[dict[str, Any]] = []
        self.left_out: Counter[str] = Counter()
        self.documents = 0
        self.end = 0

    def __enter__(self) -> None:
        self._tokens: BinaryIO = (self._folder / TOKENS).open("wb")
        self._learnt: BinaryIO = (self._folder / LEARNT).open("wb")
        self._table = pq.ParquetWriter(self._folder / DOCUMENTS, _SCHEMA)

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._table.close()
        self._tokens.close()
        self._learnt.close()

    def add(self, sample_id: str, source: int, encoded: Encoded | str) -> None:
        if isinstance(encoded, str):
            self.left_out[encoded] += 1
            return
        self._tokens.write(np.asarray(encoded.ids, dtype=np.int32).tobytes())
        self._learnt.write(np.asarray(encoded.learnt, dtype=np.uint8).tobytes())
        self._rows.append(
            {
                "sample_id": sample_id,
                "source": source,
                "start": self.end,
                "tokens": len(encoded.ids),
                "learnt": sum(encoded.learnt),
            }
        )
        self.end += len(encoded.ids)
        self.documents += 1
        if len(self._rows) == BATCH_DOCUMENTS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._table.write_table(pa.Table.from_pylist(self._rows, _SCHEMA))
            self._rows = []
