"""MuonClip against its plain form, against torch, and at the edges where others break."""

import math

import pytest
import torch
from torch import nn

from tests.trainer.configs import CONFIGS, small
from tests.trainer.optim import reference
from trainer.model.cache import LatentCache
from trainer.model.decoder import Decoder
from trainer.model.initialization import new_decoder
from trainer.optim import muon
from trainer.optim.balance import load_excess, move_router_bias
from trainer.optim.muon import Blocks, MuonAdamW, OptimizerConfig, optimizer_of, set_lr
from trainer.optim.orthogonal import ITERATIONS, orthogonalize
from trainer.optim.qk_clip import qk_clip, rotary_key_norm

LR = 0.02


def gradients_for(weight: nn.Parameter, steps: int = 3) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(weight.numel())
    return [torch.randn(weight.shape, generator=generator) for _ in range(steps)]


def run(optimizer: torch.optim.Optimizer, weights: list[nn.Parameter], steps: int = 3) -> None:
    gradients = [gradients_for(w, steps) for w in weights]
    for step in range(steps):
        for weight, own in zip(weights, gradients, strict=True):
            weight.grad = own[step].to(weight.dtype)
        optimizer.step()


@pytest.mark.parametrize("coefficients", ITERATIONS)
@pytest.mark.parametrize("nesterov", [False, True])
def test_batched_muon_is_the_plain_one(coefficients: str, nesterov: bool) -> None:
    config = OptimizerConfig(coefficients=coefficients, nesterov=nesterov)  # pyright: ignore
    shapes = [(6, 10), (6, 10), (10, 6), (5, 6, 10), (4, 4)]
    torch.manual_seed(0)
    weights = [nn.Parameter(torch.randn(shape)) for shape in shapes]
    starts = [w.detach().clone() for w in weights]
    run(MuonAdamW([Blocks(weights, 1)], [], config, lr=LR), weights)
    for weight, start in zip(weights, starts, strict=True):
        gradients = gradients_for(weight)
        for place in [()] if weight.ndim == 2 else [(i,) for i in range(len(weight))]:
            expected = reference.muon(
                start[place],
                [g[place] for g in gradients],
                lr=LR,
                momentum=0.95,
                weight_decay=0.1,
                rms=0.2,
                coefficients=config.coefficients,
                nesterov=nesterov,
            )
            torch.testing.assert_close(weight[place], expected.float(), rtol=1e-4, atol=1e-5)


def test_heads_apart_are_so_many_smaller_matrices() -> None:
    torch.manual_seed(0)
    together, apart = nn.Parameter(torch.randn(12, 8)), None
    start = together.detach().clone()
    run(MuonAdamW([Blocks([together], 3)], [], lr=LR), [together])
    for head in range(3):
        rows = slice(4 * head, 4 * head + 4)
        apart = reference.muon(
            start[rows],
            [g[rows] for g in gradients_for(together)],
            lr=LR,
            momentum=0.95,
            weight_decay=0.1,
            rms=0.2,
            coefficients="quintic",
        )
        torch.testing.assert_close(together[rows], apart.float(), rtol=1e-4, atol=1e-5)


def test_muon_is_torch_s_where_both_do_the_same() -> None:
    torch.manual_seed(0)
    ours = nn.Parameter(torch.randn(16, 24))
    theirs = nn.Parameter(ours.detach().clone())
    config = OptimizerConfig(coefficients="muon", nesterov=True)
    run(MuonAdamW([Blocks([ours], 1)], [], config, lr=LR), [ours], 5)
    other = torch.optim.Muon([theirs], lr=LR, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    run(other, [theirs], 5)
    moved = (theirs.detach() - ours.detach()).norm() / theirs.detach().norm()
    assert moved < 0.01  # theirs iterates in bf16


def test_adamw_is_torch_s_and_the_plain_one() -> None:
    torch.manual_seed(0)
    ours = nn.Parameter(torch.randn(7, 5))
    start, theirs = ours.detach().clone(), nn.Parameter(ours.detach().clone())
    run(MuonAdamW([], [ours], lr=LR), [ours], 5)
    run(torch.optim.AdamW([theirs], lr=LR, betas=(0.9, 0.95), weight_decay=0.1), [theirs], 5)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    plain = reference.adamw(
        start, gradients_for(ours, 5), lr=LR, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1
    )
    torch.testing.assert_close(ours.detach(), plain.float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(64, 64), (128, 32), (32, 128)])
