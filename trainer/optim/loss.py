"""Cross-entropy of many tokens over a large vocabulary, without ever holding all logits.

The gradients of a stretch of tokens are made as soon as its logits are, in their place.

Shape suffixes in this file: B = rows, T = tokens, N = tokens that are learnt, D = features,
V = vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from trainer.data.packing import IGNORE
from trainer.model.decoder import Decoder
from trainer.model.precision import wide_dtype

TOKENS = 2048
"""Whose logits are held at a time, at most. Once a time the head's gradient is added to, all of it:
by fewer tokens that takes a device as long as the products."""

TOKENS_ON_CPU = 128
"""The same on a CPU, whose cache then keeps them between the product and their gradients."""


def tokens_at_a_time(device: torch.device) -> int:
    return min(TOKENS, TOKENS_ON_CPU) if device.type == "cpu" else TOKENS


def learnt_places(targets_BT: Tensor) -> Tensor:
    """Of the learnt tokens, in the flattened batch, (N,). A device is waited for."""
    return (targets_BT != IGNORE).flatten().nonzero().squeeze(1)


def summed_loss(
    model: Decoder, hidden_BTD: Tensor, targets_BT: Tensor, learnt_N: Tensor | None = None
) -> Tensor:
    """Cross-entropy summed over the learnt tokens, in nats; logits are made for these alone.

    `learnt_N`: their places where the caller has them, so that a device need not be waited for.
    """
    if learnt_N is None:
        learnt_N = learnt_places(targets_BT)
    hidden_ND = hidden_BTD.flatten(0, 1).index_select(0, learnt_N)
    targets_N = targets_BT.flatten().index_select(0, learnt_N)
    weight_VD = model.lm_head.weight
    # told from here: inside of a function gradients are off, and its inputs want them in any case
    learning = torch.is_grad_enabled()
    return _SummedLoss.apply(hidden_ND, weight_VD, targets_N, learning)  # type: ignore[return-value]


class _SummedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, learning: bool
    ) -> Tensor:
        wide = wide_dtype(hidden_ND.dtype)
        loss = hidden_ND.new_zeros((), dtype=wide)
        held = slice(None) if learning else slice(0)  # nothing, where nobody learns from it
        dhidden_ND = torch.empty_like(hidden_ND[held])
        dweight_VD = torch.zeros_like(weight_VD[held], dtype=wide)
        tokens = tokens_at_a_time(hidden_ND.device)
        for start in range(0, len(hidden_ND), tokens):
            own = slice(start, start + tokens)
            hidden, targets = hidden_ND[own], targets_N[own, None]
            shares = (hidden @ weight_VD.T).to(wide).log_softmax(-1)
            loss -= shares.gather(1, targets).sum()
            if learning:  # the gradient of the logits: shares less 1 at the target
                shares.exp_().scatter_add_(1, targets, shares.new_full(targets.shape, -1.0))
                shares = shares.to(hidden.dtype)
                torch.mm(shares, weight_VD, out=dhidden_ND[own])
                dweight_VD += shares.T @ hidden
        if learning:
            ctx.save_for_backward(dhidden_ND, dweight_VD.to(weight_VD.dtype))
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        dhidden_ND, dweight_VD = ctx.saved_tensors
        return dhidden_ND * gradients[0], dweight_VD * gradients[0], None, None
