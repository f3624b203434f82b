"""The model written out plainly, a head, a token and an expert at a time, in the dtype of its
weights: what both compute paths are compared with. For shapes without YaRN and groups of experts.

Shape suffixes in this file: B = sequences, T = tokens, D = features of the model, R = rotated ones,
L = layers, H = heads, E = experts.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.data.packing import IGNORE, PADDING, PackedBatch
from trainer.model.config import TransformerConfig

LATENT_EPS = 1e-6


class Passed(NamedTuple):
    summed: Tensor
    """Cross-entropy over the learnt tokens."""
    max_logit_LH: Tensor
    load_LE: Tensor
    imbalance: Tensor


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight


def turned(x_TR: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Features 2i and 2i + 1 as a complex number, turned by position x theta^(-2i / width)."""
    width = x_TR.shape[-1]
    angles = positions[:, None] * theta ** (-torch.arange(0, width, 2, dtype=x_TR.dtype) / width)
    pairs = torch.view_as_complex(x_TR.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def forward(weights: Mapping[str, Tensor], config: TransformerConfig, batch: PackedBatch) -> Passed:
    """`weights`: parameters and router biases by the model's names."""
    summed, tops, loads, imbalances = [], [], [], []
    for ids, targets, documents in zip(*batch, strict=True):
        passed = row(weights, config, ids, targets, documents)
        for kept, value in zip((summed, tops, loads, imbalances), passed, strict=True):
            kept.append(value)
    return Passed(
        torch.stack(summed).sum(),
        torch.stack(tops).amax(0),
        torch.stack(loads).sum(0),
        torch.stack(imbalances).mean(),
    )


def row(
    weights: Mapping[str, Tensor],
    config: TransformerConfig,
    ids: Tensor,
    targets: Tensor,
    documents: Tensor,
) -> Passed:
    starts = {int(d): int((documents == d).nonzero()[0]) for d in documents.unique()}
    positions = torch.tensor([t - starts[int(d)] for t, d in enumerate(documents)])
    real = documents != PADDING
    x_TD = weights["model.embed_tokens.weight"][ids]
    tops, loads, imbalances = [], [], []
    for layer in range(config.num_layers):
        own = {
            name.removeprefix(f"model.layers.{layer}."): weight
            for name, weight in weights.items()
            if name.startswith(f"model.layers.{layer}.")
        }
        normed = norm(x_TD, own["input_layernorm.weight"], config.norm_eps)
        attended, top_H = attention(own, config, normed, positions, documents)
        x_TD = x_TD + attended
        tops.append(top_H)
        normed = norm(x_TD, own["post_attention_layernorm.weight"], config.norm_eps)
        if layer < config.num_dense_layers:
            x_TD = x_TD + network(normed, *(own[f"mlp.{n}_proj.weight"] for n in PARTS))
        else:
            mixed, load_E, imbalance = mixture(own, config, normed, real)
            x_TD = x_TD + mixed
            loads.append(load_E)
            imbalances.append(imbalance)
    hidden_TD = norm(x_TD, weights["model.norm.weight"], config.norm_eps)
    learnt = targets != IGNORE
    logits = hidden_TD[learnt] @ weights["lm_head.weight"].T
    summed = F.cross_entropy(logits, targets[learnt], reduction="sum")
    return Passed(summed, torch.stack(tops), torch.stack(loads), torch.stack(imbalances).mean())


PARTS = ("gate", "up", "down")


def network(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return (F.silu(x @ gate.T) * (x @ up.T)) @ down.T


def attention(
    own: Mapping[str, Tensor],
    config: TransformerConfig,
    x_TD: Tensor,
    positions: Tensor,
    documents: Tensor,
) -> tuple[Tensor, Tensor]:
    """(output, largest visible logit of each head over the tokens that are no padding)."""
    weight = {n.split(".")[1]: w for n, w in own.items() if n.startswith("self_attn.")}
    nope, theta = config.qk_nope_head_dim, config.rope_theta
    small = norm(x_TD @ weight["q_a_proj"].T, weight["q_a_layernorm"], LATENT_EPS)
    queries = (small @ weight["q_b_proj"].T).chunk(config.num_heads, dim=-1)
    latent, key = (x_TD @ weight["kv_a_proj_with_mqa"].T).split(
        [config.kv_lora_rank, config.qk_rope_head_dim], dim=-1
    )
    made = norm(latent, weight["kv_a_layernorm"], LATENT_EPS) @ weight["kv_b_proj"].T
    turned_key = turned(key, positions, theta)
    visible = torch.ones(len(x_TD), len(x_TD), dtype=torch.bool).tril()
    visible &= documents[:, None] == documents
    outs, tops = [], []
    for query, both in zip(queries, made.chunk(config.num_heads, dim=-1), strict=True):
        logits = query[:, :nope] @ both[:, :nope].T
        logits = logits + turned(query[:, nope:], positions, theta) @ turned_key.T
        logits = (logits / config.qk_head_dim**0.5).masked_fill(~visible, -torch.inf)
        tops.append(logits[documents != PADDING].max())
        outs.append(logits.softmax(-1) @ both[:, nope:])
    return torch.cat(outs, -1) @ weight["o_proj"].T, torch.stack(tops).detach()


def mixture(
    own: Mapping[str, Tensor], config: TransformerConfig, x_TD: Tensor, real: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(output, tokens sent to each expert, sequence balance loss)."""
    scores_TE = (x_TD @ own["mlp.gate.weight"].T).sigmoid()
    choice_TE = scores_TE.detach() + own["mlp.gate.e_score_correction_bias"]
    load_E = torch.zeros(config.num_experts, dtype=torch.long)
    outs = []
    for t, x in enumerate(x_TD):
        chosen = choice_TE[t].topk(config.experts_per_token).indices
        shares = scores_TE[t, chosen] / scores_TE[t, chosen].sum() * config.routed_scale
        out = network(x, *(own[f"mlp.shared_experts.{n}_proj.weight"] for n in PARTS))
        for expert, share in zip(chosen, shares, strict=True):
            out = out + share * network(x, *(own[f"mlp.experts.{n}_proj"][expert] for n in PARTS))
            load_E[expert] += int(real[t])
        outs.append(out)
    tokens = real.sum()
    probabilities_E = (scores_TE / scores_TE.sum(-1, keepdim=True))[real].mean(0)
    frequencies_E = load_E * config.num_experts / (config.experts_per_token * tokens)
    return torch.stack(outs), load_E, (frequencies_E * probabilities_E).sum()