@pytest.mark.parametrize("coefficients", ["quintic", "polar_express"])
def test_updates_have_the_size_that_was_asked_for(
    shape: tuple[int, int], coefficients: str
) -> None:
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(shape))
    config = OptimizerConfig(coefficients=coefficients, weight_decay=0.0)  # pyright: ignore
    optimizer = MuonAdamW([Blocks([weight], 1)], [], config, lr=1.0)
    before = weight.detach().clone()
    run(optimizer, [weight], 1)
    measured = (weight.detach() - before).square().mean().sqrt().item()
    assert measured == pytest.approx(0.2, rel=0.05)
    assert optimizer.update_rms.item() == pytest.approx(measured, rel=1e-4)


@pytest.mark.parametrize("rank", [1, 8, 32])
def test_an_update_of_low_rank_is_smaller_by_the_root_of_its_share(rank: int) -> None:
    """What is zero stays zero: only so many of the 64 singular values are brought to 1."""
    torch.manual_seed(0)
    gradient = torch.randn(64, rank) @ torch.randn(rank, 64)
    made = orthogonalize(gradient[None], "polar_express") * math.sqrt(64) * 0.2
    measured = made.square().mean().sqrt().item()
    assert measured == pytest.approx(0.2 * math.sqrt(rank / 64), rel=0.12)


def test_orthogonal_means_orthogonal() -> None:
    torch.manual_seed(0)
    made = orthogonalize(torch.randn(3, 20, 50), "polar_express")
    values = torch.linalg.svdvals(made)
    assert values.min() > 0.8
    assert values.max() < 1.2
    assert torch.equal(orthogonalize(torch.zeros(1, 4, 4)), torch.zeros(1, 4, 4))


def test_newton_schulz_in_bf16_moves_weights_about_as_in_fp32() -> None:
    moved: dict[str, torch.Tensor] = {}
    for dtype in ("fp32", "bf16"):
        torch.manual_seed(0)
        weight = nn.Parameter(torch.zeros(48, 64))
        config = OptimizerConfig.model_validate({"newton_schulz": dtype, "weight_decay": 0.0})
        optimizer = MuonAdamW([Blocks([weight], 1)], [], config, lr=1.0)
        weight.grad = torch.randn(48, 64)
        optimizer.step()
        moved[dtype] = weight.detach()
    assert not torch.equal(moved["fp32"], moved["bf16"])
    assert (moved["fp32"] - moved["bf16"]).norm() < 0.05 * moved["fp32"].norm()


def test_masters_keep_what_bf16_would_lose() -> None:
    weight = nn.Parameter(torch.ones(8, 8, dtype=torch.bfloat16))
    optimizer = MuonAdamW([], [weight], OptimizerConfig(weight_decay=0.0), lr=1e-4)
    for _ in range(40):  # each step is smaller than half of what bf16 resolves at 1
        weight.grad = torch.ones_like(weight)
        optimizer.step()
    copy, master = optimizer.masters(weight)
    assert master.dtype == torch.float32
    torch.testing.assert_close(master, torch.full((8, 8), 1 - 40e-4), rtol=1e-5, atol=1e-5)
    assert torch.equal(copy, master.bfloat16())


def test_a_frozen_or_empty_group_is_no_trouble() -> None:
    norm_only = nn.Parameter(torch.ones(4))
    optimizer = MuonAdamW([Blocks([], 1)], [norm_only], lr=LR)
    optimizer.step()
    assert torch.equal(norm_only, torch.ones(4))


def test_matrices_that_cannot_be_split_are_refused() -> None:
    with pytest.raises(ValueError, match=r"3 blocks of rows, got shape \(4, 4\)"):
        MuonAdamW([Blocks([nn.Parameter(torch.ones(4, 4))], 3)], [], lr=LR)
    with pytest.raises(ValueError, match=r"got shape \(4,\)"):
        MuonAdamW([Blocks([nn.Parameter(torch.ones(4))], 1)], [], lr=LR)


def test_each_parameter_has_its_optimiser() -> None:
    model = new_decoder(small())
    optimizer = optimizer_of(model, OptimizerConfig(split_heads=True), lr=LR)
    names = {id(p): n for n, p in model.named_parameters()}
    by_blocks = {
        group["blocks"]: {names[id(p)] for p in group["params"]} for group in optimizer.param_groups
    }
    assert sum(map(len, by_blocks.values())) == len(names)
    assert all(n.endswith(("q_b_proj.weight", "kv_b_proj.weight")) for n in by_blocks[2])
    rest = {n for n in by_blocks[0] if not n.endswith("norm.weight")}
    assert rest == {"model.embed_tokens.weight", "lm_head.weight"}
    assert "model.layers.1.mlp.gate.weight" in by_blocks[1]
    assert "model.layers.1.mlp.experts.up_proj" in by_blocks[1]


