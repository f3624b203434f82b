"""Weights to and from Hugging Face's format: safetensors and `config.json`, one tensor per expert.

`model_type` is `deepseek_v3` unless told otherwise: under `kimi_k2` transformers loads every
expert with random weights and says little about it, while vLLM and SGLang want that name.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from records.errors import ConfigError
from records.files import write_atomic
from trainer.model import Decoder
from trainer.model_config import ModelConfig, YarnConfig
from trainer.tokenizer import Tokenizer, load_tokenizer

SHARD_BYTES = 4 * 2**30
"""Largest file of weights, but for a single tensor that is larger."""

MODEL_TYPES = ("deepseek_v3", "kimi_k2")

INDEX = "model.safetensors.index.json"

_LEFT_OUT = re.compile(r".+\.rotary_emb\.inv_freq")
"""Stray tensors of released checkpoints that the config determines."""

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


def hf_config(config: ModelConfig, *, model_type: str = "deepseek_v3") -> dict[str, Any]:
    """The content of `config.json`."""
    if model_type not in MODEL_TYPES:
        raise ConfigError(f"model_type = {model_type!r}; allowed: {', '.join(MODEL_TYPES)}")
    made: dict[str, Any] = {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": model_type,
        "num_key_value_heads": config.num_heads,
        "torch_dtype": "float32",
        "use_cache": True,
        "rope_theta": config.rope_theta,
        "rope_scaling": None,
    }
    made |= {theirs: getattr(config, ours) for theirs, ours in _PLAIN.items()} | _FIXED
    if config.yarn is not None:
        scaling = {theirs: getattr(config.yarn, ours) for theirs, ours in _YARN.items()}
        made["rope_scaling"] = {"type": "yarn", **scaling}
    return made


def config_of_hf(theirs: Mapping[str, Any], *, where: str) -> ModelConfig:
    """Our config of their `config.json`; `where` names it in errors. ConfigError for a model that
    is not of this architecture."""
    for name, value in _FIXED.items():
        if name in theirs and theirs[name] != value and name != "num_nextn_predict_layers":
            raise ConfigError(f"{where}: {name} = {theirs[name]!r}; only {value!r} can be loaded")
    if missing := sorted(_PLAIN.keys() - theirs.keys()):
        raise ConfigError(f"{where}: lacks {', '.join(missing)}; a DeepSeek-V3 config has them")
    rope = theirs.get("rope_parameters") or theirs
    scaling = theirs.get("rope_scaling") or theirs.get("rope_parameters") or {}
    kind = scaling.get("type") or scaling.get("rope_type") or "default"
    if kind not in ("yarn", "default"):
        raise ConfigError(f"{where}: positions stretched by {kind!r}; only yarn can be loaded")
    yarn = None
    if kind == "yarn":
        yarn = YarnConfig(**{ours: scaling[t] for t, ours in _YARN.items() if t in scaling})
    plain = {ours: theirs[name] for name, ours in _PLAIN.items()}
    return ModelConfig(**plain, rope_theta=rope["rope_theta"], yarn=yarn)


def export_model(
    model: Decoder, folder: Path, *, model_type: str = "deepseek_v3", shard_bytes: int = SHARD_BYTES
) -> None:
    """Write `config.json`, weights and their index into `folder`, which is made.

    The index comes last, so that a folder that has one is whole.
    """
    config = hf_config(model.config, model_type=model_type)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: t.contiguous() for name, t in released_tensors(model.state_dict())}
    shards = list(_shards(tensors, shard_bytes))
    place: dict[str, str] = {}
    for number, shard in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, folder / name, metadata={"format": "pt"})
        place |= dict.fromkeys(shard, name)
    write_atomic(folder / "config.json", json.dumps(config, indent=2).encode())
    total = sum(t.nbytes for shard in shards for t in shard.values())
    index = {"metadata": {"total_size": total}, "weight_map": place}
    write_atomic(folder / INDEX, json.dumps(index, indent=2).encode())


def released_tensors(state: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of a checkpoint under the name that it is released by, as a view."""
    for name, tensor in state.items():
        head, _, stack = name.rpartition(".")
        if head.endswith(".mlp.experts"):
            yield from ((f"{head}.{i}.{stack}.weight", matrix) for i, matrix in enumerate(tensor))
        else:
            yield name, tensor


def _shards(tensors: Mapping[str, Tensor], limit: int) -> Iterator[dict[str, Tensor]]:
    shard: dict[str, Tensor] = {}
    size = 0
    for name, tensor in tensors.items():
        if shard and size + tensor.nbytes > limit:
            yield shard
            shard, size = {}, 0
        shard[name] = tensor
        size += tensor.nbytes
    yield shard


def model_folder(path: Path) -> Path:
    """Of a training run its finished model, else the folder itself."""
    return path / "model" if (path / "model").is_dir() else path


def import_model(folder: Path, *, shapes_only: bool = False) -> Decoder:
    """The model of a folder in their format, or its shapes on the meta device. ConfigError for one
    that is missing, damaged, not of this architecture, or not whole."""
    try:
        theirs = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder / 'config.json'} cannot be read: {error}") from error
    if "quantization_config" in theirs:
        raise ConfigError(f"{folder}: quantised weights; convert them to bf16 first")
    config = config_of_hf(theirs, where=str(folder / "config.json"))
    with torch.device("meta"):
        model = Decoder(config)
    if shapes_only:
        return model
    model.to_empty(device="cpu")
    model.reset_frequencies()
    _fill(model, folder)
    return model


def import_with_tokenizer(folder: Path) -> tuple[Decoder, Tokenizer]:
    """The model of a folder and what writes its tokens. ConfigError, before weights are read, where
    the tokenizer has tokens that the model has not."""
    tokenizer = load_tokenizer(folder)
    known = import_model(folder, shapes_only=True).config.vocab_size
    if tokenizer.size > known:
        raise ConfigError(
            f"{folder}: the tokenizer has {tokenizer.size} tokens, the model only {known}"
        )
    return import_model(folder), tokenizer


def _fill(model: Decoder, folder: Path) -> None:
    wanted = dict(released_tensors(model.state_dict()))
    missing = wanted.keys() | set()
    for path in _weight_files(folder):
        try:
            with safe_open(path, framework="pt") as weights:
                for name in weights.keys():  # noqa: SIM118 (it is no dict)
                    if _LEFT_OUT.fullmatch(name):
                        continue
                    if name not in missing:
                        raise ConfigError(f"{path}: {name} is no tensor of this config, or twice")
                    missing.remove(name)
                    _copy(wanted[name], weights.get_tensor(name), f"{path}: {name}")
        except SafetensorError as error:
            raise ConfigError(f"{path} is damaged: {error}") from error
    if missing:
        some = ", ".join(sorted(missing)[:3])
        raise ConfigError(f"{folder}: {len(missing)} tensors are missing, such as {some}")


def _copy(target: Tensor, tensor: Tensor, what: str) -> None:
    if target.shape != tensor.shape:
        raise ConfigError(
            f"{what} has shape {tuple(tensor.shape)}, the config says {tuple(target.shape)}"
        )
    target.copy_(tensor)


def _weight_files(folder: Path) -> list[Path]:
    """ConfigError where there is none; pickles are never read."""
    found = sorted(folder.glob("*.safetensors"))
    if not found:
        raise ConfigError(f"{folder} holds no .safetensors file; other formats are not read")
    return found
