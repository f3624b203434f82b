"""What the model promises beside parity: documents apart, exact maxima, loads, sizes, refusals."""

import math

import pytest
import torch
from pydantic import ValidationError

from tests.trainer.configs import CONFIGS, small
from trainer.data.packing import PADDING
from trainer.model.attention import LatentAttention
from trainer.model.config import PRESETS, TransformerConfig, YarnConfig, length_restoring_scale
from trainer.model.decoder import Decoder
from trainer.model.experts import Experts, Routed
from trainer.model.initialization import new_decoder
from trainer.model.rotary import inverse_frequencies, softmax_scale
from trainer.model.size import size_of, train_flops_per_token


def model_of(config: TransformerConfig, seed: int = 0) -> Decoder:
    return new_decoder(config, seed)


def ids_of(rows: int, length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 97, (rows, length), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", ["plain", "yarn", "uncompressed_queries"])
def test_packed_documents_do_not_see_each_other(name: str) -> None:
    model = model_of(CONFIGS[name])
    first, second = ids_of(1, 30, 1), ids_of(1, 20, 2)
    documents = torch.tensor([[0] * 30 + [1] * 20])
    packed = model(torch.cat((first, second), 1), documents_BT=documents).hidden_BTD
    torch.testing.assert_close(packed[:, :30], model(first).hidden_BTD, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(packed[:, 30:], model(second).hidden_BTD, rtol=1e-4, atol=1e-5)


def test_no_token_sees_a_later_one() -> None:
    model, ids = model_of(small()), ids_of(1, 40)
    changed = ids.clone()
    changed[0, 25:] = (changed[0, 25:] + 1) % 97
    before, after = model(ids).hidden_BTD, model(changed).hidden_BTD
    torch.testing.assert_close(before[:, :25], after[:, :25])
    assert not torch.allclose(before[:, 25:], after[:, 25:])


def logits_by_definition(model: Decoder, ids: torch.Tensor, starts: list[int]) -> torch.Tensor:
    """Largest q.k times the scale over visible pairs, (L, H), read off each layer's input."""
    inputs: list[tuple] = []
    hooks = [
        layer.self_attn.register_forward_pre_hook(lambda _m, args: inputs.append(args))
        for layer in model.layers
    ]
    documents = torch.tensor([[sum(t >= s for s in starts) for t in range(ids.shape[1])]])
    model(ids, documents_BT=documents)
    for hook in hooks:
        hook.remove()
    tops = []
    for layer, (x, context) in zip(model.layers, inputs, strict=True):
        attention: LatentAttention = layer.self_attn
        q = attention.queries(x, context)
        k, _ = attention.expand(*attention.latents(x, context))
        pairs = [
            q[0, :, t] * k[0, :, s]
            for t in range(ids.shape[1])
            for s in range(t + 1)
            if documents[0, t] == documents[0, s]
        ]
        tops.append((torch.stack(pairs).sum(-1) * softmax_scale(model.config)).amax(0))
    return torch.stack(tops)


@pytest.mark.parametrize("name", ["plain", "yarn_step"])
def test_maxima_are_those_of_visible_pairs_with_the_real_scale(name: str) -> None:
    model, ids = model_of(CONFIGS[name]), ids_of(1, 24)
    documents = torch.tensor([[1] * 10 + [2] * 14])
    told = model(ids, documents_BT=documents, track_logits=True).max_logit_LH
    assert told is not None
    assert not told.requires_grad
    torch.testing.assert_close(told, logits_by_definition(model, ids, [0, 10]).detach())


def test_tracking_maxima_changes_nothing_else() -> None:
    model, ids = model_of(small()), ids_of(2, 50)
    torch.testing.assert_close(
        model(ids).hidden_BTD, model(ids, track_logits=True).hidden_BTD, rtol=1e-4, atol=1e-5
    )
    assert model(ids).max_logit_LH is None


def test_recomputing_layers_changes_no_gradient() -> None:
    gradients, told = [], []
    for recompute in (False, True):
        model = model_of(small())
        model.recompute = recompute
        output = model(ids_of(2, 30), track_logits=True)
        told.append((output.max_logit_LH, output.load_LE))
        (output.hidden_BTD.square().sum() + output.imbalance).backward()
        gradients.append([p.grad for n, p in model.named_parameters() if "lm_head" not in n])
    for plain, again in zip(*gradients, strict=True):
        torch.testing.assert_close(plain, again)
    for plain, again in zip(*told, strict=True):  # nor does a second run count anything twice
        assert torch.equal(plain, again)


@pytest.mark.parametrize("spread", ["even", "one_expert", "some_empty"])
def test_no_token_is_dropped_however_uneven_the_load(spread: str) -> None:
    torch.manual_seed(0)
    config = small()
    experts = Experts(config)
    for stack in experts.parameters():
        torch.nn.init.normal_(stack, std=0.2)
    x = torch.randn(40, config.hidden_size)
    chosen = {
        "even": torch.arange(80).view(40, 2) % 8,
        "one_expert": torch.tensor([[3, 4]]).expand(40, 2),
        "some_empty": torch.randint(0, 3, (40, 1)) + torch.tensor([[0, 4]]),
    }[spread]
    weights = torch.rand(40, 2)
    made = experts(x, Routed(chosen, weights, torch.zeros(40, 8)))
    for n in range(40):
        expected = torch.zeros(config.hidden_size)
        for e, w in zip(chosen[n], weights[n], strict=True):
            inner = torch.nn.functional.silu(experts.gate_proj[e] @ x[n])
            expected = expected + w * experts.down_proj[e] @ (inner * (experts.up_proj[e] @ x[n]))
        torch.testing.assert_close(made[n], expected, rtol=1e-4, atol=1e-5)


def test_loads_count_every_token_of_every_layer_with_experts() -> None:
    config = small()
    output = model_of(config)(ids_of(3, 20))
    assert output.load_LE.shape == (2, 8)
    assert output.load_LE.sum(1).tolist() == [3 * 20 * config.experts_per_token] * 2


def test_imbalance_is_one_when_even_and_grows_when_not() -> None:
    from trainer.model.experts import sequence_imbalance

    every = torch.ones(1, 8, dtype=torch.bool)
    even = Routed(torch.arange(16).view(8, 2) % 8, torch.ones(8, 2), torch.full((8, 8), 0.5))
    assert sequence_imbalance(even, every).item() == pytest.approx(1.0)
    scores = torch.full((8, 8), 0.01)
    scores[:, :2] = 1.0
    uneven = Routed(torch.tensor([[0, 1]]).expand(8, 2), torch.ones(8, 2), scores)
    assert sequence_imbalance(uneven, every).item() > 3.5


def test_padding_counts_nowhere() -> None:
    model, ids = model_of(small()), ids_of(2, 30)
    padded = torch.cat((ids, ids_of(2, 70, seed=1)), 1)
    documents = torch.tensor([[0] * 30 + [PADDING] * 70] * 2)
    alone = model(ids, track_logits=True)
    beside = model(padded, documents_BT=documents, track_logits=True)
    counted = model(padded, documents_BT=documents.abs(), track_logits=True)
    torch.testing.assert_close(beside.hidden_BTD[:, :30], alone.hidden_BTD, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(beside.max_logit_LH, alone.max_logit_LH, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(beside.imbalance, alone.imbalance, rtol=1e-4, atol=1e-5)
    assert torch.equal(beside.load_LE, alone.load_LE)
    assert torch.isfinite(beside.hidden_BTD).all()
    assert counted.load_LE.sum() > alone.load_LE.sum()
    assert counted.max_logit_LH is not None
    assert alone.max_logit_LH is not None
    assert (counted.max_logit_LH > alone.max_logit_LH + 1e-3).any()


@pytest.mark.parametrize("name", CONFIGS)
def test_size_is_what_a_built_model_has(name: str) -> None:
    model = model_of(CONFIGS[name])
    assert size_of(CONFIGS[name]).total == sum(v.numel() for v in model.state_dict().values())


@pytest.mark.parametrize("name", PRESETS)
def test_presets_can_be_built_and_have_the_size_of_their_formula(name: str) -> None:
    with torch.device("meta"):
        model = Decoder(PRESETS[name])
    assert size_of(PRESETS[name]).total == sum(v.numel() for v in model.state_dict().values())


def test_k2_has_the_parameters_of_the_released_checkpoint() -> None:
    size = size_of(PRESETS["k2-1t"])
    assert size.total == 1_026_408_232_448
    assert size.active == pytest.approx(32.86e9, rel=1e-3)
    assert train_flops_per_token(PRESETS["k2-1t"], 4096) == pytest.approx(2.055e11, rel=0.01)


def test_our_own_presets_have_the_sizes_that_they_say() -> None:
    assert size_of(PRESETS["tiny"]).active == pytest.approx(2e6, rel=0.25)
    mid = size_of(PRESETS["k2-mid"])
    assert (mid.active / 1e9, mid.total / 1e9) == pytest.approx((9, 53), rel=0.05)


@pytest.mark.parametrize(("experts", "chosen", "scale"), [(384, 8, 2.827), (64, 6, 2.446)])
def test_the_scale_computed_is_that_of_released_models(
    experts: int, chosen: int, scale: float
) -> None:
    assert length_restoring_scale(experts, chosen) == pytest.approx(scale, abs=0.002)


def test_released_yarn_is_a_step_and_its_scale_grows() -> None:
    config = small(
        qk_nope_head_dim=128,
        qk_rope_head_dim=8,
        rope_theta=50_000.0,
        yarn=YarnConfig(factor=32.0, beta_fast=1.0, beta_slow=1.0),
    )
    plain = [1 / 50_000 ** (i / 8) for i in range(0, 8, 2)]
    assert inverse_frequencies(config).tolist() == pytest.approx(
        [*plain[:3], plain[3] / 32], rel=1e-5
    )
    assert softmax_scale(PRESETS["k2-1t"]) == pytest.approx(192**-0.5 * 1.3466**2, rel=1e-4)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"qk_rope_head_dim": 7}, "even"),
        ({"experts_per_token": 9}, "8 at most"),
        ({"num_groups": 3}, "multiple of num_groups"),
        ({"num_groups": 4, "groups_per_token": 1, "experts_per_token": 3}, "2 at most"),
        ({"num_groups": 8}, "at least two"),
        ({"num_groups": 2, "groups_per_token": 3}, "num_groups"),
        ({"num_dense_layers": 4}, "num_layers"),
        ({"yarn": YarnConfig(factor=2.0, original_positions=64)}, "max_positions = 256"),
        ({"kv_lora_rank": 0}, "greater than or equal to 1"),
        ({"num_kv_heads": 2}, "Extra inputs"),
    ],
)
def test_shapes_that_cannot_work_are_refused(wrong: dict, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        small(**wrong)


def test_initial_loss_is_that_of_a_guess() -> None:
    model = model_of(small(init_std=0.02))
    ids = ids_of(4, 60)
    logits = model.logits(model(ids).hidden_BTD)
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(97), abs=0.1)
