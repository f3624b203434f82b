"""The model against an independent implementation: transformers' DeepSeek-V3."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

from records.errors import ConfigError
from tests.trainer.configs import CONFIGS, small
from trainer.model.config import PRESETS, TransformerConfig
from trainer.model.decoder import Decoder
from trainer.model.exchange import export_model, import_model
from trainer.model.hf_config import config_of_hf, hf_config
from trainer.model.initialization import new_decoder

assert_close = partial(torch.testing.assert_close, rtol=2e-4, atol=2e-5)
"""But for the rounding of fp32 in another order."""


def random_model(config: TransformerConfig) -> Decoder:
    """With weights by which fp32 itself leaves room for the comparison: either implementation is up
    to 6e-5 away from float64 with others."""
    torch.manual_seed(7)
    model = new_decoder(config, 7)
    for name, value in model.state_dict().items():
        if name.endswith("layernorm.weight") or name.endswith("norm.weight"):
            value.uniform_(0.5, 1.5)
        elif name.endswith("bias"):
            value.normal_(std=0.3)  # so that choice and weight of an expert differ
    return model


def theirs_of(folder: Path) -> DeepseekV3ForCausalLM:
    loaded: Any = DeepseekV3ForCausalLM.from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager", dtype=torch.float32
    )
    model, told = loaded
    assert not told["missing_keys"], told["missing_keys"]
    assert not told["unexpected_keys"], told["unexpected_keys"]
    assert not told["mismatched_keys"], told["mismatched_keys"]
    return model


def loss_of(logits: Tensor, ids: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def gradients_of_theirs(model: DeepseekV3ForCausalLM) -> dict[str, Tensor]:
    """By our names: their experts hold gate over up in one stack."""
    parameters = ((n, p) for n, p in model.named_parameters() if p.numel())
    found = {n: p.grad for n, p in parameters if p.grad is not None}
    split: dict[str, Tensor] = {}
    for name, gradient in found.items():
        head, _, stack = name.rpartition(".")
        if stack == "gate_up_proj":
            gate, up = gradient.chunk(2, dim=1)
            split |= {f"{head}.gate_proj": gate, f"{head}.up_proj": up}
        else:
            split[name] = gradient
    return split


@pytest.mark.parametrize("name", CONFIGS)
def test_exported_weights_give_the_same_logits_and_gradients(name: str, tmp_path: Path) -> None:
    ours = random_model(CONFIGS[name])
    export_model(ours, tmp_path)
    theirs = theirs_of(tmp_path)
    ids = torch.randint(0, 97, (2, 150), generator=torch.Generator().manual_seed(2))
    logits = ours.logits(ours(ids).hidden_BTD)
    expected = theirs(ids).logits
    assert_close(logits, expected)
    loss_of(logits, ids).backward()
    loss_of(expected, ids).backward()
    gradients = gradients_of_theirs(theirs)
    assert gradients.keys() == {n for n, p in ours.named_parameters() if p.grad is not None}
    for parameter, gradient in gradients.items():
        own = ours.get_parameter(parameter).grad
        assert_close(own, gradient, msg=lambda m, p=parameter: f"{p}: {m}")


@pytest.mark.parametrize(
    "name", ["plain", "uncompressed_queries", "yarn", "yarn_outside_the_softmax", "groups"]
)
def test_their_checkpoints_are_read(name: str, tmp_path: Path) -> None:
    export_model(random_model(CONFIGS[name]), tmp_path / "first")
    theirs = theirs_of(tmp_path / "first")
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.mul_(1.5)
    theirs.save_pretrained(tmp_path / "second")
    ours = import_model(tmp_path / "second")
    ids = torch.randint(0, 97, (1, 40), generator=torch.Generator().manual_seed(3))
    assert_close(ours.logits(ours(ids).hidden_BTD), theirs(ids).logits)


@pytest.mark.parametrize("name", ["yarn_uneven", "yarn_outside_the_softmax", "no_shared"])
def test_an_export_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    model = random_model(CONFIGS[name])
    export_model(model, tmp_path, shard_bytes=20_000)
    assert len(list(tmp_path.glob("*.safetensors"))) > 3
    again = import_model(tmp_path)
    assert again.config == model.config
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


# From here on checkpoints that transformers makes by itself, with its own defaults

THEIRS: dict[str, Any] = {
    "vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48,
    "moe_intermediate_size": 20, "num_attention_heads": 2, "num_key_value_heads": 2,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
    "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
    "v_head_dim": 12, "first_k_dense_replace": 1, "max_position_embeddings": 256,
}  # fmt: skip

YARN = {
    "rope_type": "yarn",
    "factor": 8.0,
    "original_max_position_embeddings": 32,
    "rope_theta": 10_000.0,
}
BOTH = {"mscale": 0.7, "mscale_all_dim": 1.3}


def made_by_them(folder: Path, **other: Any) -> DeepseekV3ForCausalLM:
    torch.manual_seed(0)
    model = DeepseekV3ForCausalLM(DeepseekV3Config(**(THEIRS | other)))
    for p in model.parameters():
        if p.ndim > 1:
            torch.nn.init.normal_(p, std=0.2)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize(
    "rope",
    [None, YARN, YARN | BOTH, YARN | {"mscale": 0.7}, YARN | {"mscale": 0.7, "mscale_all_dim": 0}],
)
def test_what_transformers_makes_means_the_same_here(rope: Any, tmp_path: Path) -> None:
    theirs = made_by_them(tmp_path, **({"rope_parameters": rope} if rope else {}))
    ours = import_model(tmp_path)
    ids = torch.randint(0, 97, (1, 100), generator=torch.Generator().manual_seed(3))
    assert_close(ours.logits(ours(ids).hidden_BTD), theirs(ids).logits)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"rope_parameters": YARN | BOTH | {"attention_factor": 1.7}}, "attention_factor = 1.7"),
        ({"rope_parameters": YARN | BOTH | {"truncate": False}}, "truncate = False"),
        ({"rope_parameters": YARN | {"mscale_all_dim": 1.0}}, "mscale_all_dim without mscale"),
        ({"rope_parameters": YARN | {"factor": None}}, "yarn lacks factor"),
        ({"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4}}, "only yarn"),
        ({"rope_parameters": {"rope_type": "default"}}, "lacks rope_theta"),
        ({"rope_interleave": False}, "rope_interleave = False; only True"),
        ({"tie_word_embeddings": True}, "tie_word_embeddings = True"),
        ({"num_key_value_heads": 1}, "num_key_value_heads = 1"),
        ({"hidden_size": -3}, r"config.json: hidden_size = -3"),
        ({"kv_lora_rank": "wide"}, r"config.json: kv_lora_rank = 'wide'"),
        ({"quantization_config": {}}, "quantised"),
    ],
)
def test_what_cannot_be_loaded_is_told(other: dict[str, Any], told: str, tmp_path: Path) -> None:
    config = hf_config(CONFIGS["plain"]) | other
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=told):
        import_model(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ConfigError, match="is no config"):
        import_model(tmp_path)


def test_weights_that_are_not_whole_are_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(hf_config(CONFIGS["plain"])))
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ConfigError, match=r"no \.safetensors file; other formats are not read"):
        import_model(tmp_path)
    export_model(random_model(CONFIGS["plain"]), tmp_path)
    (file,) = tmp_path.glob("*.safetensors")
    tensors = load_file(file)
    save_file({n: t for n, t in tensors.items() if "lm_head" not in n}, file)
    with pytest.raises(ConfigError, match=r"1 tensors are missing, such as lm_head.weight"):
        import_model(tmp_path)
    save_file(tensors | {"lm_head.weight": torch.ones(3, 3)}, file)
    with pytest.raises(ConfigError, match=r"shape \(3, 3\), the config says \(97, 32\)"):
        import_model(tmp_path)
    save_file(tensors | {"lm_head.bias": torch.ones(3)}, file)
    with pytest.raises(ConfigError, match=r"lm_head\.bias is no tensor of this config"):
        import_model(tmp_path)
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(ConfigError, match="is damaged"):
        import_model(tmp_path)


K2 = {
    "aux_loss_alpha": 0.001, "attention_bias": False, "attention_dropout": 0.0,
    "bos_token_id": 163584, "eos_token_id": 163585, "ep_size": 1, "first_k_dense_replace": 1,
    "hidden_act": "silu", "hidden_size": 7168, "initializer_range": 0.02,
    "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 131072,
    "model_type": "kimi_k2", "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 1,
    "n_routed_experts": 384, "n_shared_experts": 1, "norm_topk_prob": True,
    "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 61,
    "num_key_value_heads": 64, "num_nextn_predict_layers": 0, "pretraining_tp": 1,
    "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
    "rope_theta": 50000.0, "routed_scaling_factor": 2.827,
    "rope_scaling": {
        "beta_fast": 1.0, "beta_slow": 1.0, "factor": 32.0, "mscale": 1.0, "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096, "type": "yarn",
    },
    "scoring_func": "sigmoid", "seq_aux": True, "tie_word_embeddings": False, "topk_group": 1,
    "topk_method": "noaux_tc", "torch_dtype": "bfloat16", "use_cache": True, "v_head_dim": 128,
    "vocab_size": 163840,
}  # fmt: skip
"""As released, but for the names of its own code and the 8-bit weights."""


def test_the_preset_of_kimi_k2_is_the_released_config() -> None:
    assert config_of_hf(K2, where="K2") == PRESETS["k2-1t"]
    again = hf_config(PRESETS["k2-1t"], model_type="kimi_k2", dtype="bfloat16")
    differing = {k for k in K2.keys() & again.keys() if K2[k] != again[k]}
    assert differing <= {"bos_token_id", "eos_token_id"}


def test_the_type_of_weights_is_told(tmp_path: Path) -> None:
    model = random_model(small())
    model.cast(torch.bfloat16)
    export_model(model, tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["torch_dtype"] == "bfloat16"
    again = import_model(tmp_path).lm_head.weight
    assert torch.equal(again, model.lm_head.weight.float())


def test_kimi_s_own_model_type_is_written_on_demand(tmp_path: Path) -> None:
    export_model(random_model(small()), tmp_path, model_type="kimi_k2")
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "kimi_k2"
