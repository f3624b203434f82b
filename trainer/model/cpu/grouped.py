"""Products of groups of rows with a matrix each."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor


def grouped_product(rows: Tensor, stack: Tensor, *, ends: Sequence[int]) -> Tensor:
    """`rows[a:b] @ stack[e]` for each e, a and b being the ends of groups e - 1 and e: torch's
    grouped product, which on a CPU takes several times as long."""
    return _GroupedProduct.apply(rows, stack, ends)  # type: ignore[return-value]


class _GroupedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, stack: Tensor, ends: Sequence[int]) -> Tensor:
        ctx.ends = ends
        ctx.save_for_backward(rows, stack)
        made = rows.new_empty(len(rows), stack.shape[2])
        for matrix, (a, b) in zip(stack, pairwise((0, *ends)), strict=True):
            torch.mm(rows[a:b], matrix, out=made[a:b])
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        rows, stack = ctx.saved_tensors
        dmade = gradients[0].contiguous()
        drows, dstack = torch.empty_like(rows), torch.empty_like(stack)
        for e, (a, b) in enumerate(pairwise((0, *ctx.ends))):
            torch.mm(dmade[a:b], stack[e].T, out=drows[a:b])
            torch.mm(rows[a:b].T, dmade[a:b], out=dstack[e])
        return drows, dstack, None
