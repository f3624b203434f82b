"""Rotary positions: angles per position, and the rotation of pairs of features.

Shape suffixes in this file: B = sequences, T = tokens, P = pairs of rotated features.
"""

import math

import torch
from torch import Tensor

from trainer.model import cpu
from trainer.model.config import TransformerConfig, YarnConfig
from trainer.model.paths import ComputePath
from trainer.model.precision import widened


def inverse_frequencies(config: TransformerConfig, dtype: torch.dtype = torch.float32) -> Tensor:
    """Radians a position for each pair, shape (P,); stretched where the config has YaRN."""
    dim = config.qk_rope_head_dim
    exponents = torch.arange(0, dim, 2, dtype=dtype) / dim
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
    ramp_P = ((torch.arange(dim // 2, dtype=inverse_P.dtype) - first) / width).clamp(0, 1)
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
    """(cos, sin) for each token and pair, both (B, T, P), in fp32 at least."""
    inverse_P = widened(inverse_P)
    angles_BTP = positions_BT[..., None].to(inverse_P.dtype) * inverse_P
    length = rotation_length(config)
    return angles_BTP.cos() * length, angles_BTP.sin() * length


def rotate(x: Tensor, cos: Tensor, sin: Tensor, path: ComputePath = ComputePath.CPU) -> Tensor:
    """`x` (..., 2P) with features 2i and 2i + 1 turned as pair i; cos and sin (..., P).

    Computed in fp32 at least, returned in x's dtype: pairs keep their places.
    """
    if path is ComputePath.CPU:
        return cpu.rotated(x, cos, sin)
    even, odd = widened(x).unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1)
    return turned.flatten(-2).to(x.dtype)
