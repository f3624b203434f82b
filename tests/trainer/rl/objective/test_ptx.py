"""The good conversations of a step hang on its number, and come in the order of a training run."""

import numpy as np
import pytest
import torch

from trainer.data.chat_format import ChatFormat
from trainer.data.corpus import Corpus
from trainer.data.packing import Packer
from trainer.data.row_length import RowLength
from trainer.rl.objective.ptx import PtxRows


def corpus(weights: tuple[float, ...]) -> Corpus:
    lengths = np.array([9, 4, 12, 7, 5, 11, 3])
    starts = np.concatenate([[0], lengths.cumsum()[:-1]])
    return Corpus(
        tokens=np.arange(lengths.sum(), dtype=np.int32),
        learnt=np.ones(lengths.sum(), dtype=np.uint8),
        starts=starts,
        lengths=lengths,
        sources=np.array([0, 0, 0, 1, 1, 1, 1], dtype=np.int32),
        weights=weights,
        rows=len(lengths),
        left_out={},
        cut={},
        row_length=RowLength(16, "as set"),
        chat=ChatFormat(),
        fingerprint=str(weights),
    )


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.1, 0.1)])
def test_steps_find_the_rows_of_one_run_through_the_data(
    rows: int, weights: tuple[float, ...]
) -> None:
    """Also where some epochs have no document at all."""
    given = corpus(weights)
    batches = Packer(given, 16, seed=5, pad=0).batches(rows)
    expected = [next(batches)[0] for _ in range(9)]
    made = PtxRows(given, row_tokens=16, rows=rows, seed=5, pad=0)
    for number in (7, 0, 8, 3, 1, 2, 4, 5, 6):
        pairs = zip(made.of_step(number), expected[number], strict=True)
        assert all(torch.equal(own, other) for own, other in pairs)
