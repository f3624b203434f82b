"""A model's shape in the words of Hugging Face's `config.json`, and back.

What transformers derives from keys that are absent or 0 is derived here, too: a config that would
mean something else there is refused, never read as the nearest that this model can do.
"""

from collections.abc import Mapping
from typing import Any

from records.errors import ConfigError
from records.settings import validate_as
from trainer.data.tokenizer import Tokenizer
from trainer.model.config import TransformerConfig

MODEL_TYPES = ("deepseek_v3", "kimi_k2")

_PLAIN = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_layers",
    "first_k_dense_replace": "num_dense_layers",
    "intermediate_size": "intermediate_size",
    "num_attention_heads": "num_heads",
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_nope_head_dim": "qk_nope_head_dim",
    "qk_rope_head_dim": "qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
    "n_routed_experts": "num_experts",
    "num_experts_per_tok": "experts_per_token",
    "n_shared_experts": "num_shared_experts",
    "moe_intermediate_size": "moe_intermediate_size",
    "n_group": "num_groups",
    "topk_group": "groups_per_token",
    "norm_topk_prob": "normalize_weights",
    "routed_scaling_factor": "routed_scale",
    "max_position_embeddings": "max_positions",
    "rms_norm_eps": "norm_eps",
    "initializer_range": "init_std",
}
"""Their name -> ours, where the value is the same."""

_FIXED = {
    "scoring_func": "sigmoid",
    "topk_method": "noaux_tc",
    "hidden_act": "silu",
    "moe_layer_freq": 1,
    "attention_bias": False,
    "tie_word_embeddings": False,
    "rope_interleave": True,
    "num_nextn_predict_layers": 0,
}
"""What a config of theirs may say otherwise and this model cannot do."""

_YARN = {
    "factor": "factor",
    "original_max_position_embeddings": "original_positions",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
    "mscale": "mscale",
    "mscale_all_dim": "mscale_all_dim",
}


def hf_config(
    config: TransformerConfig,
    tokenizer: Tokenizer | None = None,
    *,
    model_type: str = "deepseek_v3",
    dtype: str = "float32",
) -> dict[str, Any]:
    """The content of `config.json`. Without a tokenizer no token begins or ends a text: left out,
    two would by transformers' defaults."""
    if model_type not in MODEL_TYPES:
        raise ConfigError(f"model_type = {model_type!r}; allowed: {', '.join(MODEL_TYPES)}")
    made: dict[str, Any] = {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": model_type,
        "num_key_value_heads": config.num_heads,
        "torch_dtype": dtype,
        "use_cache": True,
        "rope_theta": config.rope_theta,
        "rope_scaling": None,
    }
    made |= {theirs: getattr(config, ours) for theirs, ours in _PLAIN.items()} | _FIXED
    if config.yarn is not None:
        scaling = {theirs: getattr(config.yarn, ours) for theirs, ours in _YARN.items()}
        made["rope_scaling"] = {"type": "yarn", **scaling}
    return made | special_ids(tokenizer)


def special_ids(tokenizer: Tokenizer | None) -> dict[str, int | None]:
    roles = {"bos_token_id": "[BOS]", "eos_token_id": "[EOS]", "pad_token_id": "[PAD]"}
    return {role: tokenizer.special[token] if tokenizer else None for role, token in roles.items()}


def generation_config(tokenizer: Tokenizer) -> dict[str, Any]:
    """The content of `generation_config.json`: an answer ends with its message, a text with
    [EOS]."""
    special = tokenizer.special
    return special_ids(tokenizer) | {"eos_token_id": [special["<|im_end|>"], special["[EOS]"]]}


def config_of_hf(theirs: Mapping[str, Any], *, where: str) -> TransformerConfig:
    """Our config of their `config.json`; `where` names it in errors. ConfigError for a model that
    is not of this architecture."""
    for name, value in _FIXED.items():
        if name in theirs and theirs[name] != value and name != "num_nextn_predict_layers":
            raise ConfigError(f"{where}: {name} = {theirs[name]!r}; only {value!r} can be loaded")
    if missing := sorted(_PLAIN.keys() - theirs.keys()):
        raise ConfigError(f"{where}: lacks {', '.join(missing)}; a DeepSeek-V3 config has them")
    if (heads := theirs.get("num_key_value_heads")) not in (None, theirs["num_attention_heads"]):
        raise ConfigError(f"{where}: num_key_value_heads = {heads!r}; a key a head can be loaded")
    rope = theirs.get("rope_parameters") or {"rope_theta": theirs.get("rope_theta")}
    rope = {**rope, **(theirs.get("rope_scaling") or {})}
    if rope.get("rope_theta") is None:
        raise ConfigError(f"{where}: lacks rope_theta; a DeepSeek-V3 config has it")
    plain = {ours: theirs[name] for name, ours in _PLAIN.items()}
    values = plain | {"rope_theta": rope["rope_theta"], "yarn": _yarn_of(rope, where)}
    return validate_as(TransformerConfig, values, where=where)


def _yarn_of(rope: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    kind = rope.get("type") or rope.get("rope_type") or "default"
    if kind == "default":
        return None
    if kind != "yarn":
        raise ConfigError(f"{where}: positions stretched by {kind!r}; only yarn can be loaded")
    for needed in ("factor", "original_max_position_embeddings"):
        if rope.get(needed) is None:
            raise ConfigError(f"{where}: yarn lacks {needed}")
    for name, usual in (("attention_factor", None), ("truncate", True)):
        if rope.get(name, usual) != usual:
            raise ConfigError(f"{where}: yarn has {name} = {rope[name]!r}; only {usual} is read")
    yarn = {ours: rope[name] for name, ours in _YARN.items() if rope.get(name)}
    if "mscale_all_dim" not in yarn:  # then transformers does not look at mscale either
        return yarn | {"mscale": 1.0, "mscale_all_dim": 0.0}
    if "mscale" not in yarn:
        raise ConfigError(
            f"{where}: yarn has mscale_all_dim without mscale; both are read, or none"
        )
    return yarn
