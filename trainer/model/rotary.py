"""Rotary positions: angles per position, and the rotation of pairs of features.

Shape suffixes in this file: B = sequences, T = tokens, P = pairs of rotated features.
"""

import math
from typing import Any

import torch
from torch import Tensor

from trainer.model.config import TransformerConfig, YarnConfig


def inverse_frequencies(config: TransformerConfig) -> Tensor:
    """Radians a position for each pair, shape (P,), fp32; stretched where the config has YaRN."""
    dim = config.qk_rope_head_dim
    exponents = torch.arange(0, dim, 2, dtype=torch.float32) / dim
    inverse_P = 1.0 / (config.rope_theta**exponents)
    return inverse_P if config.yarn is None else _stretched(inverse_P, config.yarn, config)


def _stretched(inverse_P: Tensor, yarn: YarnConfig, config: TransformerConfig) -> Tensor:
    """Slow pairs divided by the factor, fast ones kept, a linear ramp over the pairs between.

    Where both ends of the ramp fall on one pair it becomes a step just above that pair, as in the
    released model, whose betas are equal.
    """
    dim = config.qk_rope_head_dim

    def pair_with(turns: float) -> float:
        """The (fractional) pair that turns so often over the original context."""
        wavelength = yarn.original_positions / (turns * 2 * math.pi)
        return dim * math.log(wavelength) / (2 * math.log(config.rope_theta))

    first = max(math.floor(pair_with(yarn.beta_fast)), 0)
    last = min(math.ceil(pair_with(yarn.beta_slow)), dim - 1)
    width = last - first or 0.001
    ramp_P = ((torch.arange(dim // 2, dtype=torch.float32) - first) / width).clamp(0, 1)
    return inverse_P / yarn.factor * ramp_P + inverse_P * (1 - ramp_P)


def _temperature(factor: float, strength: float) -> float:
    return 0.1 * strength * math.log(factor) + 1.0


def softmax_scale(config: TransformerConfig) -> float:
    """Factor on query times key: 1 / sqrt(head dim), times YaRN's correction squared."""
    scale = config.qk_head_dim**-0.5
    if config.yarn is not None:
        scale *= _temperature(config.yarn.factor, config.yarn.mscale_all_dim) ** 2
    return scale


def rotation_length(config: TransformerConfig) -> float:
    """Length of (cos, sin): what of YaRN's correction is not in the softmax scale."""
    yarn = config.yarn
    if yarn is None:
        return 1.0
    whole, in_scale = (_temperature(yarn.factor, s) for s in (yarn.mscale, yarn.mscale_all_dim))
    return whole / in_scale


def angles(
    config: TransformerConfig, inverse_P: Tensor, positions_BT: Tensor
) -> tuple[Tensor, Tensor]:
    """(cos, sin) for each token and pair, both (B, T, P), fp32."""
    angles_BTP = positions_BT[..., None].float() * inverse_P
    length = rotation_length(config)
    return angles_BTP.cos() * length, angles_BTP.sin() * length


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`x` (..., 2P) with features 2i and 2i + 1 turned as pair i; cos and sin (..., P).

    Computed in fp32, returned in x's dtype: pairs keep their places.
    """
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
    pairs = torch.view_as_complex(x.float().contiguous().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)
