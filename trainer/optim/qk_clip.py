"""QK-Clip: heads whose attention logits grow too large have their weights shrunk.

    gamma_h = tau / S_h where S_h > tau, else 1
    W_qc *= gamma^alpha;  W_kc *= gamma^(1 - alpha);  W_qr *= gamma

so that every logit of the head, q_c k_c + q_r k_r, is scaled by exactly gamma; the rotated key,
which all heads share, stays. Source:
https://arxiv.org/abs/2507.20534 section 2.1. It acts after the optimizer's step and so changes no
gradient of that step; momentum is left as it is.

Shape suffixes in this file: L = layers, H = heads, O = rows of a weight.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from trainer.model.decoder import Decoder
from trainer.model.precision import widened
from trainer.optim.muon import MuonAdamW


class Clipped(NamedTuple):
    """Told by tensors, which nobody has read: a device would be waited for."""

    gamma_LH: Tensor
    """Factor on the logits of each head; 1 where nothing was done."""
    heads: Tensor
    """How many were clipped."""
    not_finite: Tensor
    """Heads whose maximum was no number; they are left alone."""


@torch.no_grad()
def qk_clip(
    model: Decoder,
    optimizer: MuonAdamW,
    max_logit_LH: Tensor,
    *,
    tau: float,
    alpha: float = 0.5,
    taken: Tensor | None = None,
) -> Clipped:
    """Clip every head above `tau`, weights and masters alike.

    `max_logit_LH`: each head's largest visible logit, softmax scale included, over all
    micro-batches of the step just taken. `alpha`: share of the shrinking that falls on queries.
    Maxima at or below 0 are below any tau and change nothing. `taken`: a single bool; where it is
    false nothing is changed. Every layer is multiplied, by 1 where it is not clipped: to ask first
    would make the host wait.
    """
    top_LH = widened(max_logit_LH)
    finite_LH = torch.isfinite(top_LH)
    above_LH = finite_LH & (top_LH > tau)
    if taken is not None:
        above_LH = above_LH & taken
    # the other heads' quotients would be negative or infinite: they must not meet a power
    gamma_LH = torch.where(above_LH, tau / top_LH.where(above_LH, 1.0), 1.0)
    for layer, gamma_H in zip(model.layers, gamma_LH, strict=True):
        attention, config = layer.self_attn, model.config
        _scale_rows(
            optimizer,
            attention.query_weight,
            (gamma_H**alpha, config.qk_nope_head_dim),
            (gamma_H, config.qk_rope_head_dim),
        )
        _scale_rows(
            optimizer,
            attention.kv_b_proj.weight,
            (gamma_H ** (1 - alpha), config.qk_nope_head_dim),
            (torch.ones_like(gamma_H), config.v_head_dim),
        )
    return Clipped(gamma_LH, (gamma_LH < 1).sum(), (~finite_LH).sum())


def _scale_rows(optimizer: MuonAdamW, weight: Tensor, *parts: tuple[Tensor, int]) -> None:
    """Multiply the rows of each head: the first so many by one factor, the next by another."""
    rows_HO = torch.cat([factor[:, None].expand(-1, count) for factor, count in parts], dim=1)
    rows_O1 = rows_HO.reshape(-1, 1)
    *copies, master = optimizer.masters(weight)
    master.mul_(rows_O1.to(master.device, master.dtype))
    for copy in copies:  # rounded once from the master, as after a step
        copy.copy_(master)


@torch.no_grad()
def rotary_key_norm(model: Decoder) -> Tensor:
    """Largest over the layers, of the rows of `kv_a_proj_with_mqa` that make the shared key: where
    logits can go on growing, since no head owns it and nothing clips it."""
    rank = model.config.kv_lora_rank
    keys = [layer.self_attn.kv_a_proj_with_mqa.weight[rank:] for layer in model.layers]
    return torch.stack([widened(key).norm() for key in keys]).max()
