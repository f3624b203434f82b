"""RMSNorm on a CPU. Taken op by op its gradients cost three times as much."""

from typing import Any

import torch
from torch import Tensor


def normed(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / rms(x) * weight, computed in fp32 at least."""
    return _Normed.apply(x, weight, eps)  # type: ignore[return-value]


class _Normed(torch.autograd.Function):
    """y w, with y = x / rms(x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        inverse = length.square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        y = (wide * inverse).to(x.dtype)
        ctx.save_for_backward(y, inverse, weight)
        return y * weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """dx = (dy w - y mean(dy w y)) / rms(x)."""
        y, inverse, weight = ctx.saved_tensors
        wide, wide_weight, dout = (t.to(inverse.dtype) for t in (y, weight, gradients[0]))
        along = dout * wide
        dweight = along.flatten(0, -2).sum(0)
        mean = (along @ wide_weight).div_(y.shape[-1]).unsqueeze(-1)
        dx = torch.mul(dout, wide_weight, out=along).addcmul_(wide, mean, value=-1).mul_(inverse)
        return dx.to(y.dtype), dweight.to(weight.dtype), None
