"""What a model weighs and costs, from its config alone."""

from typing import NamedTuple

from trainer.model.config import TransformerConfig


class Size(NamedTuple):
    """Parameters; the router's correction biases count, as in a checkpoint."""

    total: int
    active: int
    """Those that work on one token, input embedding included."""


def size_of(config: TransformerConfig) -> Size:
    embeddings = 2 * config.vocab_size * config.hidden_size
    norms = (2 * config.num_layers + 1) * config.hidden_size
    dense = config.num_dense_layers * 3 * config.hidden_size * config.intermediate_size
    rest = embeddings + norms + config.num_layers * _attention(config) + dense
    expert = 3 * config.hidden_size * config.moe_intermediate_size
    router = config.num_experts * (config.hidden_size + 1)

    def with_experts(routed: int) -> int:
        return rest + config.num_moe_layers * (
            (routed + config.num_shared_experts) * expert + router
        )

    return Size(with_experts(config.num_experts), with_experts(config.experts_per_token))


def _attention(config: TransformerConfig) -> int:
    width, heads = config.hidden_size, config.num_heads
    made = heads * config.qk_head_dim
    rank = config.q_lora_rank
    queries = width * made if rank is None else width * rank + rank + rank * made
    latent = width * (config.kv_lora_rank + config.qk_rope_head_dim) + config.kv_lora_rank
    expanded = config.kv_lora_rank * heads * (config.qk_nope_head_dim + config.v_head_dim)
    return queries + latent + expanded + heads * config.v_head_dim * width


def train_flops_per_token(config: TransformerConfig, context: int) -> float:
    """Floating point operations of one step for each token, forward and backward.

    Matrix products only, two operations a multiply-add, backward twice forward; attention over
    the mean of `context` / 2 earlier tokens. Recomputation is no useful work and not counted.
    """
    lookup = config.vocab_size * config.hidden_size
    forward = 2.0 * (size_of(config).active - lookup)
    features = config.qk_head_dim + config.v_head_dim
    forward += config.num_layers * config.num_heads * features * context
    return 3.0 * forward
