"""The shape of a model, and the presets. Every config that this accepts can be built.

The architecture is DeepSeek-V3's as Kimi K2 configures it: multi-head latent attention and a
mixture of experts behind a sigmoid router. Sources: https://arxiv.org/abs/2412.19437 section 2,
https://arxiv.org/abs/2507.20534 section 2.3.
"""

from functools import cached_property, lru_cache
from typing import Self

import torch
from pydantic import Field, model_validator

from records.config import Config

SCALE_DRAWS = 20_000
"""Routers drawn for `routed_scale`: its standard error is then below 0.0005."""


class YarnConfig(Config):
    """Rotary positions stretched beyond the length that a model was trained at.

    Source: https://arxiv.org/abs/2309.00071.
    """

    factor: float = Field(gt=1.0)
    """New length over the original one."""
    original_positions: int = Field(default=4096, ge=2)
    """Tokens of the context that the frequencies were trained at."""
    beta_fast: float = Field(default=32.0, gt=0.0)
    """Frequencies with more turns than this over the original context stay as they are."""
    beta_slow: float = Field(default=1.0, gt=0.0)
    """Frequencies with fewer turns are divided by `factor`; between the two they are blended."""
    mscale: float = Field(default=1.0, gt=0.0)
    """See `mscale_all_dim`."""
    mscale_all_dim: float = Field(default=1.0, ge=0.0)
    """Strengths of the correction of attention's temperature; equal ones leave sine and cosine at
    length 1 and put all of it into the softmax scale, 0 of the latter puts it into sine and
    cosine."""

    @model_validator(mode="after")
    def _can_be_computed(self) -> Self:
        if self.beta_slow > self.beta_fast:
            raise ValueError(
                f"beta_slow may be beta_fast ({self.beta_fast:g}) at most, got {self.beta_slow:g}"
            )
        if not self.mscale_all_dim and self.mscale != 1.0:
            raise ValueError(
                f"mscale must be 1 where mscale_all_dim is 0 (transformers takes it for 1), got "
                f"{self.mscale:g}"
            )
        return self


class TransformerConfig(Config):
    """Sizes count features unless said otherwise."""

    vocab_size: int = Field(ge=2)
    """Tokens of the tokenizer at least."""
    hidden_size: int = Field(ge=1)
    """Width of the residual stream."""
    num_layers: int = Field(ge=1)
    """Layers in all."""
    num_dense_layers: int = Field(default=1, ge=0)
    """First layers with one feed-forward network instead of experts."""
    intermediate_size: int = Field(ge=1)
    """Inside the feed-forward network of a dense layer."""

    num_heads: int = Field(ge=1)
    """Attention heads of a layer."""
    q_lora_rank: int | None = Field(default=None, ge=1)
    """Width to which queries are compressed; None: they are not."""
    kv_lora_rank: int = Field(ge=1)
    """Width of the latent that keys and values are made from: with `qk_rope_head_dim`, what a
    cache holds of a token."""
    qk_nope_head_dim: int = Field(ge=1)
    """Part of a head's query and key that knows no position."""
    qk_rope_head_dim: int = Field(ge=2)
    """Part that is rotated by position; its key is shared by all heads."""
    v_head_dim: int = Field(ge=1)
    """Width of a head's values."""

    num_experts: int = Field(ge=1)
    """Routed experts a layer."""
    experts_per_token: int = Field(ge=1)
    """Routed experts that a token goes through."""
    num_shared_experts: int = Field(default=1, ge=0)
    """Experts that see every token, as one network of so many times the width."""
    moe_intermediate_size: int = Field(ge=1)
    """Inside one expert."""
    num_groups: int = Field(default=1, ge=1)
    """Groups of experts that the router chooses among first."""
    groups_per_token: int = Field(default=1, ge=1)
    """Groups that a token's experts come from."""
    normalize_weights: bool = True
    """Whether the weights of a token's experts add up to 1 before they are scaled."""
    routed_scale: float = Field(default=0.0, ge=0.0)
    """Factor on those weights. 0 stands for the one that gives the sum of so many experts the
    length of one (`length_restoring_scale`)."""

    max_positions: int = Field(default=4096, ge=2)
    """Tokens of the longest document that the model takes."""
    rope_theta: float = Field(default=50_000.0, gt=1.0)
    """Base of the rotary frequencies."""
    yarn: YarnConfig | None = None
    """Stretches the positions beyond the trained length; None: it does not."""
    norm_eps: float = Field(default=1e-6, gt=0.0)
    """Added to the mean square under the root of each norm."""
    init_std: float = Field(default=0.02, gt=0.0)
    """Standard deviation of the first weights."""

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        if self.qk_rope_head_dim % 2:
            raise ValueError(
                f"qk_rope_head_dim must be even (it is rotated in pairs), got "
                f"{self.qk_rope_head_dim}"
            )
        if self.num_dense_layers > self.num_layers:
            raise ValueError(
                f"num_dense_layers may be num_layers ({self.num_layers}) at most, got "
                f"{self.num_dense_layers}"
            )
        self._check_groups()
        if self.yarn and self.max_positions > self.yarn.factor * self.yarn.original_positions:
            raise ValueError(
                f"max_positions = {self.max_positions} is more than yarn.factor x "
                f"yarn.original_positions = {self.yarn.factor * self.yarn.original_positions:g}"
            )
        if not self.routed_scale:
            scale = length_restoring_scale(self.num_experts, self.experts_per_token)
            object.__setattr__(self, "routed_scale", scale)  # frozen for everyone else
        return self

    def _check_groups(self) -> None:
        if self.num_experts % self.num_groups:
            raise ValueError(
                f"num_experts = {self.num_experts} must be a multiple of num_groups = "
                f"{self.num_groups}"
            )
        if self.groups_per_token > self.num_groups:
            raise ValueError(
                f"groups_per_token may be num_groups ({self.num_groups}) at most, got "
                f"{self.groups_per_token}"
            )
        if self.num_groups > 1 and self.num_experts // self.num_groups < 2:
            raise ValueError("a group is ranked by its two best experts and needs at least two")
        reachable = self.num_experts // self.num_groups * self.groups_per_token
        if self.experts_per_token > reachable:
            raise ValueError(
                f"experts_per_token may be {reachable} at most (experts in groups_per_token "
                f"groups), got {self.experts_per_token}"
            )

    @cached_property
    def qk_head_dim(self) -> int:
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def num_moe_layers(self) -> int:
        return self.num_layers - self.num_dense_layers


