"""A step's batch on its way from the host to the device, a micro-batch at a time.

Shape suffixes in this file: B = rows, T = tokens, N = tokens that are learnt.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.data.packing import PackedBatch
from trainer.optim.loss import learnt_places


class MicroBatch(NamedTuple):
    """Rows of one forward pass, where the model is."""

    ids_BT: Tensor
    targets_BT: Tensor
    documents_BT: Tensor
    learnt_N: Tensor
    """Places of the learnt tokens in the flattened targets: found on the host, which has them."""


def micro_batches(batch: PackedBatch, rows: int, device: torch.device) -> Iterator[MicroBatch]:
    """So many rows each, the last one what is left. The host does not wait for their arrival."""
    for ids_BT, targets_BT, documents_BT in zip(*(t.split(rows) for t in batch), strict=True):
        learnt_N = learnt_places(targets_BT)
        whole = (ids_BT, targets_BT, documents_BT, learnt_N)
        yield MicroBatch(*(sent(tensor, device) for tensor in whole))


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor of the host where the model is; the host does not wait for its arrival."""
    if device.type == "cuda":  # only from pinned memory does a copy go on by itself
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
