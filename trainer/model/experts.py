"""The feed-forward half of a layer: one network, or a mixture of experts behind a router.

No token is dropped: an expert takes as many as are sent to it.

Shape suffixes in this file: N = tokens, D = features of the model, M = features inside an expert,
E = experts, K = experts of a token, G = groups of experts.
"""

from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trainer.model import cpu
from trainer.model.config import TransformerConfig
from trainer.model.layers import Linear
from trainer.model.paths import ComputePath
from trainer.model.precision import widened


class FeedForward(nn.Module):
    """SwiGLU: down(silu(gate(x)) * up(x))."""

    def __init__(self, config: TransformerConfig, inner: int) -> None:
        super().__init__()
        self.gate_proj = Linear(config.hidden_size, inner, bias=False)
        self.up_proj = Linear(config.hidden_size, inner, bias=False)
        self.down_proj = Linear(inner, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Routed(NamedTuple):
    experts_NK: Tensor
    weights_NK: Tensor
    """Scaled; fp32 at least."""
    scores_NE: Tensor
    """Sigmoids of the router's logits; fp32 at least."""
    agreed_2: Tensor | None = None
    """Where experts were given: how many, and how many of them the router would have chosen."""


class Router(nn.Module):
    """Sigmoid scores; the bias steers who is chosen and never how much is heard.

    Source: https://arxiv.org/abs/2412.19437 section 2.1.2.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.weight = nn.Parameter(torch.empty(config.num_experts, config.hidden_size))
        self.register_buffer("e_score_correction_bias", torch.zeros(config.num_experts))
        self.e_score_correction_bias: Tensor
        """fp32 whatever the model's dtype; moved by `trainer.optim.balance`, not by gradients."""

    def forward(self, x_ND: Tensor, given_NK: Tensor | None = None) -> Routed:
        """`given_NK`: experts to send the tokens to in place of those that the router would choose;
        where all of a token's are negative it chooses. How much each is heard is reckoned from the
        scores of now in any case, with their gradients, also where the router would choose others.
        """
        config = self.config
        scores_NE = F.linear(widened(x_ND), widened(self.weight)).sigmoid()
        choice_NE = scores_NE.detach() + widened(self.e_score_correction_bias)
        if config.num_groups > 1:
            choice_NE = self._within_best_groups(choice_NE)
        experts_NK = choice_NE.topk(config.experts_per_token, dim=-1, sorted=False).indices
        agreed_2 = None
        if given_NK is not None:
            agreed_2 = _agreed(given_NK, experts_NK)
            experts_NK = torch.where(given_NK < 0, experts_NK, given_NK)
        weights_NK = scores_NE.gather(1, experts_NK)
        if config.normalize_weights:
            weights_NK = weights_NK / (weights_NK.sum(-1, keepdim=True) + 1e-20)
        return Routed(experts_NK, weights_NK * config.routed_scale, scores_NE, agreed_2)

    def _within_best_groups(self, choice_NE: Tensor) -> Tensor:
        """A group is as good as its two best experts together; the others are out of reach."""
        grouped_NGE = choice_NE.unflatten(1, (self.config.num_groups, -1))
        worth_NG = grouped_NGE.topk(2, dim=-1).values.sum(-1)
        best = worth_NG.topk(self.config.groups_per_token, dim=-1, sorted=False).indices
        closed_NG = torch.ones_like(worth_NG, dtype=torch.bool).scatter(1, best, False)
        return grouped_NGE.masked_fill(closed_NG[..., None], float("-inf")).flatten(1)


def _agreed(given_NK: Tensor, own_NK: Tensor) -> Tensor:
    """Of the given experts how many there are, and how many of them are the router's own, (2,)."""
    same_NK = (given_NK[:, :, None] == own_NK[:, None]).any(-1)
    return torch.stack([(given_NK >= 0).sum(), same_NK.sum()])


class Experts(nn.Module):
    """All routed experts of a layer as stacks, so that they run, and are optimised, together."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width, inner, count = config.hidden_size, config.moe_intermediate_size, config.num_experts
        self.gate_proj = nn.Parameter(torch.empty(count, inner, width))
        self.up_proj = nn.Parameter(torch.empty(count, inner, width))
        self.down_proj = nn.Parameter(torch.empty(count, width, inner))

    def forward(self, x_ND: Tensor, routed: Routed, path: ComputePath = ComputePath.CPU) -> Tensor:
        sent = routed.experts_NK.flatten()
        order = sent.argsort(stable=True)  # places of the sent copies, expert by expert
        counts_E = sent_to(routed.experts_NK, len(self.gate_proj))
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=order.device)
        weights_NK = routed.weights_NK.to(x_ND.dtype)
        if path is ComputePath.CPU:
            back_NK = back.view_as(routed.experts_NK)
            stacks = (self.gate_proj, self.up_proj, self.down_proj)
            copies = cpu.sent(x_ND, order, back_NK)
            made = cpu.grouped_swiglu(copies, *stacks, counts=counts_E.tolist())
            return cpu.heard(made, weights_NK, order, back_NK)
        copies = x_ND[:, None].expand(-1, routed.experts_NK.shape[1], -1).flatten(0, 1)
        made = self._run(_permuted(copies, order, back), counts_E)
        made_NKD = _permuted(made, back, order).unflatten(0, routed.experts_NK.shape)
        return (made_NKD * weights_NK[..., None]).sum(1)

    def _run(self, copies: Tensor, counts_E: Tensor) -> Tensor:
        """Nothing padded: an expert's rows lie together."""
        product = partial(F.grouped_mm, offs=counts_E.cumsum(0).to(torch.int32))
        inner = F.silu(product(copies, self.gate_proj.mT)) * product(copies, self.up_proj.mT)
        return product(inner, self.down_proj.mT)


def _permuted(rows: Tensor, order: Tensor, back: Tensor) -> Tensor:
    """`rows[order]`, `back` being the way back: its gradient is moved and not added up."""
    return _Permuted.apply(rows, order, back)  # type: ignore[return-value]


class _Permuted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return rows.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (back,) = ctx.saved_tensors
        return gradients[0].index_select(0, back), None, None


class Mixed(NamedTuple):
    x: Tensor
    load_E: Tensor
    """Tokens sent to each expert, detached."""
    imbalance: Tensor
    """Sequence balance loss before its weight: 1 when every expert gets its share."""
    agreed_2: Tensor | None = None
    """See `Routed`."""


class MixtureOfExperts(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.gate = Router(config)
        self.experts = Experts(config)
        shared = config.num_shared_experts * config.moe_intermediate_size
        self.shared_experts = FeedForward(config, shared) if shared else None

    def forward(
        self,
        x_BTD: Tensor,
        real_BT: Tensor | None = None,
        path: ComputePath = ComputePath.CPU,
        given_BTK: Tensor | None = None,
    ) -> Mixed:
        """`real_BT`: the tokens that count for load and balance; None: all do. `given_BTK`: see
        `Router.forward`."""
        x_ND = x_BTD.flatten(0, 1)
        routed = self.gate(x_ND, None if given_BTK is None else given_BTK.flatten(0, 1))
        y_ND = self.experts(x_ND, routed, path)
        if self.shared_experts is not None:
            y_ND = y_ND + self.shared_experts(x_ND)
        if real_BT is None:
            real_BT = torch.ones(x_BTD.shape[:2], dtype=torch.bool, device=x_BTD.device)
        load_E = sent_to(routed.experts_NK, self.config.num_experts, real_BT.flatten())
        imbalance = sequence_imbalance(routed, real_BT)
        return Mixed(y_ND.view_as(x_BTD), load_E, imbalance, routed.agreed_2)


def sent_to(experts_NK: Tensor, num_experts: int, real_N: Tensor | None = None) -> Tensor:
    """Tokens sent to each expert, (E,): of those that are real, or of all. Counted where they lie:
    `bincount` and masked selection make the host wait for their sizes."""
    one_NK = torch.ones_like(experts_NK)
    if real_N is not None:
        one_NK = one_NK * real_N[:, None]
    none_E = experts_NK.new_zeros(num_experts)
    return none_E.scatter_add(0, experts_NK.flatten(), one_NK.flatten())


def sequence_imbalance(routed: Routed, real_BT: Tensor) -> Tensor:
    """Mean over sequences of sum_i f_i P_i: f_i = E/(K T) x tokens sent to i, P_i = its mean share
    of the scores, over the T tokens that are real. Source: https://arxiv.org/abs/2412.19437
    equations 17 to 20.
    """
    scores_BTE = routed.scores_NE.unflatten(0, real_BT.shape)
    experts_BTK = routed.experts_NK.unflatten(0, real_BT.shape)
    real_BT1 = real_BT[..., None].to(scores_BTE.dtype)
    tokens_B1 = real_BT1.sum(1).clamp_min(1)
    share_BTE = scores_BTE / scores_BTE.sum(-1, keepdim=True)
    share_BE = (share_BTE * real_BT1).sum(1) / tokens_B1
    counts_BE = torch.zeros_like(share_BE).scatter_add(
        1, experts_BTK.flatten(1), real_BT1.expand_as(experts_BTK).flatten(1)
    )
    even_B1 = tokens_B1 * experts_BTK.shape[-1] / scores_BTE.shape[-1]
    return (counts_BE / even_B1 * share_BE).sum(-1).mean()
