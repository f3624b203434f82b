"""Multi-head latent attention (MLA).

Queries, and keys with values, come from small latents; positions live in a part of each head apart,
whose key all heads share. Source: https://arxiv.org/abs/2405.04434 section 2.1. Parameter names are
those of the released checkpoints.

Shape suffixes in this file: B = sequences, T = tokens, S = tokens that are attended to, H = heads,
D = features of the model, K = features of a head's query and key, V = of its value, R = rotated
ones, C = features of the latent.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask

from trainer.model import cpu, fused
from trainer.model.cache import CachedRows
from trainer.model.config import TransformerConfig
from trainer.model.cpu import QueryBlock
from trainer.model.layers import Linear
from trainer.model.norm import RmsNorm
from trainer.model.paths import ComputePath
from trainer.model.precision import widened
from trainer.model.rotary import rotate, softmax_scale

LATENT_NORM_EPS = 1e-6
"""Of the norms on the latents, whatever the config says of the others: as released."""


Mask = Tensor | BlockMask | Sequence[QueryBlock]
"""Which key a query may see: bool (B, 1, T, S) where a cache is read, else blocks of the same, as
the compute path has them."""


class AttentionContext(NamedTuple):
    """What every layer needs to know of the tokens of one forward pass."""

    cos_BTP: Tensor
    sin_BTP: Tensor
    mask: Mask
    real_BT: Tensor | None
    """Which tokens are of a document and no padding; None: all are."""
    track_logits: bool
    """Whether the largest logit of each head is wanted."""
    path: ComputePath


class Attended(NamedTuple):
    x_BTD: Tensor
    max_logit_H: Tensor | None
    """Largest visible q.k times the softmax scale, over all sequences, detached; fp32 at least."""


class LatentAttention(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.scale = softmax_scale(config)
        heads, width = config.num_heads, config.hidden_size
        if config.q_lora_rank is None:
            self.q_proj = Linear(width, heads * config.qk_head_dim, bias=False)
        else:
            self.q_a_proj = Linear(width, config.q_lora_rank, bias=False)
            self.q_a_layernorm = RmsNorm(config.q_lora_rank, LATENT_NORM_EPS)
            self.q_b_proj = Linear(config.q_lora_rank, heads * config.qk_head_dim, bias=False)
        latent = config.kv_lora_rank + config.qk_rope_head_dim
        self.kv_a_proj_with_mqa = Linear(width, latent, bias=False)
        self.kv_a_layernorm = RmsNorm(config.kv_lora_rank, LATENT_NORM_EPS)
        made = heads * (config.qk_nope_head_dim + config.v_head_dim)
        self.kv_b_proj = Linear(config.kv_lora_rank, made, bias=False)
        self.o_proj = Linear(heads * config.v_head_dim, width, bias=False)

    @property
    def query_weight(self) -> Tensor:
        """Of the projection whose rows are the heads' queries."""
        last = self.q_proj if self.config.q_lora_rank is None else self.q_b_proj
        return last.weight

    def forward(self, x_BTD: Tensor, context: AttentionContext) -> Attended:
        q_BHTK = self.queries(x_BTD, context)
        latent_BSC, key_BSR = self.latents(x_BTD, context)
        k_BHSK, v_BHSV = self.expand(latent_BSC, key_BSR)
        if context.path is ComputePath.CPU:
            blocks = cast(Sequence[QueryBlock], context.mask)
            out_BHTV, max_logit_H = cpu.attend(q_BHTK, k_BHSK, v_BHSV, blocks, self.scale)
        else:
            out_BHTV, max_logit_H = fused.attend(
                q_BHTK,
                k_BHSK,
                v_BHSV,
                cast(BlockMask, context.mask),
                scale=self.scale,
                real_BT=context.real_BT,
                track_logits=context.track_logits,
            )
        told = max_logit_H if context.track_logits else None
        return Attended(self.o_proj(out_BHTV.transpose(1, 2).flatten(2)), told)

    def queries(self, x_BTD: Tensor, context: AttentionContext) -> Tensor:
        if self.config.q_lora_rank is None:
            q = self.q_proj(x_BTD)
        else:
            q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x_BTD), context.path))
        q_BHTK = q.unflatten(-1, (self.config.num_heads, -1)).transpose(1, 2)
        still, turned = q_BHTK.split(
            [self.config.qk_nope_head_dim, self.config.qk_rope_head_dim], dim=-1
        )
        cos, sin = context.cos_BTP[:, None], context.sin_BTP[:, None]
        turned = rotate(turned, cos, sin, context.path)
        return torch.cat((still, turned), dim=-1)

    def latents(self, x_BTD: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor]:
        """The normalised latent and the rotated shared key: all that a cache needs to hold."""
        latent, key = self.kv_a_proj_with_mqa(x_BTD).split(
            [self.config.kv_lora_rank, self.config.qk_rope_head_dim], dim=-1
        )
        normed = self.kv_a_layernorm(latent, context.path)
        return normed, rotate(key, context.cos_BTP, context.sin_BTP, context.path)

    def expand(self, latent_BSC: Tensor, key_BSR: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of every head."""
        made = self.kv_b_proj(latent_BSC).unflatten(-1, (self.config.num_heads, -1))
        still, v_BHSV = made.transpose(1, 2).split(
            [self.config.qk_nope_head_dim, self.config.v_head_dim], dim=-1
        )
        shared = key_BSR[:, None].expand(-1, self.config.num_heads, -1, -1)
        return torch.cat((still, shared), dim=-1), v_BHSV

    def extend(self, x_BTD: Tensor, context: AttentionContext, rows: CachedRows) -> Tensor:
        """Attention of new tokens over what a cache holds, they included.

        One new token a row works on the latents themselves: the two halves of `kv_b_proj` are
        applied to the query and to the result. More are cheaper the usual way. A CPU takes row by
        row, so that none is padded to the longest or copied; what padding comes to is 0 there.
        """
        q_BHTK = self.queries(x_BTD, context)
        rows.write(*self.latents(x_BTD, context))
        if context.path is ComputePath.CPU:
            read = self._reads_row_by_row if x_BTD.shape[1] == 1 else self._row_by_row
            out_BHTV = read(q_BHTK, rows)
        else:
            latent_BSC, key_BSR = rows.together()
            mask_B1TS = _as_tensor(context.mask)
            if x_BTD.shape[1] == 1:
                out_BHTV = self._absorbed(q_BHTK, latent_BSC, key_BSR, mask_B1TS)
            else:
                out_BHTV = self._expanded(q_BHTK, latent_BSC, key_BSR, mask_B1TS)
        return self.o_proj(out_BHTV.transpose(1, 2).flatten(2))

    def _expanded(
        self, q_BHTK: Tensor, latent_BSC: Tensor, key_BSR: Tensor, mask_B1TS: Tensor | None
    ) -> Tensor:
        """`mask_B1TS` None: as many queries as keys, each of which sees those before it."""
        k_BHSK, v_BHSV = self.expand(latent_BSC, key_BSR)
        # values as wide as keys: only then does a CPU have a kernel that keeps no logits
        wide_BHSK = F.pad(v_BHSV, (0, max(0, k_BHSK.shape[-1] - v_BHSV.shape[-1])))
        out_BHTK = F.scaled_dot_product_attention(
            *(q_BHTK, k_BHSK, wide_BHSK),
            attn_mask=mask_B1TS,
            is_causal=mask_B1TS is None,
            scale=self.scale,
        )
        return out_BHTK[..., : v_BHSV.shape[-1]]

    def _row_by_row(self, q_BHTK: Tensor, rows: CachedRows) -> Tensor:
        out_BHTV = q_BHTK.new_zeros(*q_BHTK.shape[:3], self.config.v_head_dim)
        for row, (new, latent_SC, key_SR) in enumerate(rows.each()):
            held, end = len(key_SR) - new, len(key_SR)
            mask_TS = None  # which a CPU can do without where nothing was held
            if held:
                index_S = torch.arange(end, device=key_SR.device)
                mask_TS = (index_S <= index_S[held:, None])[None, None]
            own_1HTK = q_BHTK[row : row + 1, :, :new]
            out_1HTV = self._expanded(own_1HTK, latent_SC[None], key_SR[None], mask_TS)
            out_BHTV[row, :, :new] = out_1HTV[0]
        return out_BHTV

    def _halves(self) -> tuple[Tensor, Tensor]:
        """Of `kv_b_proj`: what makes keys, (H, K less R, C), and what makes values, (H, V, C)."""
        config = self.config
        both_HOC = self.kv_b_proj.weight.unflatten(0, (config.num_heads, -1))
        up_k, up_v = both_HOC.split([config.qk_nope_head_dim, config.v_head_dim], dim=1)
        return up_k, up_v

    def _reads_row_by_row(self, q_BH1K: Tensor, rows: CachedRows) -> Tensor:
        config = self.config
        up_k, up_v = self._halves()
        still, turned = q_BH1K.split([config.qk_nope_head_dim, config.qk_rope_head_dim], dim=-1)
        still_BHC, turned_BHR = (still @ up_k).squeeze(2), turned.squeeze(2)
        read_BHC = torch.empty_like(still_BHC)
        for row, (_, latent_SC, key_SR) in enumerate(rows.each()):
            scores_HS = torch.addmm(turned_BHR[row] @ key_SR.T, still_BHC[row], latent_SC.T)
            weights_HS = (widened(scores_HS) * self.scale).softmax(-1).to(latent_SC.dtype)
            read_BHC[row] = weights_HS @ latent_SC
        return read_BHC[:, :, None] @ up_v.mT

    def _absorbed(
        self, q_BHTK: Tensor, latent_BSC: Tensor, key_BSR: Tensor, mask_B1TS: Tensor
    ) -> Tensor:
        config = self.config
        up_k, up_v = self._halves()
        still, turned = q_BHTK.split([config.qk_nope_head_dim, config.qk_rope_head_dim], dim=-1)
        # the heads as rows of one product: a product for each head copies the latents for each
        scores = (still @ up_k).flatten(1, 2) @ latent_BSC.mT + turned.flatten(1, 2) @ key_BSR.mT
        scores = widened(scores).unflatten(1, (config.num_heads, -1)) * self.scale
        weights = scores.masked_fill(~mask_B1TS, float("-inf")).softmax(-1).to(latent_BSC.dtype)
        read = (weights.flatten(1, 2) @ latent_BSC).unflatten(1, (config.num_heads, -1))
        return read @ up_v.mT


def _as_tensor(mask: Mask) -> Tensor:
    if not isinstance(mask, Tensor):
        raise TypeError("a cache is read with a plain mask")
    return mask
