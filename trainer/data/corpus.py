"""Tokens on disk: every document of the sources, tokenised once, read at random afterwards.

A corpus is a folder of `tokens.i32` and `learnt.u1` (flat, one entry a token), `documents.parquet`
(a row a document: where it lies and where it is from) and `corpus.json`, written last. What it was
made from is its fingerprint: a run goes on with the very rows it began with, whatever has been
added to a dataset since. The length of a packed row belongs to it, since it decides which
conversations are left out.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from records.digest import digest
from records.errors import ConfigError
from records.files import write_atomic
from records.store.marker import MARKER
from trainer.data.chat_format import ChatFormat
from trainer.data.documents import ReasoningUse, RowEncoder, has_reasoning
from trainer.data.fitting import Fitted, Tokenised, fitted
from trainer.data.row_length import RowLength, RowLimits
from trainer.data.sources import CorpusConfig, ViewName, is_learnt_from, samples_of
from trainer.data.tokenising import UntokenisedRow, cores, tokenised
from trainer.data.tokenizer import Tokenizer

VERSION = 4
"""Raised when the same rows would give other tokens, or other columns of documents."""

TOKENS, LEARNT, DOCUMENTS, MARK = "tokens.i32", "learnt.u1", "documents.parquet", "corpus.json"

LEFT_OUT = {
    "held_out": "kept for tests",
    "too_long": "conversation of more tokens than data.row_tokens",
    "nothing_to_learn": "without a token to be learnt",
}
"""Why a row is left out -> what that means."""

CUT = {
    "too_long": "conversation cut behind the last answer that fits into data.row_tokens",
    "reasoning": "conversation without the reasoning of its answers",
}
"""What was cut off a row that is learnt from, or that validates -> what that means."""


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
    rows: int
    """Rows of the sources that it holds; one with reasoning may be several documents."""
    left_out: dict[str, int]
    """Rows that are not in it, by reason."""
    cut: dict[str, int]
    """Rows that something was cut off, by what."""
    row_length: RowLength
    """Of a packed row."""
    chat: ChatFormat
    """How its conversations are written."""
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
    chat: ChatFormat = ChatFormat(),
    reasoning: ReasoningUse = "learn",
    limits: RowLimits = RowLimits(),
    processes: int | None = None,
) -> Corpus:
    """Tokenise the sources into `folder`, or open what an earlier call has made of the same.

    Rows kept for tests are left out, unless their source says `held_out`; so are those with nothing
    to learn, and conversations that are longer than a row, as `limits` say. Where any answer has
    reasoning that is not cut, all are written as those of a model that thinks. `processes`: that
    tokenise; None: one for each core. ConfigError when nothing is left, too much is left out, or
    the folder holds another corpus.
    """
    wanted = {
        "version": VERSION,
        "sources": [source.identity() for source in sources],
        "tokenizer": digest(tokenizer.fingerprint),
        "view": view,
        "chat": chat.identity(),
        "reasoning": reasoning,
        "longer": limits.longer,
    }
    if (folder / MARK).exists():
        mark = _mark(folder)
        known = mark.get("row_tokens")
        if mark.get("made_from") != wanted or limits.tokens not in (None, known):
            raise ConfigError(
                f"{folder} holds tokens of other sources or of another tokenizer, or rows of "
                "another length; choose another output folder, or remove it"
            )
        return open_corpus(folder)
    folder.mkdir(parents=True, exist_ok=True)
    encoder = RowEncoder(tokenizer, chat, reasoning)
    reading = _Reading(sources, view, unless_thinking=reasoning != "cut" and not chat.thinking)
    processes = processes or cores()
    try:
        whole = _written(folder, reading, encoder, processes)
    except _ReasoningFoundError:
        _check_can_think(tokenizer)
        encoder = RowEncoder(tokenizer, chat.model_copy(update={"thinking": True}), reasoning)
        reading = _Reading(sources, view, unless_thinking=False)
        whole = _written(folder, reading, encoder, processes)
    made = fitted(whole, folder / TOKENS, folder / LEARNT, tokenizer, limits)
    left_out = reading.left_out + made.left_out
    if not len(made.documents):
        told = "; ".join(f"{n} {why}: {LEFT_OUT[why]}" for why, n in left_out.items())
        raise ConfigError(f"data: nothing to learn from ({told or _no_rows(sources, view)})")
    pq.write_table(made.documents, folder / DOCUMENTS)
    mark = {
        "made_from": wanted,
        "weights": [source.weight for source in sources],
        "rows": made.rows,
        "left_out": dict(sorted(left_out.items())),
        "cut": _cut(made, reasoning),
        "row_tokens": made.row_length.tokens,
        "row_tokens_why": made.row_length.why,
        "chat": encoder.chat.model_dump(),
        "fingerprint": digest(
            wanted, made.row_length.tokens, made.tokens, len(made.documents), encoder.chat.thinking
        ),
    }
    write_atomic(folder / MARK, json.dumps(mark, indent=2).encode())
    return open_corpus(folder)


def _check_can_think(tokenizer: Tokenizer) -> None:
    if not tokenizer.can_think:
        raise ConfigError(
            "data: answers have reasoning, and the tokenizer, of an earlier version, has no "
            "<think>; set data.reasoning = 'cut', or train a model with a new tokenizer"
        )


def _cut(made: Fitted, reasoning: ReasoningUse) -> dict[str, int]:
    counts = {
        "too_long": made.cut,
        "reasoning": made.with_reasoning if reasoning == "cut" else 0,
    }
    return {what: number for what, number in counts.items() if number}


def _no_rows(sources: Sequence[CorpusConfig], view: ViewName) -> str:
    if view == "sft" and any((Path(source.path) / MARKER).is_file() for source in sources):
        return (
            "no rows: a dataset's view sft has what was accepted and a judge has looked at; grade "
            "it with a judge, or learn from what `synth export --format hf --include-code-alone` "
            "writes"
        )
    return "no rows"


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
            rows=mark["rows"],
            left_out=mark["left_out"],
            cut=mark["cut"],
            row_length=RowLength(mark["row_tokens"], mark["row_tokens_why"]),
            chat=ChatFormat.model_validate(mark["chat"]),
            fingerprint=mark["fingerprint"],
        )
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise _damaged(folder, str(error)) from error
    if len(corpus.tokens) != corpus.num_tokens or len(corpus.learnt) != corpus.num_tokens:
        raise _damaged(folder, f"it says {corpus.num_tokens} tokens")
    return corpus


def _mark(folder: Path) -> Mapping[str, Any]:
    try:
        mark = json.loads((folder / MARK).read_text())
    except (OSError, ValueError) as error:
        raise _damaged(folder, f"{MARK}: {error}") from error
    if not isinstance(mark, Mapping):
        raise _damaged(folder, f"{MARK} is no object")
    return mark


def _damaged(folder: Path, why: str) -> ConfigError:
    return ConfigError(f"{folder} is damaged ({why}); remove it, and it is made again")


class _ReasoningFoundError(Exception):
    """The first answer with reasoning was read, and rows before it were written without."""


class _Reading:
    """The rows that are learnt from, and a count of those that are not."""

    def __init__(
        self, sources: Sequence[CorpusConfig], view: ViewName, *, unless_thinking: bool
    ) -> None:
        self._sources, self._unless_thinking = sources, unless_thinking
        self._view: ViewName = view
        self.left_out: Counter[str] = Counter()

    def __iter__(self) -> Iterator[UntokenisedRow]:
        for number, source in enumerate(self._sources):
            for sample in samples_of(source, self._view):
                if not is_learnt_from(sample, source):
                    self.left_out["held_out"] += 1
                elif self._unless_thinking and has_reasoning(sample.body):
                    raise _ReasoningFoundError
                else:
                    yield UntokenisedRow(number, sample.sample_id, sample.body)


def _written(folder: Path, reading: _Reading, encoder: RowEncoder, processes: int) -> Tokenised:
    """All tokens, of rows of any length, and where their documents lie."""
    whole = Tokenised()
    with (folder / TOKENS).open("wb") as tokens, (folder / LEARNT).open("wb") as learnt:
        for row in tokenised(reading, encoder, processes=processes):
            if not row.documents:
                reading.left_out["nothing_to_learn"] += 1
            for document in row.documents:
                tokens.write(document.ids.tobytes())
                learnt.write(document.learnt.tobytes())
            whole.add(row)
    return whole
