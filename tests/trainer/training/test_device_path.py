"""The step as a device takes it, here without one: it asks for nothing but at its end, gives what
the CPU's way gives, and changes nothing to the bit where it is bad.

Attention alone is stood in for (`tests.trainer.dense_attention`). On torch's meta device every
reading of a value is an error, whoever makes it, so a step that goes through there reads nothing.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from records.errors import ConfigError
from tests.trainer.configs import small
from tests.trainer.dense_attention import standing_in
from tests.trainer.training.test_step import batch_of, config_of
from trainer.data.packing import PADDING, PackedBatch
from trainer.model.config import PRESETS, TransformerConfig
from trainer.model.decoder import Decoder
from trainer.model.initialization import new_decoder
from trainer.model.paths import ComputePath, path_of
from trainer.optim.muon import MuonAdamW, OptimizerConfig, optimizer_of
from trainer.training import step as steps
from trainer.training.devices import refuse_widths
from trainer.training.step import AFTER, BEFORE_JUDGING, Stepper

SHAPE = small(vocab_size=320, init_std=0.05, moe_intermediate_size=24)
"""A GPU takes experts whose widths are multiples of 8, and torch's shapes know it."""

READINGS = 1
"""Of a step: one that decides and tells everything, at its end. A second one would let the device
run out of work in the middle of the step."""

SYNCS = ("_local_scalar_dense", "nonzero", "masked_select", "bincount", "unique", "_unique2")
"""Operations for whose sizes or values the host waits."""


def padded(batch: PackedBatch) -> PackedBatch:
    """With two documents in the second row, and padding behind them."""
    documents = batch.documents_BT.clone()
    documents[1, 12:] = 1
    documents[1, 25:] = PADDING
    return batch._replace(documents_BT=documents)


def stepper_of(model: Decoder, tmp_path: Path, **other: Any) -> Stepper:
    return Stepper(model, optimizer_of(model, lr=1e-2), config_of(tmp_path, micro_rows=2, **other))


def on_path(path: ComputePath, tmp_path: Path, **other: Any) -> Stepper:
    model = new_decoder(SHAPE)
    model.path = path
    return stepper_of(model, tmp_path, **other)


class Waits(TorchDispatchMode):
    """Counts what makes a host wait for a device."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.__name__.partition(".")[0]
        masked = name == "index" and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        if name in SYNCS or masked:
            self.counts[name] += 1
        return func(*args, **(kwargs or {}))


def counted_readings(monkeypatch: pytest.MonkeyPatch, answer: bool = False) -> list[int]:
    """Grows by one each time that a step reads. `answer`: make numbers up, for want of values."""
    readings: list[int] = []
    plain = steps.read_back

    def read_back(told: Mapping[str, Tensor]) -> dict[str, list[float]]:
        readings.append(sum(tensor.numel() for tensor in told.values()))
        if answer:
            return {name: [1.0] * tensor.numel() for name, tensor in told.items()}
        return plain(told)

    monkeypatch.setattr(steps, "read_back", read_back)
    return readings


OTHER = {"q_lora_rank": None, "num_groups": 4, "groups_per_token": 2, "num_dense_layers": 0}


@pytest.mark.parametrize(
    ("shape", "recompute"), [(SHAPE, False), (SHAPE.model_copy(update=OTHER), True)]
)
def test_nothing_is_read_from_where_nothing_can_be_read(
    shape: TransformerConfig, recompute: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = counted_readings(monkeypatch, answer=True)
    with torch.device("meta"):
        model = Decoder(shape)
    model.cast(torch.bfloat16)
    model.recompute = recompute
    stepper = stepper_of(model, tmp_path, balance_loss=1e-3)
    stepper.norms.extend([1.0] * BEFORE_JUDGING)
    with standing_in():
        stepper.step(padded(batch_of(0)))
    assert path_of(model.device) is ComputePath.DEVICE
    assert len(readings) == READINGS


def test_a_step_reads_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = on_path(ComputePath.DEVICE, tmp_path)
    readings = counted_readings(monkeypatch)
    micro_batches = steps.micro_batches
    monkeypatch.setattr(steps, "micro_batches", lambda *given: prepared)
    for n in range(2):
        prepared = list(micro_batches(batch_of(n), 2, torch.device("cpu")))  # the host's own work
        batch, targets = batch_of(n), batch_of(n).num_targets
        monkeypatch.setattr(PackedBatch, "num_targets", targets)
        with standing_in(), Waits() as waits:
            stepper.step(batch)
        assert waits.counts.total() == 0, waits.counts
    assert len(readings) == 2 * READINGS


def test_what_makes_a_host_wait_is_counted() -> None:
    """The counter itself, on the CPU's way, which waits freely."""
    with Waits() as waits:
        x = torch.arange(6.0)
        assert bool(x.sum() > 1)
        assert len(x[x > 2].nonzero()) == 3
    assert waits.counts == {"_local_scalar_dense": 1, "index": 1, "nonzero": 1}


