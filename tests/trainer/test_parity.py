"""The model against an independent implementation: transformers' DeepSeek-V3."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DeepseekV3ForCausalLM

from tests.trainer.configs import CONFIGS, small
from trainer.exchange import export_model, import_model
from trainer.model import Decoder
from trainer.model_config import ModelConfig

assert_close = partial(torch.testing.assert_close, rtol=2e-4, atol=2e-5)
"""But for the rounding of fp32 in another order."""


def random_model(config: ModelConfig) -> Decoder:
    torch.manual_seed(1)
    model = Decoder(config)
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
    found = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
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


@pytest.mark.parametrize("name", ["plain", "uncompressed_queries", "yarn", "groups"])
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


def test_an_export_comes_back_as_it_was(tmp_path: Path) -> None:
    model = random_model(CONFIGS["yarn_uneven"])
    export_model(model, tmp_path, shard_bytes=20_000)
    assert len(list(tmp_path.glob("*.safetensors"))) > 3
    again = import_model(tmp_path)
    assert again.config == model.config
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


def test_kimi_s_own_model_type_is_written_on_demand(tmp_path: Path) -> None:
    export_model(random_model(small()), tmp_path, model_type="kimi_k2")
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "kimi_k2"
