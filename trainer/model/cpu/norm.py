"""RMSNorm's scaling. Taken op by op its gradients cost three times as much."""

from typing import Any

import torch
from torch import Tensor


def scaled(x: Tensor, eps: float) -> Tensor:
    """x / rms(x), computed in fp32 at least."""
    return _Scaled.apply(x, eps)  # type: ignore[return-value]


class _Scaled(torch.autograd.Function):
    """y = x / rms(x)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, eps: float) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        inverse = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, inverse)
        return (wide * inverse).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """dx = (dy - y mean(dy y)) / rms(x)."""
        x, inverse = ctx.saved_tensors
        y, dy = x.to(inverse.dtype) * inverse, gradients[0].to(inverse.dtype)
        along = (dy * y).mean(-1, keepdim=True)
        return (torch.addcmul(dy, y, along, value=-1) * inverse).to(x.dtype), None