def test_both_ways_give_the_same(tmp_path: Path) -> None:
    results, weights = [], []
    for path in ComputePath:
        stepper = on_path(path, tmp_path, qk_clip_tau=0.05)
        with standing_in():
            results.append([stepper.step(padded(batch_of(n))) for n in range(3)])
        weights.append([p.detach() for p in stepper.model.parameters()])
    for cpu, device in zip(*results, strict=True):
        assert cpu.skipped is device.skipped is None
        assert cpu.clipped_heads > 0
        for name in ("loss", "grad_norm", "max_logit", *AFTER):
            assert getattr(device, name) == pytest.approx(getattr(cpu, name), rel=1e-4), name
    for cpu, device in zip(*weights, strict=True):
        torch.testing.assert_close(cpu, device, rtol=1e-3, atol=1e-4)


def everything(stepper: Stepper) -> dict[str, Any]:
    """Weights, buffers and the state of the optimiser, as they are."""
    found: dict[str, Any] = {n: v.clone() for n, v in stepper.model.state_dict().items()}
    for name, p in stepper.model.named_parameters():
        for what, value in stepper.optimizer.state[p].items():
            found[f"{name} {what}"] = value.clone() if isinstance(value, Tensor) else value
    return found


@pytest.mark.parametrize("path", ComputePath)
@pytest.mark.parametrize("bad", ["no_number", "spike"])
def test_a_bad_step_changes_nothing_to_the_bit(path: ComputePath, bad: str, tmp_path: Path) -> None:
    stepper = on_path(path, tmp_path, qk_clip_tau=1e-3)
    with standing_in():
        stepper.step(batch_of(0))
        before = everything(stepper)
        factor = float("nan") if bad == "no_number" else 1.0
        weight = stepper.model.model.norm.weight
        hook = weight.register_hook(lambda gradient: gradient * factor)
        stepper.norms.extend([1e-6] * BEFORE_JUDGING)
        result = stepper.step(batch_of(1))
        hook.remove()
    assert result.skipped == bad
    after = everything(stepper)
    assert before.keys() == after.keys()
    for name, value in before.items():
        now = after[name]
        if isinstance(value, Tensor):
            assert now.numpy().tobytes() == value.numpy().tobytes(), name
        else:
            assert now == value, name
    stepper.norms.clear()
    with standing_in():
        assert stepper.step(batch_of(1)).skipped is None
    assert not torch.equal(before["lm_head.weight"], stepper.model.lm_head.weight)


def test_gradients_of_bf16_weights_add_up_in_fp32(tmp_path: Path) -> None:
    """The sum of what each backward pass made, to the bit; in bf16 it comes out otherwise."""
    model = new_decoder(small(vocab_size=320))
    model.cast(torch.bfloat16)
    stepper = Stepper(model, optimizer_of(model, lr=0.0), config_of(tmp_path, micro_rows=1))
    made: dict[Tensor, list[Tensor]] = {p: [] for p in model.parameters()}
    for p, parts in made.items():
        p.register_hook(lambda gradient, parts=parts: parts.append(gradient.clone()))
    stepper._gradients(batch_of(0))
    differing = 0
    for p, parts in made.items():
        assert len(parts) == 4
        whole = torch.zeros(p.shape)
        for part in parts:
            whole += part
        assert p.grad is not None
        assert torch.equal(p.grad, whole)
        narrow = [part.to(p.dtype) for part in parts]
        assert all(torch.equal(a, b.float()) for a, b in zip(parts, narrow, strict=True))
        in_bf16 = narrow[0] + narrow[1] + narrow[2] + narrow[3]
        differing += int((in_bf16 != whole).sum())
    assert differing > 1000


def test_a_step_that_is_not_taken_is_forgotten() -> None:
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = MuonAdamW([], [weight], OptimizerConfig(), lr=0.1)
    weight.grad = torch.ones(4)
    optimizer.step(taken=torch.tensor(False))
    optimizer.forget_step()
    assert optimizer.state[weight]["step"] == 0
    optimizer.step(taken=torch.tensor(True))
    once = torch.nn.Parameter(torch.ones(4))
    other = MuonAdamW([], [once], OptimizerConfig(), lr=0.1)
    once.grad = torch.ones(4)
    other.step()
    assert torch.equal(weight, once)


def test_widths_that_a_gpu_does_not_take_are_refused_before_anything_is_made() -> None:
    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    for preset in PRESETS.values():
        refuse_widths(preset, cuda)
    refuse_widths(small(), cpu)
    told = (
        r"moe_intermediate_size = 20 must be a multiple of 8; v_head_dim = 12 must be 16 at least"
    )
    with pytest.raises(ConfigError, match=told):
        refuse_widths(small(), cuda)
