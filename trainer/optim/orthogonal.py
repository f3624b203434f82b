"""Newton-Schulz: the nearest semi-orthogonal matrix by matrix products alone.

Shape suffixes in this file: S = matrices in a stack, O = rows, I = columns.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

CACHED = 2**17
"""Entries of matrices that a CPU takes together: what it makes of them stays in its cache."""

Coefficients = Literal["muon", "quintic", "polar_express"]


class Iteration(NamedTuple):
    steps: tuple[tuple[float, float, float], ...]
    """(a, b, c) of X <- a X + (b G + c G^2) X with G = X X^T, one for each step."""
    safety: float
    """The matrix is divided by so many times its Frobenius norm: rounding must not push a singular
    value over the bound that the coefficients were made for."""


ITERATIONS: dict[Coefficients, Iteration] = {
    # Steepest slope at zero; singular values end within about 0.7 to 1.2, updates at 0.14 to 0.18
    # of RMS where 0.2 was meant. https://kellerjordan.github.io/posts/muon/
    "muon": Iteration(((3.4445, -4.7750, 2.0315),) * 5, 1.0),
    # Each step with coefficients of its own, fitted so that values end near 1.
    # https://leloykun.github.io/ponder/muon-opt-coeffs/
    "quintic": Iteration(
        (
            (4.0848, -6.8946, 2.9270),
            (3.9505, -6.3029, 2.6377),
            (3.7418, -5.5913, 2.3037),
            (2.8769, -3.1427, 1.2046),
            (2.8366, -3.0525, 1.2012),
        ),
        1.0,
    ),
    # Optimal polynomials step by step. https://arxiv.org/abs/2505.16932
    "polar_express": Iteration(
        (
            (8.156554524902461, -22.48329292557795, 15.878769915207462),
            (4.042929935166739, -2.808917465908714, 0.5000178451051316),
            (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
            (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
            (2.3465413258596377, -1.7097828382687081, 0.42323551169305323),
        ),
        1.02,
    ),
}


def orthogonalize(g_SOI: Tensor, coefficients: Coefficients = "quintic") -> Tensor:
    """U V^T of every matrix in the stack, roughly; zero stays zero.

    Five steps of three products each, on the smaller side, in g's dtype.
    """
    wide = g_SOI.shape[-2] <= g_SOI.shape[-1]
    x = g_SOI if wide else g_SOI.mT
    on_cpu = x.device.type == "cpu"
    at_once = max(1, CACHED * len(x) // max(1, x.numel())) if on_cpu else len(x)
    made = torch.empty_like(x, memory_format=torch.contiguous_format)
    for own, out in zip(x.split(at_once), made.split(at_once), strict=True):
        out.copy_(_orthogonal(own, ITERATIONS[coefficients]))
    return made if wide else made.mT


def _orthogonal(x: Tensor, iteration: Iteration) -> Tensor:
    """Of matrices that are no taller than wide."""
    x = x / (x.norm(dim=(-2, -1), keepdim=True) * iteration.safety + 1e-7)  # spectral norm <= 1
    for a, b, c in iteration.steps:
        gram = x @ x.mT
        poly = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, poly, x, beta=a)
    return x
