"""Small shapes that between them reach every branch of the model."""

from typing import Any

from trainer.model.config import TransformerConfig, YarnConfig


def small(**other: Any) -> TransformerConfig:
    shape: dict[str, Any] = {
        "vocab_size": 97,
        "hidden_size": 32,
        "num_layers": 3,
        "intermediate_size": 48,
        "num_heads": 2,
        "q_lora_rank": 24,
        "kv_lora_rank": 16,
        "qk_nope_head_dim": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 12,
        "num_experts": 8,
        "experts_per_token": 2,
        "moe_intermediate_size": 20,
        "max_positions": 256,
        "rope_theta": 10_000.0,
        "init_std": 0.2,
    }
    return TransformerConfig(**(shape | other))


CONFIGS: dict[str, TransformerConfig] = {
    "plain": small(),
    "uncompressed_queries": small(q_lora_rank=None),
    "all_dense": small(num_dense_layers=3),
    "no_dense": small(num_dense_layers=0),
    "two_shared": small(num_shared_experts=2),
    "no_shared": small(num_shared_experts=0),
    "groups": small(num_groups=4, groups_per_token=2),
    "every_expert": small(experts_per_token=8),
    "one_expert": small(experts_per_token=1),
    "raw_weights": small(normalize_weights=False, routed_scale=1.7),
    "other_eps": small(norm_eps=1e-3),
    "yarn": small(yarn=YarnConfig(factor=8.0, original_positions=32)),
    "yarn_step": small(
        yarn=YarnConfig(factor=32.0, original_positions=16, beta_fast=1.0, beta_slow=1.0)
    ),
    "yarn_outside_the_softmax": small(
        yarn=YarnConfig(factor=8.0, original_positions=32, mscale_all_dim=0.0)
    ),
    "yarn_uneven": small(
        yarn=YarnConfig(factor=4.0, original_positions=64, mscale=0.7, mscale_all_dim=1.3)
    ),
}
