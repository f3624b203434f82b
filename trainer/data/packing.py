"""Documents packed into rows of one length, in an order that hangs on the seed alone.

An epoch's rows are a pure function of (seed, epoch, lengths), so the place in the data is two
numbers, and a resumed run goes on with the very next batch.

Shape suffixes in this file: B = rows, T = tokens of a row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from records.seeds import seed_of
from trainer.data.corpus import Corpus

IGNORE = -100
"""Target where nothing is learnt: others' words, padding, a document's end."""

PADDING = -1
"""Document of what only fills a row up: nothing is learnt from it, and it counts nowhere."""

OPEN_ROWS = 64
"""Rows that are filled at a time. A document goes where the least room is left over."""


class Piece(NamedTuple):
    """A stretch of a document, within a row."""

    document: int
    start: int
    """First token, counted from the document's start."""
    length: int


class DataPosition(NamedTuple):
    """Where in the data a run is: the next row that it takes."""

    epoch: int = 0
    row: int = 0


class PackedBatch(NamedTuple):
    ids_BT: Tensor
    targets_BT: Tensor
    """The token after each one, IGNORE where it is not learnt."""
    documents_BT: Tensor
    """Numbers that rise within a row; PADDING behind them."""

    @property
    def num_targets(self) -> int:
        return int((self.targets_BT != IGNORE).sum())


@dataclass(frozen=True)
class Packer:
    corpus: Corpus
    row_tokens: int
    """Tokens of a row."""
    seed: int
    pad: int
    """Token that fills a row up."""

    def batches(
        self, rows: int, place: DataPosition = DataPosition()
    ) -> Iterator[tuple[PackedBatch, DataPosition]]:
        """Endless batches of so many rows, each with the place behind it."""
        while True:
            taken: list[list[Piece]] = []
            while len(taken) < rows:
                packed = self.rows_of(place.epoch)
                if place.row >= len(packed):
                    place = DataPosition(place.epoch + 1, 0)
                    continue
                taken.append(packed[place.row])
                place = DataPosition(place.epoch, place.row + 1)
            yield self._batch(taken), place

    def rows_of(self, epoch: int) -> list[list[Piece]]:
        """All rows of an epoch in their order."""
        return _packed(self, epoch)

    def _batch(self, rows: list[list[Piece]]) -> PackedBatch:
        shape = (len(rows), self.row_tokens)
        ids, targets = np.full(shape, self.pad), np.full(shape, IGNORE)
        documents = np.full(shape, PADDING)
        for b, pieces in enumerate(rows):
            at = 0
            for number, piece in enumerate(pieces):
                first = self.corpus.starts[piece.document] + piece.start
                span = slice(first, first + piece.length)
                tokens, learnt = self.corpus.tokens[span], self.corpus.learnt[span]
                ids[b, at : at + piece.length] = tokens
                following = np.where(learnt[1:], tokens[1:], IGNORE)
                targets[b, at : at + piece.length - 1] = following
                documents[b, at : at + piece.length] = number
                at += piece.length
        return PackedBatch(
            *(torch.from_numpy(a.astype(np.int64)) for a in (ids, targets, documents))
        )

    def __hash__(self) -> int:
        return hash((self.corpus.fingerprint, self.row_tokens, self.seed))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Packer) and hash(self) == hash(other)


@lru_cache(maxsize=2)
def _packed(packer: Packer, epoch: int) -> list[list[Piece]]:
    rng = np.random.default_rng(seed_of(str(packer.seed), "epoch", epoch))
    rows: list[list[Piece]] = []
    open_rows: list[tuple[int, list[Piece]]] = []  # (room, pieces)
    for document in _order(packer.corpus, rng):
        for piece in _pieces(packer, int(document)):
            fits = [n for n, (room, _) in enumerate(open_rows) if room >= piece.length]
            if fits:
                best = min(fits, key=lambda n: open_rows[n][0])
                room, pieces = open_rows.pop(best)
            else:
                room, pieces = packer.row_tokens, []
            pieces.append(piece)
            if room > piece.length:
                open_rows.append((room - piece.length, pieces))
            else:
                rows.append(pieces)
            if len(open_rows) > OPEN_ROWS:
                fullest = min(range(len(open_rows)), key=lambda n: open_rows[n][0])
                rows.append(open_rows.pop(fullest)[1])
    rows += [pieces for _, pieces in open_rows]
    return [rows[n] for n in rng.permutation(len(rows))]


def _order(corpus: Corpus, rng: np.random.Generator) -> np.ndarray:
    """Documents as often as their source's weight says, a fraction by lot, shuffled."""
    weights = np.asarray(corpus.weights)[corpus.sources]
    times = np.floor(weights) + (rng.random(len(weights)) < weights % 1.0)
    return rng.permutation(np.repeat(np.arange(len(weights)), times.astype(np.int64)))


def _pieces(packer: Packer, document: int) -> Iterator[Piece]:
    """The document, cut where it is longer than a row."""
    length = int(packer.corpus.lengths[document])
    for start in range(0, length, packer.row_tokens):
        yield Piece(document, start, min(packer.row_tokens, length - start))
