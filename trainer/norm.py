"""RMSNorm."""

import torch
from torch import Tensor, nn


class RmsNorm(nn.Module):
    """x / rms(x) * weight, computed in fp32. Source: https://arxiv.org/abs/1910.07467."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * scaled.to(x.dtype)
