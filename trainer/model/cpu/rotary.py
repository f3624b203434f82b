"""Rotation of pairs of features on a CPU."""

from typing import Any

import torch
from torch import Tensor


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As `trainer.model.rotary.rotate`."""
    return _Rotated.apply(x, torch.complex(cos, sin))  # type: ignore[return-value]


class _Rotated(torch.autograd.Function):
    """Pairs as complex numbers, times those of length 1 (or YaRN's): one product each way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, turn: Tensor) -> Tensor:
        ctx.save_for_backward(turn)
        return _turned(x, turn)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (turn,) = ctx.saved_tensors
        return _turned(gradients[0], turn.conj()), None


def _turned(x: Tensor, turn: Tensor) -> Tensor:
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    pairs = torch.view_as_complex(wide.contiguous().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)
