"""The feed-forward half of a layer: one network, or a mixture of experts behind a router.

No token is dropped: an expert takes as many as are sent to it.

Shape suffixes in this file: N = tokens, D = features of the model, M = features inside an expert,
E = experts, K = experts of a token, G = groups of experts.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trainer.model.config import TransformerConfig


class FeedForward(nn.Module):
    """SwiGLU: down(silu(gate(x)) * up(x))."""

    def __init__(self, config: TransformerConfig, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, inner, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, inner, bias=False)
        self.down_proj = nn.Linear(inner, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Routed(NamedTuple):
    experts_NK: Tensor
    weights_NK: Tensor
    """fp32, scaled."""
    scores_NE: Tensor
    """Sigmoids of the router's logits, fp32."""


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
        """fp32 whatever the model's type; moved by `trainer.optim.balance`, not by gradients."""

    def forward(self, x_ND: Tensor) -> Routed:
        config = self.config
        scores_NE = F.linear(x_ND.float(), self.weight.float()).sigmoid()
        choice_NE = scores_NE.detach() + self.e_score_correction_bias.float()
        if config.num_groups > 1:
            choice_NE = self._within_best_groups(choice_NE)
        experts_NK = choice_NE.topk(config.experts_per_token, dim=-1, sorted=False).indices
        weights_NK = scores_NE.gather(1, experts_NK)
        if config.normalize_weights:
            weights_NK = weights_NK / (weights_NK.sum(-1, keepdim=True) + 1e-20)
        return Routed(experts_NK, weights_NK * config.routed_scale, scores_NE)

    def _within_best_groups(self, choice_NE: Tensor) -> Tensor:
        """A group is as good as its two best experts together; the others are out of reach."""
        grouped_NGE = choice_NE.unflatten(1, (self.config.num_groups, -1))
        worth_NG = grouped_NGE.topk(2, dim=-1).values.sum(-1)
        best = worth_NG.topk(self.config.groups_per_token, dim=-1, sorted=False).indices
        closed_NG = torch.ones_like(worth_NG, dtype=torch.bool).scatter(1, best, False)
        return grouped_NGE.masked_fill(closed_NG[..., None], float("-inf")).flatten(1)


class Experts(nn.Module):
    """All routed experts of a layer as stacks, so that they run, and are optimised, together."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width, inner, count = config.hidden_size, config.moe_intermediate_size, config.num_experts
        self.gate_proj = nn.Parameter(torch.empty(count, inner, width))
        self.up_proj = nn.Parameter(torch.empty(count, inner, width))
        self.down_proj = nn.Parameter(torch.empty(count, width, inner))

    def forward(self, x_ND: Tensor, routed: Routed) -> Tensor:
        sent = routed.experts_NK.flatten()
        order = sent.argsort(stable=True)  # places of the sent copies, expert by expert
        counts_E = torch.bincount(sent, minlength=len(self.gate_proj))
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=order.device)
        back_NK = back.view_as(routed.experts_NK)
        made = self._run(_Sent.apply(x_ND, order, back_NK), counts_E)  # type: ignore[arg-type]
        weights_NK = routed.weights_NK.to(made.dtype)
        return _Heard.apply(made, weights_NK, order, back_NK)  # type: ignore[return-value]

    def _run(self, copies: Tensor, counts_E: Tensor) -> Tensor:
        """Nothing padded: an expert's rows lie together."""
        if not copies.is_cuda:
            stacks = (self.gate_proj, self.up_proj, self.down_proj)
            return grouped_swiglu(copies, *stacks, counts=counts_E.tolist())
        product = partial(F.grouped_mm, offs=counts_E.cumsum(0).to(torch.int32))
        inner = F.silu(product(copies, self.gate_proj.mT)) * product(copies, self.up_proj.mT)
        return product(inner, self.down_proj.mT)


def grouped_swiglu(
    rows: Tensor, gate: Tensor, up: Tensor, down: Tensor, *, counts: Sequence[int]
) -> Tensor:
    """SwiGLU of each group of so many rows by its own matrices of the stacks, shape (E, out, in);
    torch's grouped product, on a CPU, takes several times as long."""
    return _GroupedSwiglu.apply(rows, gate, up, down, counts)  # type: ignore[return-value]


