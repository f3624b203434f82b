"""Attention by whole matrices of scores, as it is defined: what stands in for flex attention where
there is no GPU (its backward pass and its maxima need one), and what both ways are compared with.

Shape suffixes in this file: B = sequences, H = heads, T = tokens, K = features of a query and key,
V = of a value.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
from torch import Tensor

from trainer.model import fused
from trainer.model.precision import widened


def visibility(documents_BT: Tensor) -> Tensor:
    """Who sees whom, bool (B, 1, T, T)."""
    index_T = torch.arange(documents_BT.shape[1], device=documents_BT.device)
    earlier = index_T[:, None] >= index_T
    return (earlier & (documents_BT[:, :, None] == documents_BT[:, None]))[:, None]


def attend(
    q_BHTK: Tensor,
    k_BHTK: Tensor,
    v_BHTV: Tensor,
    mask: Tensor,
    *,
    scale: float,
    real_BT: Tensor | None,
    track_logits: bool,
) -> tuple[Tensor, Tensor | None]:
    scores = (widened(q_BHTK @ k_BHTK.mT) * scale).masked_fill(~mask, float("-inf"))
    out = scores.softmax(-1).to(v_BHTV.dtype) @ v_BHTV
    if not track_logits:
        return out, None
    top_BHT = scores.detach().amax(-1)
    if real_BT is not None:
        top_BHT = top_BHT.masked_fill(~real_BT[:, None], float("-inf"))
    return out, top_BHT.amax(dim=(0, 2))


@contextmanager
def standing_in() -> Iterator[None]:
    """For flex attention on the device's path."""
    with patch.object(fused, "visibility", visibility), patch.object(fused, "attend", attend):
        yield
