"""Attention on a CPU: a block of queries at a time, over the keys that any of them may see.

Against whole score matrices this leaves out most of what no query sees, above the diagonal and
between documents, and most of the memory, and tells the largest logit of each head on the way.
Gradients are written out, so that scores are made once and changed in place.

Shape suffixes in this file: B = sequences, H = heads, J = heads of all sequences, T = tokens (t
those of one block), S = keys of a block, K = features of a query and key, V = of a value.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trainer.data.packing import PADDING

QUERIES = 64
"""Of a block: smaller ones skip more and cost more calls."""

IN_VAIN = 4096
"""Scores of a head that rows may make for nothing where that spares one of them its own block."""

Index = tuple[slice, slice]


class QueryBlock(NamedTuple):
    """Queries `start` to `end` of some rows, which see no key outside `first` to `end`."""

    rows: slice
    first: int
    start: int
    end: int
    bias_B1tS: Tensor
    """For the last S keys: -inf where a query may not see one, else 0. It sees all before them."""
    padding_B1t: Tensor | None
    """Queries that are of no document, whose logits are nobody's; None where all are of one."""

    def places(self, heads: int) -> tuple[Index, Index]:
        """Of its queries and of its keys, in tensors (J, T, ...)."""
        own = slice(self.rows.start * heads, self.rows.stop * heads)
        return (own, slice(self.start, self.end)), (own, slice(self.first, self.end))


def blocks_of(documents_BT: Tensor, starts_BT: Tensor) -> list[QueryBlock]:
    """`starts_BT`: where the document of each token starts, in its row."""
    length = documents_BT.shape[1]
    index_T = torch.arange(length)
    later_tt = torch.full((QUERIES, QUERIES), float("-inf")).triu_(1)
    made: list[QueryBlock] = []
    for start in range(0, length, QUERIES):
        end = min(start + QUERIES, length)
        padding_B1t = documents_BT[:, None, start:end] == PADDING
        padded = padding_B1t.flatten(1).any(1).tolist()
        firsts, lasts = starts_BT[:, start].tolist(), starts_BT[:, end - 1].tolist()
        for rows, first in _together(firsts, start, end):
            if firsts[rows] == lasts[rows] and max(firsts[rows]) == first:  # of one document each
                bias = later_tt[None, None, : end - start, : end - start]
            else:
                seen_from = starts_BT[rows, None, start:end, None]
                hidden = (index_T[first:end] < seen_from) | (
                    index_T[start:end, None] < index_T[first:end]
                )
                bias = torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))
            told = padding_B1t[rows] if any(padded[rows]) else None
            made.append(QueryBlock(rows, first, start, end, bias, told))
    return made


def _together(firsts: Sequence[int], start: int, end: int) -> Iterator[tuple[slice, int]]:
    """Neighbouring rows that share a block, and the first key of any of them."""
    begun, first = 0, firsts[0]
    for row, own in enumerate(firsts[1:], 1):
        both = min(first, own)
        wasted = (end - start) * ((row - begun) * (first - both) + own - both)
        if wasted > IN_VAIN:
            yield slice(begun, row), first
            begun, both = row, own
        first = both
    yield slice(begun, len(firsts)), first


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
        shape = q.shape[:2]
        q, k, v = (x.flatten(0, 1) for x in (q * scale, k, v))
        out = torch.empty_like(v)
        tops: list[Tensor] = []
        weights: list[Tensor] = []
        for block in blocks:
            own, keys = block.places(shape[1])
            scores = torch.bmm(q[own], k[keys].mT)
            scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
            scores_BHtS = scores.unflatten(0, (-1, shape[1]))
            scores_BHtS[..., -block.bias_B1tS.shape[-1] :].add_(block.bias_B1tS)
            top_BHt = scores_BHtS.amax(-1)
            if block.padding_B1t is not None:
                top_BHt.masked_fill_(block.padding_B1t, float("-inf"))
            tops.append(top_BHt.amax(dim=(0, 2)))
            weights.append(scores.softmax(-1).to(v.dtype))
            out[own] = torch.bmm(weights[-1], v[keys])
        ctx.blocks, ctx.scale, ctx.shape = blocks, scale, shape
        ctx.save_for_backward(q, k, v, out, *weights)
        top = torch.stack(tops).amax(0)
        ctx.mark_non_differentiable(top)
        return out.unflatten(0, shape), top

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """dS = P (dP - rowsum(dO O)), with dP = dO V^T."""
        q, k, v, out, *weights = ctx.saved_tensors
        dout = gradients[0].flatten(0, 1)
        sums = (dout * out).sum(-1, keepdim=True)
        dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for block, weight in zip(ctx.blocks, weights, strict=True):
            own, keys = block.places(ctx.shape[1])
            dscores = torch.bmm(dout[own], v[keys].mT)
            dscores.sub_(sums[own]).mul_(weight)
            dq[own] = torch.bmm(dscores, k[keys])
            dk[keys] += torch.bmm(dscores.mT, q[own])
            dv[keys] += torch.bmm(weight.mT, dout[own])
        dq.mul_(ctx.scale)
        return *(x.unflatten(0, ctx.shape) for x in (dq, dk, dv)), None, None
