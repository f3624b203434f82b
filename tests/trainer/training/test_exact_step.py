"""A whole step in float64 against the same written out plainly: nothing on the way is narrower."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.trainer.configs import small
from tests.trainer.dense_attention import standing_in
from tests.trainer.model.reference import forward
from tests.trainer.optim import reference
from tests.trainer.training.test_device_path import padded
from tests.trainer.training.test_step import batch_of, config_of
from trainer.data.packing import PackedBatch
from trainer.model.initialization import new_decoder
from trainer.model.paths import ComputePath
from trainer.optim.muon import OptimizerConfig, optimizer_of
from trainer.training.settings import TrainConfig
from trainer.training.step import Stepper

LR, TAU, LARGEST_ERROR = 0.02, 0.5, 1e-10

SHAPE = small(vocab_size=320, num_layers=2, moe_intermediate_size=24)


def stepped(
    weights: dict[str, Tensor], batch: PackedBatch, config: TrainConfig
) -> dict[str, Tensor]:
    """The weights after one step, and what is told of it."""
    own = {n: w.clone().requires_grad_(w.is_floating_point()) for n, w in weights.items()}
    size, total = config.data.micro_rows, batch.num_targets
    parts = [PackedBatch(*part) for part in zip(*(t.split(size) for t in batch), strict=True)]
    passes = [forward(own, SHAPE, part) for part in parts]
    loss = sum(p.summed / total + config.balance_loss * p.imbalance / len(parts) for p in passes)
    learnt = [n for n in own if not n.endswith("bias")]
    gradients = dict(
        zip(learnt, torch.autograd.grad(loss, [own[n] for n in learnt]), strict=True)  # type: ignore
    )
    length = torch.stack([g.square().sum() for g in gradients.values()]).sum().sqrt()
    shrunk = min(1.0, config.clip_norm / (float(length) + 1e-6))
    made: dict[str, Tensor] = {}
    for name, gradient in gradients.items():
        made[name] = moved(name, weights[name], gradient * shrunk, config.optimizer)
    top_LH = torch.stack([p.max_logit_LH for p in passes]).amax(0)
    for layer, top_H in enumerate(top_LH):
        clip(made, f"model.layers.{layer}.self_attn.", top_H)
    load_LE = torch.stack([p.load_LE for p in passes]).sum(0).double()
    for load_E, name in zip(load_LE, (n for n in own if n.endswith("bias")), strict=True):
        lack_E = (load_E.mean() - load_E).sign()
        made[name] = weights[name] + config.balance_rate * (lack_E - lack_E.mean())
    told = {
        "loss": torch.stack([p.summed for p in passes]).sum() / total,
        "grad_norm": length,
        "max_logit": top_LH.max(),
        "clipped_heads": (top_LH > TAU).sum(),
    }
    return made | {name: value.detach().double() for name, value in told.items()}


def moved(name: str, weight: Tensor, gradient: Tensor, config: OptimizerConfig) -> Tensor:
    decay = config.weight_decay
    if weight.ndim < 2 or not name.startswith("model.layers."):
        betas = (config.beta1, config.beta2)
        return reference.adamw(
            weight, [gradient], lr=LR, betas=betas, eps=config.eps, weight_decay=decay
        )
    pairs = zip(weight, gradient, strict=True) if weight.ndim == 3 else [(weight, gradient)]
    matrices = [
        reference.muon(
            w,
            [g],
            lr=LR,
            momentum=config.momentum,
            weight_decay=decay,
            rms=config.update_rms,
            coefficients=config.coefficients,
        )
        for w, g in pairs
    ]
    return torch.stack(matrices).view_as(weight)


def clip(weights: dict[str, Tensor], attention: str, top_H: Tensor) -> None:
    nope = SHAPE.qk_nope_head_dim
    heads = (weights[f"{attention}{n}.weight"].chunk(len(top_H)) for n in ("q_b_proj", "kv_b_proj"))
    for query, both, top in zip(*heads, top_H, strict=True):
        clipped = reference.clip_head(query[:nope], query[nope:], both[:nope], float(top), tau=TAU)
        query[:nope], query[nope:], both[:nope] = clipped


def grouped_mm(rows: Tensor, stack: Tensor, *, offs: Tensor) -> Tensor:
    """As torch's, which takes no float64."""
    groups = zip((0, *offs.tolist()), offs.tolist(), stack, strict=False)
    return torch.cat([rows[a:b] @ matrix for a, b, matrix in groups])


@pytest.mark.parametrize("path", ComputePath)
def test_a_step_in_float64_is_exact(
    path: ComputePath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.nn.functional, "grouped_mm", grouped_mm)
    model = new_decoder(SHAPE)
    model.cast(torch.float64)
    model.path = path
    before = {n: w.detach().double().clone() for n, w in model.state_dict().items()}
    config = config_of(tmp_path, micro_rows=2, qk_clip_tau=TAU, balance_loss=0.1)
    stepper = Stepper(model, optimizer_of(model, config.optimizer, lr=LR), config)
    batch = padded(batch_of(0, rows_=3))
    with standing_in():
        result = stepper.step(batch)
    expected = stepped(before, batch, config)
    for name in ("loss", "grad_norm", "max_logit", "clipped_heads"):
        assert getattr(result, name) == pytest.approx(expected[name].item(), abs=LARGEST_ERROR)
    assert result.clipped_heads > 0
    for name, weight in model.state_dict().items():
        rounding = 1e-9 if name.endswith("bias") else LARGEST_ERROR  # biases are fp32 by design
        error = (weight - expected[name]).abs().max().item()
        assert error < rounding, f"{name}: {error:.1e}"
        assert (expected[name] - before[name]).abs().max() > 1e-4, f"{name} was not moved"