# QK-Clip


def clipped_model(name: str) -> tuple[Decoder, MuonAdamW, torch.Tensor]:
    torch.manual_seed(3)
    model = new_decoder(CONFIGS[name]).double()
    model.inverse_frequencies = model.inverse_frequencies.double()
    ids = torch.randint(0, 97, (2, 20))
    return model, optimizer_of(model, lr=LR), ids


def head_logits(model: Decoder, ids: torch.Tensor) -> torch.Tensor:
    """Logits of every head of the first layer, (H, T, S); its input does not hang on its heads."""
    attention, kept = model.layers[0].self_attn, []
    hook = attention.register_forward_pre_hook(lambda _m, args: kept.append(args))
    model(ids[:1])
    hook.remove()
    x, context = kept[0]
    k, _ = attention.expand(*attention.latents(x, context))
    return (attention.queries(x, context)[0] @ k[0].mT).detach() * attention.scale


@pytest.mark.parametrize("name", ["plain", "uncompressed_queries", "yarn"])
@pytest.mark.parametrize("alpha", [0.5, 0.2])
def test_clipping_scales_the_logits_of_a_head_by_exactly_gamma(name: str, alpha: float) -> None:
    model, optimizer, ids = clipped_model(name)
    before = head_logits(model, ids)
    tops = torch.full((3, 2), 1.0)
    tops[0, 1] = 40.0
    clipped = qk_clip(model, optimizer, tops, tau=10.0, alpha=alpha)
    after = head_logits(model, ids)
    assert clipped.heads == 1
    assert clipped.gamma_LH[0].tolist() == [1.0, 0.25]
    assert torch.equal(after[0], before[0])
    torch.testing.assert_close(after[1], before[1] * 0.25, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["plain", "uncompressed_queries"])
def test_clipping_touches_the_rows_that_the_plain_form_touches(name: str) -> None:
    model, optimizer, _ = clipped_model(name)
    config, attention = model.config, model.layers[1].self_attn
    before = {n: v.clone() for n, v in model.state_dict().items()}
    heads = attention.query_weight.detach().clone().unflatten(0, (2, -1))
    keys = attention.kv_b_proj.weight.detach().clone().unflatten(0, (2, -1))
    nope = config.qk_nope_head_dim
    tops = torch.ones(3, 2)
    tops[1, 0] = 30.0
    qk_clip(model, optimizer, tops, tau=10.0)
    q_nope, q_rope, k_nope = reference.clip_head(
        heads[0, :nope], heads[0, nope:], keys[0, :nope], 30.0, tau=10.0
    )
    heads[0] = torch.cat((q_nope, q_rope))
    keys[0, :nope] = k_nope
    for weight, expected in ((attention.query_weight, heads), (attention.kv_b_proj.weight, keys)):
        torch.testing.assert_close(weight.detach(), expected.flatten(0, 1), rtol=1e-6, atol=0)
    touched = {n for n, v in model.state_dict().items() if not torch.equal(v, before[n])}
    last = "q_proj" if config.q_lora_rank is None else "q_b_proj"
    assert touched == {f"model.layers.1.self_attn.{p}.weight" for p in (last, "kv_b_proj")}


@pytest.mark.parametrize("other", [-3.0, 0.0, -1e30, float("inf"), float("nan"), float("-inf")])
def test_a_strange_maximum_spoils_no_weight(other: float) -> None:
    model, optimizer, ids = clipped_model("plain")
    before = head_logits(model, ids)
    tops = torch.ones(3, 2)
    tops[0] = torch.tensor([150.0, other])
    clipped = qk_clip(model, optimizer, tops, tau=100.0)
    assert all(torch.isfinite(p).all() for p in model.parameters())
    assert clipped.not_finite == int(not torch.isfinite(torch.tensor(other)))
    assert torch.equal(head_logits(model, ids)[1], before[1])


