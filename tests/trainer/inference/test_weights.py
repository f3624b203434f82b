"""Other weights take the place of those that sample, wholly or not at all."""

from pathlib import Path
from typing import Any

import pytest
import torch

from records.errors import ConfigError
from tests.trainer.configs import CONFIGS, small
from trainer.inference.drawing import Sampling
from trainer.inference.sampler import Sampler
from trainer.inference.weights import checksum_of, load_weights
from trainer.model.decoder import Decoder
from trainer.model.exchange import export_model
from trainer.model.initialization import new_decoder

NEVER = 10**6
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]


def model_of(seed: int, **other: Any) -> Decoder:
    return new_decoder(small(**other), seed).eval()


def greedy(sampler: Sampler) -> list[int]:
    return sampler.generate([PROMPT], Sampling(max_tokens=8), stop=NEVER)[0].ids


@pytest.mark.parametrize("stored", [False, True])
def test_the_sampler_says_what_a_new_one_of_the_weights_says(stored: bool, tmp_path: Path) -> None:
    sampler = Sampler(model_of(0), slots=2)
    first = greedy(sampler)
    cache, weight = sampler.cache.latent_LBSC.data_ptr(), sampler.model.lm_head.weight.data_ptr()
    other = model_of(1)
    other.layers[1].mlp.gate.e_score_correction_bias.add_(torch.arange(8) * 0.01)  # type: ignore[union-attr,operator]
    expected = greedy(Sampler(other))
    assert expected != first
    if stored:
        export_model(other, tmp_path)
    found = load_weights(sampler, tmp_path if stored else other.state_dict(), 1)
    assert found == checksum_of(other.state_dict().items())
    assert greedy(sampler) == expected  # nothing of the prompt is left in a slot
    assert sampler.version == 1
    assert sampler.cache.latent_LBSC.data_ptr() == cache
    assert sampler.model.lm_head.weight.data_ptr() == weight


def spoilt(name: str, tensor: torch.Tensor | None) -> dict[str, torch.Tensor]:
    state = model_of(1).state_dict()
    return (
        state | {name: tensor}
        if tensor is not None
        else {k: v for k, v in state.items() if k != name}
    )


@pytest.mark.parametrize(
    ("name", "tensor", "told"),
    [
        ("lm_head.weight", None, r"lm_head.weight in one only \(1 tensors\)"),
        ("lm_head.bias", torch.zeros(1), r"lm_head.bias in one only"),
        ("lm_head.weight", torch.zeros(97, 31), r"shape \(97, 31\), not \(97, 32\)"),
        ("model.norm.weight", torch.full((32,), torch.inf), r"norm.weight has values that are no"),
    ],
)
def test_weights_that_do_not_fit_change_nothing(
    name: str, tensor: torch.Tensor | None, told: str
) -> None:
    sampler = Sampler(model_of(0))
    before, first = checksum_of(sampler.model.state_dict().items()), greedy(sampler)
    with pytest.raises(ConfigError, match=told):
        load_weights(sampler, spoilt(name, tensor), 1)
    with pytest.raises(ConfigError, match=r"checksum .* announced: send them again"):
        load_weights(sampler, model_of(1).state_dict(), 1, checksum="0" * 16)
    with pytest.raises(ConfigError, match=r"version = 0, and the sampler is at 0"):
        load_weights(sampler, model_of(1).state_dict(), 0)
    assert checksum_of(sampler.model.state_dict().items()) == before
    assert sampler.version == 0
    assert greedy(sampler) == first


def test_a_folder_of_another_model_or_a_damaged_one_changes_nothing(tmp_path: Path) -> None:
    sampler = Sampler(model_of(0))
    first = greedy(sampler)
    export_model(new_decoder(CONFIGS["two_shared"]), tmp_path / "other")
    with pytest.raises(ConfigError, match="a model of another config"):
        load_weights(sampler, tmp_path / "other", 1)
    export_model(model_of(1), tmp_path / "damaged")
    [weights] = (tmp_path / "damaged").glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(ConfigError, match="damaged"):
        load_weights(sampler, tmp_path / "damaged", 1)
    assert greedy(sampler) == first


def test_a_checksum_tells_one_bit_a_swap_of_rows_or_columns_and_a_name() -> None:
    state = {"a": torch.arange(12.0).view(3, 4), "b": torch.zeros(5)}
    known = checksum_of(state.items())
    assert checksum_of({"a": state["a"].clone(), "b": state["b"]}.items()) == known
    bit = state["a"].clone()
    bit[1, 2] = torch.nextafter(bit[1, 2], torch.tensor(9.0))
    for other in (
        bit,
        state["a"].flip(0),
        state["a"].flip(1),
        state["a"].view(4, 3),
        state["a"].bfloat16(),
    ):
        assert checksum_of({"a": other, "b": state["b"]}.items()) != known
    assert checksum_of({"c": state["a"], "b": state["b"]}.items()) != known


def test_weights_are_taken_in_the_type_of_the_model() -> None:
    model = model_of(0)
    model.cast(torch.bfloat16)
    sampler, other = Sampler(model), model_of(1)
    found = load_weights(sampler, other.state_dict(), 1)
    assert model.lm_head.weight.dtype == torch.bfloat16
    other.cast(torch.bfloat16)
    assert found == checksum_of(other.state_dict().items())


def test_weights_that_the_type_of_the_model_cannot_hold_change_nothing() -> None:
    model = model_of(0)
    model.cast(torch.bfloat16)
    sampler, state = Sampler(model), model_of(1).state_dict()
    before = checksum_of(model.state_dict().items())
    state["lm_head.weight"][0, 0] = torch.finfo(torch.float32).max
    with pytest.raises(ConfigError, match=r"lm_head.weight has values that are no numbers"):
        load_weights(sampler, state, 1)
    assert checksum_of(model.state_dict().items()) == before
    assert sampler.version == 0


def test_weights_whose_logits_are_no_numbers_are_told_with_the_way_on() -> None:
    sampler, state = Sampler(model_of(0)), model_of(1).state_dict()
    state["lm_head.weight"].fill_(3e38)
    with pytest.raises(ConfigError, match=r"version 1, give logits .* under a larger version"):
        load_weights(sampler, state, 1)
    load_weights(sampler, model_of(1).state_dict(), 2)
    assert greedy(sampler) == greedy(Sampler(model_of(1)))
