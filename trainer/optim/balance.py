"""Loads of experts evened out by a bias on the choice, without a loss.

Source: https://arxiv.org/abs/2412.19437 section 2.1.2, in the form with zero mean of
https://arxiv.org/abs/2502.16982. Shape suffixes: L = layers with experts, E = experts.
"""

import torch
from torch import Tensor

from trainer.model.decoder import Decoder
from trainer.model.experts import MixtureOfExperts


@torch.no_grad()
def move_router_bias(model: Decoder, load_LE: Tensor, *, rate: float) -> None:
    """Once a step: experts that got less than the mean are chosen more readily by `rate`.

    `load_LE`: tokens sent to each expert over all micro-batches of the step. The biases of a layer
    keep their mean.
    """
    mixtures = [m for m in model.modules() if isinstance(m, MixtureOfExperts)]
    for mixture, load_E in zip(mixtures, load_LE.float(), strict=True):
        lack_E = (load_E.mean() - load_E).sign()
        bias_E = mixture.gate.e_score_correction_bias
        bias_E.add_((lack_E - lack_E.mean()).to(bias_E.device), alpha=rate)


def load_excess(load_LE: Tensor) -> float:
    """How far the busiest expert is over its share, on average over the layers: 0 is even."""
    if not load_LE.numel():
        return 0.0
    load_LE = load_LE.float()
    return (load_LE.amax(-1) / load_LE.mean(-1).clamp_min(1e-9) - 1).mean().item()
