"""Attention on a CPU: a block of queries at a time, over the keys that any of them may see.

Against whole score matrices this halves the work (nothing is computed above the diagonal, nor
before the first document of a block) and most of the memory, and tells the largest logit of each
head on the way. Gradients are written out, so that scores are made once and changed in place.

Shape suffixes in this file: B = sequences, H = heads, T = tokens (t those of one block), S = keys
of a block, K = features of a query and key, V = of a value.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trainer.data.packing import PADDING

QUERIES = 64
"""Of a block: smaller ones skip more and cost more calls."""


class QueryBlock(NamedTuple):
    """Queries `start` to `end`, which see no key outside `first` to `end`."""

    first: int
    start: int
    end: int
    hidden_B1tS: Tensor
    """Keys of those that a query may not see."""
    padding_Bt: Tensor | None
    """Queries that are of no document, whose logits are nobody's; None where all are of one."""


def blocks_of(documents_BT: Tensor, starts_BT: Tensor) -> list[QueryBlock]:
    """`starts_BT`: where the document of each token starts, in its row."""
    length = documents_BT.shape[1]
    index_T = torch.arange(length)
    made: list[QueryBlock] = []
    for start in range(0, length, QUERIES):
        end = min(start + QUERIES, length)
        first = int(starts_BT[:, start].min())
        own, keys = documents_BT[:, start:end, None], documents_BT[:, None, first:end]
        later = index_T[start:end, None] < index_T[first:end]
        padding_Bt = documents_BT[:, start:end] == PADDING
        told = padding_Bt if bool(padding_Bt.any()) else None
        made.append(QueryBlock(first, start, end, (later | (own != keys))[:, None], told))
    return made


def attend(
    q_BHTK: Tensor, k_BHTK: Tensor, v_BHTV: Tensor, blocks: Sequence[QueryBlock], scale: float
) -> tuple[Tensor, Tensor]:
    """softmax(scale q k) v, and the largest visible scale q k of each head, (H,), detached;
    padding, which sees itself to stay finite, has no part in it."""
    return _Attention.apply(q_BHTK, k_BHTK, v_BHTV, blocks, scale)  # type: ignore[return-value]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, blocks: Sequence[QueryBlock], scale: float
    ) -> tuple[Tensor, Tensor]:
        q = q * scale
        out = v.new_empty(v.shape)
        tops: list[Tensor] = []
        weights: list[Tensor] = []
        for first, start, end, hidden, padding in blocks:
            scores = q[:, :, start:end] @ k[:, :, first:end].mT
            scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
            scores.masked_fill_(hidden, float("-inf"))
            top_BHt = scores.amax(-1)
            if padding is not None:
                top_BHt.masked_fill_(padding[:, None], float("-inf"))
            tops.append(top_BHt.amax(dim=(0, 2)))
            weights.append(scores.softmax(-1).to(v.dtype))
            out[:, :, start:end] = weights[-1] @ v[:, :, first:end]
        ctx.blocks, ctx.scale = blocks, scale
        ctx.save_for_backward(q, k, v, out, *weights)
        top = torch.stack(tops).amax(0)
        ctx.mark_non_differentiable(top)
        return out, top

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """dS = P (dP - rowsum(dO O)), with dP = dO V^T."""
        q, k, v, out, *weights = ctx.saved_tensors
        dout = gradients[0]
        sums = (dout * out).sum(-1, keepdim=True)
        dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for (first, start, end, *_), weight in zip(ctx.blocks, weights, strict=True):
            own, keys = slice(start, end), slice(first, end)
            dv[:, :, keys] += weight.mT @ dout[:, :, own]
            dscores = dout[:, :, own] @ v[:, :, keys].mT
            dscores = dscores.sub_(sums[:, :, own]).mul_(weight)
            dq[:, :, own] = dscores @ k[:, :, keys]
            dk[:, :, keys] += dscores.mT @ q[:, :, own]
        return dq.mul_(ctx.scale), dk, dv, None, None
