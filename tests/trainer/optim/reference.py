"""MuonClip written out plainly, in float64, a matrix and a head at a time: what the fast version
is compared with, and the place to read what it does."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from trainer.optim.orthogonal import ITERATIONS, Coefficients


def newton_schulz(g: Tensor, coefficients: Coefficients) -> Tensor:
    """Of one matrix of any shape."""
    steps, safety = ITERATIONS[coefficients]
    x = g.double() / (g.double().norm() * safety + 1e-7)
    for a, b, c in steps:
        # on the left side whatever the shape: on the right it gives the same, for it is odd in x
        gram = x @ x.mT
        x = a * x + b * gram @ x + c * gram @ gram @ x
    return x


def muon(
    weight: Tensor,
    gradients: Sequence[Tensor],
    *,
    lr: float,
    momentum: float,
    weight_decay: float,
    rms: float,
    coefficients: Coefficients,
    nesterov: bool = False,
) -> Tensor:
    """The weight after one step for each gradient."""
    w, m = weight.double(), torch.zeros_like(weight, dtype=torch.float64)
    for gradient in gradients:
        m = momentum * m + gradient.double()
        wanted = gradient.double() + momentum * m if nesterov else m
        update = newton_schulz(wanted, coefficients) * math.sqrt(max(w.shape)) * rms
        w = w - lr * (update + weight_decay * w)
    return w


def adamw(
    weight: Tensor,
    gradients: Sequence[Tensor],
    *,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> Tensor:
    """The weight after one step for each gradient. Source: https://arxiv.org/abs/1711.05101."""
    w = weight.double()
    mean, square = torch.zeros_like(w), torch.zeros_like(w)
    for step, gradient in enumerate(gradients, 1):
        g = gradient.double()
        mean = betas[0] * mean + (1 - betas[0]) * g
        square = betas[1] * square + (1 - betas[1]) * g * g
        update = (mean / (1 - betas[0] ** step)) / ((square / (1 - betas[1] ** step)).sqrt() + eps)
        w = w - lr * (update + weight_decay * w)
    return w


def clip_head(
    q_nope: Tensor, q_rope: Tensor, k_nope: Tensor, top: float, *, tau: float, alpha: float = 0.5
) -> tuple[Tensor, Tensor, Tensor]:
    """The weights of one head (rows of its own) whose largest logit was `top`."""
    if not math.isfinite(top) or top <= tau:
        return q_nope, q_rope, k_nope
    gamma = tau / top
    return q_nope * gamma**alpha, q_rope * gamma, k_nope * gamma ** (1 - alpha)
