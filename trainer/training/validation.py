"""The loss on documents that a run never learns from, as it goes on.

They are documents of the split `train`: no score uses them, since scores are of tasks that are kept
for tests. Which ones they are hangs on a digest of their ids, and neither on a seed nor on their
order, so that all runs on the same data are validated by the same documents.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import torch

from records.digest import digest
from records.seeds import share_of
from trainer.data.corpus import DOCUMENTS, Corpus
from trainer.data.packing import DataPosition, PackedBatch, Packer
from trainer.model.decoder import Decoder
from trainer.optim.loss import summed_loss
from trainer.training.batches import micro_batches

FEWEST = 10
"""Documents of which at least one validates. Of fewer, such as a few books, one would be a large
part of what there is to learn."""


class SplitCorpus(NamedTuple):
    training: Corpus
    validation: Corpus | None
    """None where no document is kept for it."""

    @property
    def kept(self) -> int:
        """Rows of the sources that validate."""
        return 0 if self.validation is None else self.validation.rows


def split_of(folder: Path, corpus: Corpus, share: float) -> SplitCorpus:
    """The corpus of a folder in two; `share` of its rows validate, at most half of them. Documents
    of one row stay together."""
    table = pq.read_table(folder / DOCUMENTS, columns=["sample_id", "row"])
    of_row, rows = table["sample_id"].to_pylist(), table["row"].to_numpy()
    ids = sorted(set(of_row), key=lambda sample_id: share_of(sample_id, "validation"))
    wanted = sum(share_of(sample_id, "validation") < share for sample_id in ids)
    if share and len(ids) >= FEWEST:
        wanted = max(1, wanted)
    chosen = set(ids[: min(wanted, len(ids) // 2)])
    if not chosen:
        return SplitCorpus(corpus, None)
    validates = np.array([sample_id in chosen for sample_id in of_row])
    kept, held = np.flatnonzero(~validates), np.flatnonzero(validates)
    validating = len(np.unique(rows[held]))  # several may have one id
    validation = _part(corpus, held, f"validation {share}", rows=validating)
    # a weight says how often a document is learnt from; here each counts once
    validation = replace(validation, weights=(1.0,) * len(corpus.weights))
    training = _part(corpus, kept, f"training {share}", rows=corpus.rows - validating)
    return SplitCorpus(training, validation)


def _part(corpus: Corpus, documents: np.ndarray, name: str, *, rows: int) -> Corpus:
    """Some documents of a corpus, whose tokens stay where they are; the name is of this choice."""
    return replace(
        corpus,
        starts=corpus.starts[documents],
        lengths=corpus.lengths[documents],
        sources=corpus.sources[documents],
        rows=rows,
        fingerprint=digest(corpus.fingerprint, name),
    )


class Best(NamedTuple):
    """The best validation so far."""

    step: int
    loss: float
    since: int = 0
    """Validations behind it, none of which was better."""


def best_of(best: Best | None, step: int, loss: float) -> Best | None:
    """With one validation more. A loss that is no number is better than none."""
    if math.isfinite(loss) and (best is None or loss < best.loss):
        return Best(step, loss)
    return best and best._replace(since=best.since + 1)


class ValidationRows:
    """The same rows of the validation documents, each time."""

    def __init__(self, packer: Packer, *, most_rows: int, micro_rows: int) -> None:
        """At most so many rows, so many of them in one forward pass."""
        rows = min(most_rows, len(packer.rows_of(0)))
        self._batches: list[PackedBatch] = []
        place = DataPosition()
        while place.row < rows:
            taken = min(micro_rows, rows - place.row)
            batch, place = next(packer.batches(taken, place))
            self._batches.append(batch)

    @torch.no_grad()
    def loss(self, model: Decoder) -> float:
        """Nats a learnt token, the mean over all rows."""
        total, targets = 0.0, 0
        for batch in self._batches:
            for part in micro_batches(batch, len(batch.ids_BT), model.device):
                hidden = model(part.ids_BT, documents_BT=part.documents_BT).hidden_BTD
                total += summed_loss(model, hidden, part.targets_BT, part.learnt_N).item()
            targets += batch.num_targets
        return total / max(1, targets)
