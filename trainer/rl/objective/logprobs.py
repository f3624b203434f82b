"""Log-probabilities of tokens over a large vocabulary, with the entropies of their distributions,
without ever holding all logits.

Logits are made a stretch of tokens at a time, and once more for the gradients, since these hang on
what the objective makes of all tokens of a sample.

Shape suffixes in this file: B = rows, T = tokens, N = tokens that are learnt, D = features,
V = vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from trainer.model.decoder import Decoder
from trainer.model.precision import wide_dtype
from trainer.optim.loss import tokens_at_a_time


class TokenLogprobs(NamedTuple):
    logprobs_N: Tensor
    """Of each token under the model, at temperature 1; fp32 at least."""
    entropies_N: Tensor
    """Of the distribution that each token is one of, in nats."""


def token_logprobs(
    model: Decoder, hidden_BTD: Tensor, targets_BT: Tensor, learnt_N: Tensor
) -> TokenLogprobs:
    """Of the targets at the places `learnt_N` of the flattened batch; logits are made for these
    alone, and nothing at another place has a gradient."""
    hidden_ND = hidden_BTD.flatten(0, 1).index_select(0, learnt_N)
    targets_N = targets_BT.flatten().index_select(0, learnt_N)
    made: Any = _TokenLogprobs.apply(hidden_ND, model.lm_head.weight, targets_N)
    return TokenLogprobs(*made)


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor
    ) -> tuple[Tensor, Tensor]:
        wide = wide_dtype(hidden_ND.dtype)
        norms_N, logprobs_N, entropies_N = (
            hidden_ND.new_empty(len(hidden_ND), dtype=wide) for _ in range(3)
        )
        tokens = tokens_at_a_time(hidden_ND.device)
        for start in range(0, len(hidden_ND), tokens):
            own = slice(start, start + tokens)
            logits = (hidden_ND[own] @ weight_VD.T).to(wide)
            norms_N[own] = logits.logsumexp(-1)
            logits -= norms_N[own, None]
            logprobs_N[own] = logits.gather(1, targets_N[own, None]).squeeze(1)
            entropies_N[own] = -(logits.exp() * logits).sum(-1)
        ctx.save_for_backward(hidden_ND, weight_VD, targets_N, norms_N, entropies_N)
        ctx.set_materialize_grads(False)
        return logprobs_N, entropies_N

    @staticmethod
    @once_differentiable
    def backward(  # type: ignore[override]
        ctx: Any, *gradients: Tensor | None
    ) -> tuple[Tensor, Tensor, None]:
        """With p for the shares, e for the target and H for the entropy:

        d logprob / d logits = e - p,    d H / d logits = -p (log p + H).
        """
        dlogprobs_N, dentropies_N = gradients
        hidden_ND, weight_VD, targets_N, norms_N, entropies_N = ctx.saved_tensors
        dhidden_ND = torch.empty_like(hidden_ND)
        dweight_VD = torch.zeros_like(weight_VD, dtype=norms_N.dtype)
        tokens = tokens_at_a_time(hidden_ND.device)
        for start in range(0, len(hidden_ND), tokens):
            own = slice(start, start + tokens)
            hidden = hidden_ND[own]
            logs = (hidden @ weight_VD.T).to(norms_N.dtype) - norms_N[own, None]
            shares = logs.exp()
            factors = torch.zeros_like(norms_N[own, None])
            if dlogprobs_N is not None:
                factors = factors - dlogprobs_N[own, None]
            if dentropies_N is not None:
                factors = factors - dentropies_N[own, None] * logs.add_(entropies_N[own, None])
            dlogits = shares.mul_(factors)
            if dlogprobs_N is not None:
                dlogits.scatter_add_(1, targets_N[own, None], dlogprobs_N[own, None])
            dlogits = dlogits.to(hidden.dtype)
            torch.mm(dlogits, weight_VD, out=dhidden_ND[own])
            dweight_VD += dlogits.T @ hidden
        return dhidden_ND, dweight_VD.to(weight_VD.dtype), None
