"""Loads of experts evened out by a bias on the choice, without a loss.

Source: https://arxiv.org/abs/2412.19437 section 2.1.2, in the form with zero mean of
https://arxiv.org/abs/2502.16982. Shape suffixes: L = layers with experts, E = experts.
"""

import torch
from torch import Tensor

from trainer.model.decoder import Decoder
from trainer.model.experts import MixtureOfExperts


@torch.no_grad()
def move_router_bias(
    model: Decoder, load_LE: Tensor, *, rate: float, taken: Tensor | None = None
) -> None:
    """Once a step: experts that got less than the mean are chosen more readily by `rate`.

    `load_LE`: tokens sent to each expert over all micro-batches of the step. The biases of a layer
    keep their mean. `taken`: a single bool; where it is false nothing is changed.
    """
    for bias_E, load_E in zip(router_biases(model), load_LE.double(), strict=True):
        lack_E = (load_E.mean() - load_E).sign()
        moved_E = bias_E + (lack_E - lack_E.mean()).to(bias_E.dtype) * rate
        bias_E.copy_(moved_E if taken is None else torch.where(taken, moved_E, bias_E))


def router_biases(model: Decoder) -> list[Tensor]:
    """By layer with experts."""
    mixtures = (m for m in model.modules() if isinstance(m, MixtureOfExperts))
    return [mixture.gate.e_score_correction_bias for mixture in mixtures]


def load_excess(load_LE: Tensor) -> Tensor:
    """How far the busiest expert is over its share, on average over the layers: 0 is even."""
    if not load_LE.numel():
        return torch.zeros((), device=load_LE.device)
    shares_LE = load_LE.double()
    return (shares_LE.amax(-1) / shares_LE.mean(-1).clamp_min(1e-9) - 1).mean()
