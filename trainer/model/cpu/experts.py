"""Experts on a CPU: rows sent to them, their networks group by group, and what is heard of them.

Shape suffixes in this file: N = tokens, D = features of the model, K = experts of a token.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def grouped_swiglu(
    rows: Tensor, gate: Tensor, up: Tensor, down: Tensor, *, counts: Sequence[int]
) -> Tensor:
    """SwiGLU of each group of so many rows by its own matrices of the stacks, shape (E, out, in);
    torch's grouped product, on a CPU, takes several times as long."""
    return _GroupedSwiglu.apply(rows, gate, up, down, counts)  # type: ignore[return-value]


class _GroupedSwiglu(torch.autograd.Function):
    """Group by group, so that what is between two products stays in the processor's cache."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, gate: Tensor, up: Tensor, down: Tensor, counts: Sequence[int]
    ) -> Tensor:
        gated = rows.new_empty(len(rows), gate.shape[1])
        upped, made = torch.empty_like(gated), torch.empty_like(rows)
        groups = (x.split(counts) for x in (rows, gated, upped, made))
        matrices = (stack.mT for stack in (gate, up, down))
        for x, g, u, out, to_g, to_u, to_out in zip(*groups, *matrices, strict=True):
            torch.mm(x, to_g, out=g)
            torch.mm(x, to_u, out=u)
            torch.mm(F.silu(g).mul_(u), to_out, out=out)
        ctx.counts = counts
        ctx.save_for_backward(rows, gate, up, down, gated, upped)
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, gate, up, down, gated, upped = ctx.saved_tensors
        drows, *dstacks = (torch.empty_like(x) for x in (rows, gate, up, down))
        groups = (x.split(ctx.counts) for x in (rows, gated, upped, gradients[0], drows))
        stacks = (gate, up, down, *dstacks)
        for x, g, u, dout, dx, to_g, to_u, to_out, dto_g, dto_u, dto_out in zip(
            *groups, *stacks, strict=True
        ):
            share = g.sigmoid()
            silu = g * share
            torch.mm(dout.T, silu * u, out=dto_out)
            dinner = dout @ to_out
            du = dinner * silu
            slope = (share + silu).addcmul_(silu, share, value=-1)  # of silu at g
            dg = dinner.mul_(u).mul_(slope)
            torch.mm(dg.T, x, out=dto_g)
            torch.mm(du.T, x, out=dto_u)
            torch.mm(dg, to_g, out=dx).addmm_(du, to_u)
        return drows, *dstacks, None


def sent(x_ND: Tensor, order: Tensor, back_NK: Tensor) -> Tensor:
    """The rows of tokens, once for each expert of theirs, in this order; `back_NK`: the places
    where those of a token lie."""
    return _Sent.apply(x_ND, order, back_NK)  # type: ignore[return-value]


class _Sent(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, order: Tensor, back_NK: Tensor) -> Tensor:
        ctx.save_for_backward(back_NK)
        return x_ND.index_select(0, order // back_NK.shape[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (back_NK,) = ctx.saved_tensors
        return F.embedding_bag(back_NK, gradients[0], mode="sum"), None, None


def heard(made: Tensor, weights_NK: Tensor, order: Tensor, back_NK: Tensor) -> Tensor:
    """What the experts of each token made, added up by their weights."""
    return _Heard.apply(made, weights_NK, order, back_NK)  # type: ignore[return-value]


class _Heard(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, made: Tensor, weights_NK: Tensor, order: Tensor, back_NK: Tensor
    ) -> Tensor:
        ctx.save_for_backward(made, weights_NK, order, back_NK)
        return F.embedding_bag(back_NK, made, per_sample_weights=weights_NK, mode="sum")

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        made, weights_NK, order, back_NK = ctx.saved_tensors
        copies = gradients[0].index_select(0, order // back_NK.shape[1])
        dweights = (made * copies).sum(-1)[back_NK]
        return copies.mul_(weights_NK.flatten()[order, None]), dweights, None, None
