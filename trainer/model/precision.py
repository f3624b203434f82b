"""The dtype of sums, norms and softmaxes: fp32, or float64 where that is asked for."""

import torch
from torch import Tensor


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """The wider of `dtype` and fp32."""
    return torch.promote_types(dtype, torch.float32)


def widened(x: Tensor) -> Tensor:
    """`x` in fp32 where it is narrower, else as it is: nothing is cut off."""
    return x.to(wide_dtype(x.dtype))
