"""Rows that a step learns beside its samples: good conversations, each found by the step's number
alone, and others with a weight of their own."""

from typing import NamedTuple

from trainer.data.corpus import Corpus
from trainer.data.packing import DataPosition, PackedBatch, Packer


class WeightedRows(NamedTuple):
    rows: PackedBatch
    weight: float
    """Of their cross-entropy in nats a learnt token, beside the objective's loss as it is."""


class PtxRows:
    """Epoch after epoch of a corpus, so many rows a step: what step n is given hangs on n and the
    seed, and a run that goes on needs to know nothing else."""

    def __init__(self, corpus: Corpus, *, row_tokens: int, rows: int, seed: int, pad: int) -> None:
        """`pad`: token that fills a row up."""
        self._packer = Packer(corpus, row_tokens, seed, pad)
        self._rows = rows
        self._before = [0]
        """Rows of all epochs before each one that was looked at so far."""

    def of_step(self, number: int) -> PackedBatch:
        """Of the step with this number, from 0."""
        first = number * self._rows
        while self._before[-1] <= first:
            epoch = len(self._before) - 1
            self._before.append(self._before[-1] + len(self._packer.rows_of(epoch)))
        epoch = max(n for n, before in enumerate(self._before) if before <= first)
        place = DataPosition(epoch, first - self._before[epoch])
        return next(self._packer.batches(self._rows, place))[0]
