"""RMSNorm."""

import torch
from torch import Tensor, nn

from trainer.model import cpu
from trainer.model.paths import ComputePath
from trainer.model.precision import widened


class RmsNorm(nn.Module):
    """x / rms(x) * weight, computed in fp32 at least. Source: https://arxiv.org/abs/1910.07467."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor, path: ComputePath = ComputePath.CPU) -> Tensor:
        if path is ComputePath.CPU:
            return cpu.normed(x, self.weight, self.eps)
        wide = widened(x)
        inverse = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * (wide * inverse).to(x.dtype)