def test_clipping_reaches_masters_and_copies() -> None:
    torch.manual_seed(0)
    model = new_decoder(small()).bfloat16()
    optimizer = optimizer_of(model, lr=LR)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    weight = model.layers[0].self_attn.kv_b_proj.weight
    copy, master = optimizer.masters(weight)
    before = master.clone()
    qk_clip(model, optimizer, torch.full((3, 2), 400.0), tau=100.0)
    nope = model.config.qk_nope_head_dim
    torch.testing.assert_close(master[:nope], before[:nope] / 2)
    assert torch.equal(copy, master.bfloat16())


def test_generation_sees_what_was_clipped() -> None:
    """The halves of `kv_b_proj` that a single new token is multiplied with are read anew."""
    torch.manual_seed(0)
    model = new_decoder(small())
    ids = torch.randint(0, 97, (1, 12))
    qk_clip(model, optimizer_of(model, lr=LR), torch.full((3, 2), 1e4), tau=1.0)
    cache = LatentCache(
        model.config, slots=1, tokens=12, device=torch.device("cpu"), dtype=torch.float32
    )
    slot, one = torch.tensor([0]), torch.tensor([1])
    last = [model.extend(ids[:, t : t + 1], one, slot, cache) for t in range(12)][-1]
    torch.testing.assert_close(last, model(ids).hidden_BTD[:, -1], rtol=1e-4, atol=1e-5)


def test_what_is_left_to_grow_is_told() -> None:
    model = new_decoder(small())
    before = rotary_key_norm(model)
    qk_clip(model, optimizer_of(model, lr=LR), torch.full((3, 2), 400.0), tau=100.0)
    assert rotary_key_norm(model) == before
    with torch.no_grad():
        model.layers[1].self_attn.kv_a_proj_with_mqa.weight[model.config.kv_lora_rank :] *= 10
    assert rotary_key_norm(model) > 5 * before


def test_stacks_are_bounded_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    moved, told = [], []
    for entries in (2**27, 100, 1):
        monkeypatch.setattr(muon, "STACK_ENTRIES", entries)
        torch.manual_seed(0)
        weights = [nn.Parameter(torch.randn(s)) for s in [(6, 10), (6, 10), (2, 6, 10), (4, 4)]]
        optimizer = MuonAdamW([Blocks(weights, 1)], [], lr=LR)
        run(optimizer, weights)
        moved.append(torch.cat([w.detach().flatten() for w in weights]))
        told.append(optimizer.update_rms.item())
    for other in (1, 2):
        torch.testing.assert_close(moved[0], moved[other], rtol=1e-5, atol=1e-6)
        assert told[other] == pytest.approx(told[0], rel=1e-5)


def test_momentum_is_left_alone() -> None:
    torch.manual_seed(0)
    model = new_decoder(small())
    optimizer = optimizer_of(model, lr=LR)
    model(torch.randint(0, 97, (1, 10))).hidden_BTD.sum().backward()
    optimizer.step()
    momentum = optimizer.state[model.layers[0].self_attn.kv_b_proj.weight]["momentum"]
    before = momentum.clone()
    qk_clip(model, optimizer, torch.full((3, 2), 400.0), tau=100.0)
    assert torch.equal(momentum, before)


# Balance and schedule


def biases_of(model: Decoder) -> list[torch.Tensor]:
    return [b for n, b in model.named_buffers() if n.endswith("e_score_correction_bias")]


def test_bias_moves_towards_idle_experts_and_keeps_its_mean() -> None:
    model = new_decoder(small())
    load = torch.tensor([[10, 0, 5, 5, 5, 5, 5, 5], [5] * 8])
    move_router_bias(model, load, rate=0.01)
    first, second = biases_of(model)
    assert first[0] < 0 < first[1]
    assert first.mean().item() == pytest.approx(0.0, abs=1e-9)
    assert torch.equal(second, torch.zeros(8))
    assert load_excess(load) == pytest.approx(0.5)


@pytest.mark.slow
def test_bias_evens_out_a_router_that_favours_one_expert() -> None:
    torch.manual_seed(0)
    model = new_decoder(small(init_std=0.02))
    for bias in biases_of(model):
        bias[3] = 0.5
    ids = torch.randint(0, 97, (4, 60))
    first = load_excess(model(ids).load_LE)
    for _ in range(150):
        move_router_bias(model, model(ids).load_LE, rate=0.005)
    assert load_excess(model(ids).load_LE) < first / 3


def test_lr_is_set_for_every_group() -> None:
    optimizer = optimizer_of(new_decoder(small()), lr=LR)
    set_lr(optimizer, 0.5)
    assert {group["lr"] for group in optimizer.param_groups} == {0.5}