@lru_cache(maxsize=64)
def length_restoring_scale(num_experts: int, experts_per_token: int) -> float:
    """Mean of 1 / |p| over routers with Gaussian logits, p being a token's normalised weights.

    Independent outputs of equal length, weighted by p, add up to a vector |p| times as long; the
    scale undoes it. Source: https://arxiv.org/abs/2502.16982 appendix C; 2.446 for 64 experts of
    which 6 answer, 2.827 for 384 and 8.
    """
    generator = torch.Generator().manual_seed(0)
    total, left = 0.0, SCALE_DRAWS
    while left:
        draws = min(left, 1_000)
        scores = torch.randn(draws, num_experts, generator=generator).sigmoid()
        best = scores.topk(experts_per_token, dim=-1).values
        weights = best / best.sum(-1, keepdim=True)
        total += weights.norm(dim=-1).reciprocal().sum().item()
        left -= draws
    return round(total / SCALE_DRAWS, 4)


def _k2(**other: object) -> TransformerConfig:
    """Kimi K2 as released; what its parts share with the smaller ones stands here once."""
    shape: dict[str, object] = {
        "vocab_size": 163_840,
        "hidden_size": 7168,
        "num_layers": 61,
        "intermediate_size": 18_432,
        "num_heads": 64,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "num_experts": 384,
        "experts_per_token": 8,
        "moe_intermediate_size": 2048,
    }
    return TransformerConfig.model_validate(shape | other)


PRESETS: dict[str, TransformerConfig] = {
    # Ours. About 2M active parameters with its vocabulary: learns on one CPU core.
    "tiny": TransformerConfig(
        vocab_size=4096,
        hidden_size=128,
        num_layers=4,
        intermediate_size=512,
        num_heads=4,
        q_lora_rank=96,
        kv_lora_rank=64,
        qk_nope_head_dim=32,
        qk_rope_head_dim=32,
        v_head_dim=32,
        num_experts=16,
        experts_per_token=2,
        moe_intermediate_size=128,
        max_positions=2048,
        rope_theta=10_000.0,
    ),
    # Ours. For a GPU of a workstation.
    "small": TransformerConfig(
        vocab_size=16_384,
        hidden_size=512,
        num_layers=8,
        intermediate_size=2048,
        num_heads=8,
        q_lora_rank=256,
        kv_lora_rank=128,
        qk_nope_head_dim=64,
        qk_rope_head_dim=32,
        v_head_dim=64,
        num_experts=32,
        experts_per_token=4,
        moe_intermediate_size=256,
        max_positions=4096,
    ),
    # https://huggingface.co/moonshotai/Moonlight-16B-A3B
    "moonlight-16b-a3b": TransformerConfig(
        vocab_size=163_840,
        hidden_size=2048,
        num_layers=27,
        intermediate_size=11_264,
        num_heads=16,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        num_experts=64,
        experts_per_token=6,
        num_shared_experts=2,
        moe_intermediate_size=1408,
        routed_scale=2.446,
        max_positions=8192,
        norm_eps=1e-5,
    ),
    # 9B of 53B parameters active is the size of the report's mid-scale runs; it gives no layout,
    # this one is ours.
    "k2-mid": _k2(
        hidden_size=4096,
        num_layers=32,
        intermediate_size=11_008,
        num_heads=32,
        num_experts=72,
        moe_intermediate_size=1792,
    ),
    # https://huggingface.co/moonshotai/Kimi-K2-Instruct
    "k2-1t": _k2(
        routed_scale=2.827,
        max_positions=131_072,
        yarn=YarnConfig(factor=32.0, beta_fast=1.0, beta_slow=1.0),
    ),
}
"""Shapes by name."""