class _GroupedSwiglu(torch.autograd.Function):
    """Group by group, so that what is between two products stays in the processor's cache."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, gate: Tensor, up: Tensor, down: Tensor, counts: Sequence[int]
    ) -> Tensor:
        gated = rows.new_empty(len(rows), gate.shape[1])
        upped, made = torch.empty_like(gated), torch.empty_like(rows)
        groups = (x.split(counts) for x in (rows, gated, upped, made))
        matrices = (stack.mT for stack in (gate, up, down))
        for x, g, u, out, to_g, to_u, to_out in zip(*groups, *matrices, strict=True):
            torch.mm(x, to_g, out=g)
            torch.mm(x, to_u, out=u)
            torch.mm(F.silu(g).mul_(u), to_out, out=out)
        ctx.counts = counts
        ctx.save_for_backward(rows, gate, up, down, gated, upped)
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, gate, up, down, gated, upped = ctx.saved_tensors
        drows, *dstacks = (torch.empty_like(x) for x in (rows, gate, up, down))
        groups = (x.split(ctx.counts) for x in (rows, gated, upped, gradients[0], drows))
        stacks = (gate, up, down, *dstacks)
        for x, g, u, dout, dx, to_g, to_u, to_out, dto_g, dto_u, dto_out in zip(
            *groups, *stacks, strict=True
        ):
            share = g.sigmoid()
            silu = g * share
            torch.mm(dout.T, silu * u, out=dto_out)
            dinner = dout @ to_out
            du = dinner * silu
            slope = (share + silu).addcmul_(silu, share, value=-1)  # of silu at g
            dg = dinner.mul_(u).mul_(slope)
            torch.mm(dg.T, x, out=dto_g)
            torch.mm(du.T, x, out=dto_u)
            torch.mm(dg, to_g, out=dx).addmm_(du, to_u)
        return drows, *dstacks, None


class _Sent(torch.autograd.Function):
    """The rows of tokens, once for each expert of theirs, in this order; `back_NK`: the places
    where those of a token lie."""

    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, order: Tensor, back_NK: Tensor) -> Tensor:
        ctx.save_for_backward(back_NK)
        return x_ND.index_select(0, order // back_NK.shape[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (back_NK,) = ctx.saved_tensors
        return F.embedding_bag(back_NK, gradients[0], mode="sum"), None, None


class _Heard(torch.autograd.Function):
    """What the experts of each token made, added up by their weights."""

    @staticmethod
    def forward(
        ctx: Any, made: Tensor, weights_NK: Tensor, order: Tensor, back_NK: Tensor
    ) -> Tensor:
        ctx.save_for_backward(made, weights_NK, order, back_NK)
        return F.embedding_bag(back_NK, made, per_sample_weights=weights_NK, mode="sum")

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        made, weights_NK, order, back_NK = ctx.saved_tensors
        copies = gradients[0].index_select(0, order // back_NK.shape[1])
        dweights = (made * copies).sum(-1)[back_NK]
        return copies.mul_(weights_NK.flatten()[order, None]), dweights, None, None


class Mixed(NamedTuple):
    x: Tensor
    load_E: Tensor
    """Tokens sent to each expert, detached."""
    imbalance: Tensor
    """Sequence balance loss before its weight: 1 when every expert gets its share."""


class MixtureOfExperts(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.gate = Router(config)
        self.experts = Experts(config)
        shared = config.num_shared_experts * config.moe_intermediate_size
        self.shared_experts = FeedForward(config, shared) if shared else None

    def forward(self, x_BTD: Tensor, real_BT: Tensor | None = None) -> Mixed:
        """`real_BT`: the tokens that count for load and balance; None: all do."""
        x_ND = x_BTD.flatten(0, 1)
        routed = self.gate(x_ND)
        y_ND = self.experts(x_ND, routed)
        if self.shared_experts is not None:
            y_ND = y_ND + self.shared_experts(x_ND)
        if real_BT is None:
            real_BT = torch.ones(x_BTD.shape[:2], dtype=torch.bool, device=x_BTD.device)
        sent = routed.experts_NK[real_BT.flatten()].flatten()
        load_E = torch.bincount(sent, minlength=self.config.num_experts)
        return Mixed(y_ND.view_as(x_BTD), load_E, sequence_imbalance(routed, real_BT))


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
