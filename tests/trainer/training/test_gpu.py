"""On a GPU: what a CPU's run of the same step says holds there, in bf16 and compiled."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.trainer import dense_attention
from tests.trainer.small_run import config_of as run_config
from tests.trainer.small_run import rows
from tests.trainer.training.test_device_path import everything, padded
from tests.trainer.training.test_step import batch_of, config_of
from trainer.data.packing import PADDING
from trainer.model import fused
from trainer.model.config import PRESETS
from trainer.model.decoder import Decoder
from trainer.model.initialization import new_decoder
from trainer.optim.muon import optimizer_of
from trainer.training import step as steps
from trainer.training.loop import train
from trainer.training.metrics import read_metrics
from trainer.training.step import BEFORE_JUDGING, Stepper

pytestmark = pytest.mark.gpu

SHAPE = PRESETS["tiny"].model_copy(update={"vocab_size": 320})
CUDA = torch.device("cuda")

WARM = 2
"""Steps in which things are compiled, for which a host waits."""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch.cuda.set_sync_debug_mode("default")


def steppers(tmp_path: Path, **other: Any) -> tuple[Stepper, Stepper]:
    """Of the same weights, on a CPU in fp32 and on a GPU in bf16."""
    here = new_decoder(SHAPE)
    with torch.device("meta"):
        there = Decoder(SHAPE)
    there.allocate(CUDA, torch.bfloat16)
    there.load_state_dict(here.state_dict())
    there.compile_layers()
    config = config_of(tmp_path, micro_rows=2, **other)
    cpu, gpu = (Stepper(m, optimizer_of(m, lr=2e-3), config) for m in (here, there))
    return cpu, gpu


def test_losses_and_maxima_are_the_cpu_s_but_for_bf16(tmp_path: Path) -> None:
    cpu, gpu = steppers(tmp_path)
    for n in range(10):
        batch = padded(batch_of(n))
        here, there = cpu.step(batch), gpu.step(batch)
        assert there.skipped is None
        assert there.loss == pytest.approx(here.loss, rel=0.02)
        assert there.grad_norm == pytest.approx(here.grad_norm, rel=0.1)
        assert there.max_logit == pytest.approx(here.max_logit, rel=0.05)
        assert there.update_rms == pytest.approx(here.update_rms, rel=0.05)


def test_a_step_waits_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch itself tells whoever makes the host wait: an error anywhere but in the one reading."""
    _, gpu = steppers(tmp_path, qk_clip_tau=0.05, balance_loss=1e-3)
    plain, readings = steps.read_back, 0

    def read_back(told: Mapping[str, Tensor]) -> dict[str, list[float]]:
        nonlocal readings
        readings += 1
        torch.cuda.set_sync_debug_mode("default")
        return plain(told)

    monkeypatch.setattr(steps, "read_back", read_back)
    for n in range(WARM + 3):
        if n >= WARM:
            torch.cuda.set_sync_debug_mode("error")
        gpu.step(padded(batch_of(n)))
    assert readings == WARM + 3


def test_gradients_and_masters_are_fp32(tmp_path: Path) -> None:
    _, gpu = steppers(tmp_path)
    gpu.step(batch_of(0))
    for name, p in gpu.model.named_parameters():
        assert p.grad is not None
        kinds = p.dtype, p.grad.dtype, gpu.optimizer.state[p]["master"].dtype
        assert kinds == (torch.bfloat16, torch.float32, torch.float32), name


def test_a_bad_step_changes_nothing_to_the_bit(tmp_path: Path) -> None:
    _, gpu = steppers(tmp_path, qk_clip_tau=1e-3)
    gpu.step(batch_of(0))
    before = everything(gpu)
    gpu.norms.extend([1e-6] * BEFORE_JUDGING)
    assert gpu.step(batch_of(1)).skipped == "spike"
    for name, value in everything(gpu).items():
        if isinstance(value, Tensor):
            assert torch.equal(value, before[name]), name
        else:
            assert value == before[name], name


def test_flex_attention_gives_values_gradients_and_exact_maxima() -> None:
    torch.manual_seed(0)
    documents = torch.tensor([[0] * 70 + [1] * 100 + [PADDING] * 30, [0] * 200], device=CUDA)
    shapes = ((2, 3, 200, 64), (2, 3, 200, 64), (2, 3, 200, 32))
    made: list[list[Tensor]] = []
    inputs = [torch.randn(s, device=CUDA, dtype=torch.bfloat16) for s in shapes]
    for way in (fused, dense_attention):
        q, k, v = (x.clone().requires_grad_() for x in inputs)
        out, top = way.attend(
            q,
            k,
            v,
            way.visibility(documents),  # pyright: ignore[reportArgumentType]
            scale=0.3,
            real_BT=documents != PADDING,
            track_logits=True,
        )
        out.float().square().sum().backward()
        assert top is not None
        grads = [x.grad for x in (q, k, v) if x.grad is not None]
        made.append([out, top, *grads])
    for flex, dense in zip(*made, strict=True):
        assert (flex.float() - dense.float()).norm() < 0.02 * dense.float().norm()


def test_a_run_learns(tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    config = run_config(data, tmp_path / "run", shape=None, preset="tiny", steps=60, device="cuda")
    lines = read_metrics(train(config).folder)
    assert lines[-1]["loss"] < 0.5 * lines[0]["loss"]
