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

TOKENS = 512
"""Whose logits are held at a time, at most."""

TOKENS_ON_CPU = 128
"""The same on a CPU, whose cache then keeps them between the product and their gradients."""


def summed_loss(model: Decoder, hidden_BTD: Tensor, targets_BT: Tensor) -> Tensor:
    """Cross-entropy summed over the learnt tokens, in nats; logits are made for these alone."""
    learnt_BT = targets_BT != IGNORE
    weight_VD = model.lm_head.weight
    return _SummedLoss.apply(  # type: ignore[return-value]
        hidden_BTD[learnt_BT], weight_VD, targets_BT[learnt_BT]
    )


class _SummedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor:
        learning = any(ctx.needs_input_grad)
        loss = hidden_ND.new_zeros((), dtype=torch.float32)
        dhidden_ND = torch.empty_like(hidden_ND)
        dweight_VD = torch.zeros_like(weight_VD, dtype=torch.float32)
        tokens = TOKENS if hidden_ND.is_cuda else min(TOKENS, TOKENS_ON_CPU)
        for start in range(0, len(hidden_ND), tokens):
            own = slice(start, start + tokens)
            hidden, targets = hidden_ND[own], targets_N[own, None]
            shares = (hidden @ weight_VD.T).float().log_softmax(-1)
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
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        dhidden_ND, dweight_VD = ctx.saved_tensors
        return dhidden_ND * gradients[0], dweight_VD * gradients[0], None
