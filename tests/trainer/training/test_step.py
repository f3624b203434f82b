"""A step changes what it should, or nothing: micro-batches, bad numbers, spikes."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.small_run import SHAPE
from trainer.data.packing import IGNORE, PackedBatch
from trainer.data.sources import CorpusConfig
from trainer.model.initialization import new_decoder
from trainer.optim.muon import optimizer_of
from trainer.training.settings import DataConfig, TrainConfig
from trainer.training.step import BEFORE_JUDGING, REMEMBERED, Stepper


def batch_of(seed: int, rows_: int = 4) -> PackedBatch:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 320, (rows_, 32), generator=generator)
    targets = ids.roll(-1, 1)
    targets[0, 3:] = IGNORE  # unequal numbers of targets: a mean of means would differ
    return PackedBatch(ids, targets, torch.zeros_like(ids))


def config_of(tmp_path: Path, *, micro_rows: int = 4, **other: Any) -> TrainConfig:
    data = DataConfig(sources=(CorpusConfig(path="-"),), batch_rows=4, micro_rows=micro_rows)
    return TrainConfig(out=str(tmp_path), data=data, **other)


def stepper_of(tmp_path: Path, **other: Any) -> Stepper:
    model = new_decoder(SHAPE)
    return Stepper(model, optimizer_of(model, lr=1e-2), config_of(tmp_path, **other))


@pytest.mark.slow
def test_smaller_micro_batches_change_no_step(tmp_path: Path) -> None:
    results, weights = [], []
    for micro_rows in (4, 2, 1):
        stepper = stepper_of(tmp_path, micro_rows=micro_rows)
        results.append([stepper.step(batch_of(n)) for n in range(3)])
        weights.append(torch.cat([p.flatten() for p in stepper.model.parameters()]))
    for other in (1, 2):
        for a, b in zip(results[0], results[other], strict=True):
            assert (a.loss, a.max_logit, a.load_excess) == pytest.approx(
                (b.loss, b.max_logit, b.load_excess), rel=1e-3
            )
        torch.testing.assert_close(weights[0], weights[other], rtol=0.02, atol=2e-3)


def test_a_step_that_is_no_number_changes_nothing(tmp_path: Path) -> None:
    stepper = stepper_of(tmp_path)
    stepper.step(batch_of(0))
    before = [p.detach().clone() for p in stepper.model.parameters()]
    with torch.no_grad():
        kept = stepper.model.lm_head.weight[0, 0].clone()
        stepper.model.lm_head.weight[0, 0] = float("nan")
    result = stepper.step(batch_of(1))
    assert result.skipped == "no_number"
    assert result.why_skipped == "loss nan, gradient norm nan"
    with torch.no_grad():
        stepper.model.lm_head.weight[0, 0] = kept
    assert all(torch.equal(p, b) for p, b in zip(stepper.model.parameters(), before, strict=True))


def test_largest_logits_are_told_without_clipping_too(tmp_path: Path) -> None:
    clipped, watched = (
        stepper_of(tmp_path, qk_clip_tau=tau).step(batch_of(0)) for tau in (1e-6, None)
    )
    assert watched.max_logit == clipped.max_logit > 0
    assert (watched.clipped_heads, clipped.clipped_heads) == (0, 6)
    assert watched.rotary_key_norm > 0


@pytest.mark.slow
def test_a_spike_is_told_from_what_came_before(tmp_path: Path) -> None:
    stepper = stepper_of(tmp_path, spike=20.0)
    for n in range(BEFORE_JUDGING):
        assert stepper.step(batch_of(n)).skipped is None
    stepper.norms.extend([1e-4] * 100)
    spike = stepper.step(batch_of(99))
    assert spike.skipped == "spike"
    assert "times the usual 0.0001" in (spike.why_skipped or "")


@pytest.mark.slow
def test_a_rise_that_lasts_becomes_the_usual(tmp_path: Path) -> None:
    stepper = stepper_of(tmp_path, spike=20.0)
    stepper.norms.extend([1e-4] * REMEMBERED)
    half = REMEMBERED // 2
    skipped = [stepper.step(batch_of(n)).skipped for n in range(half + 2)]
    assert skipped[:half] == ["spike"] * half
    assert skipped[-1] is None
