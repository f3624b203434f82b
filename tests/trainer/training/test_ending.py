"""A run ends with a model of its own, or fails and says why: it never exports what is broken."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from records.errors import ConfigError, SynthError
from tests.trainer.small_run import config_of
from trainer.__main__ import app, main
from trainer.data.packing import PackedBatch
from trainer.training.checkpoints import checkpoints_in
from trainer.training.ending import diverged
from trainer.training.loop import train
from trainer.training.metrics import read_metrics
from trainer.training.settings import TrainConfig, ValidationConfig
from trainer.training.step import StepFault, Stepper, StepResult
from trainer.training.validation import ValidationRows

pytestmark = pytest.mark.usefixtures("undrawn")

PLAN = {"warmup_tokens": 512, "phases": [{"tokens": 10_000, "to": 5e-3}]}
"""A schedule that does not hang on the number of steps."""


def skip_from(monkeypatch: pytest.MonkeyPatch, step: int, reason: str = "spike") -> None:
    """Every step from the one on is bad. Only good norms are remembered here, so they count."""
    taken = iter(range(1, 1000))
    monkeypatch.setattr(
        Stepper, "_fault", lambda *_: StepFault(reason, "bad") if next(taken) >= step else None
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model-00001-of-00001.safetensors")


def same(one: Path, other: Path) -> bool:
    a, b = weights(one), weights(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_run_that_diverges_fails_and_exports_nothing(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(data, tmp_path / "run", steps=16, peak_lr=1e12, max_bad_steps=4)
    file = tmp_path / "run.json"
    file.write_text(config.model_dump_json())
    monkeypatch.setattr("trainer.__main__.read_settings", lambda *_: config.model_dump())
    monkeypatch.setattr("trainer.__main__.app", partial(app, ["sft", str(file)]))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert "4 steps in a row were skipped (4 no_number: loss or gradient is no number)" in told
    assert "no model is exported" in told
    assert "No checkpoint was written before. Where training diverges, lower peak_lr" in told
    assert not (config.folder / "model").exists()
    lines = read_metrics(config.folder)
    assert [bool(line["skipped"]) for line in lines[-4:]] == [True] * 4
    assert len(lines) < 16


@pytest.mark.parametrize("share", [0.02, 0.0])
def test_a_run_that_is_worse_than_guessing_exports_nothing(
    share: float, data: Path, tmp_path: Path
) -> None:
    """Its weights are finite, and no step is bad."""
    validation = ValidationConfig(share=share)
    config = config_of(data, tmp_path / "run", steps=4, peak_lr=10.0, validation=validation)
    told = r"its loss is .*, where guessing .* has 5\.768, and .*5\."
    with pytest.raises(SynthError, match=told):
        train(config)
    assert not any(line["skipped"] for line in read_metrics(config.folder))
    assert not (config.folder / "model").exists()


def test_a_run_has_diverged_where_it_is_worse_than_guessing_and_than_its_beginning() -> None:
    chance = math.log(320)
    assert diverged(chance + 0.9, None, 320) is None
    assert diverged(chance + 1.1, None, 320) is not None
    assert diverged(chance + 1.1, chance + 0.2, 320) is None
    assert diverged(chance + 1.3, chance + 0.2, 320) is not None
    assert diverged(chance, 0.5, 320) is None  # no better than guessing, and no worse


def test_a_run_whose_end_diverged_exports_the_best_where_it_stops_early(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(data, tmp_path / "run", steps=12, schedule=PLAN)
    losses(monkeypatch, iter([3.0, 30.0, 300.0]))
    assert train(stopping(config, 2)).exported == 1


def test_a_failed_run_names_its_last_good_checkpoint_and_keeps_no_earlier_model_as_its_own(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(data, tmp_path / "run", steps=4, schedule=PLAN, keep=1)
    train(config)
    first = weights(config.folder / "model")
    skip_from(monkeypatch, 3)
    longer = config.model_copy(update={"steps": 30, "checkpoint_every": 1, "max_bad_steps": 5})
    with pytest.raises(
        SynthError,
        match=r"at step 11: 5 steps in a row .* good checkpoint is .*step-00000006, with",
    ):
        train(longer)
    # checkpoints of skipped steps would have pushed the good one out
    assert [p.name for p in checkpoints_in(config.folder / "checkpoints")] == ["step-00000006"]
    assert not (config.folder / "model").exists()
    kept = weights(config.folder / "model-at-step-00000004")
    assert all(torch.equal(first[name], kept[name]) for name in first)
    monkeypatch.undo()
    monkeypatch.setattr("trainer.training.curves.can_draw", lambda: False)
    assert train(longer.model_copy(update={"steps": 8})).begun == 6


@pytest.mark.parametrize(
    ("reason", "first", "told"),
    [
        ("spike", 5, None),
        ("spike", 4, "2 steps in a row were skipped .2 spike: .* as it came to its end"),
        ("no_number", 5, "the last step was skipped .1 no_number"),
    ],
)
def test_an_end_with_bad_steps_is_no_good_end(
    reason: str,
    first: int,
    told: str | None,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = config_of(data, tmp_path / "run", steps=5)
    skip_from(monkeypatch, first, reason)
    if told is None:
        assert train(config).exported == 5
    else:
        with pytest.raises(SynthError, match=told):
            train(config)
    assert (config.folder / "model").exists() == (told is None)


def test_weights_that_are_not_finite_are_neither_kept_nor_exported(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Stepper.step

    def overflow(self: Stepper, batch: PackedBatch) -> StepResult:
        result = plain(self, batch)
        if len(self.norms) == 4:
            with torch.no_grad():
                self.model.lm_head.weight[0, 0] = float("inf")
        return result

    monkeypatch.setattr(Stepper, "step", overflow)
    config = config_of(data, tmp_path / "run", steps=4, checkpoint_every=2)
    with pytest.raises(SynthError, match=r"not finite, such as lm_head.weight.*step-00000002"):
        train(config)
    assert [p.name for p in checkpoints_in(config.folder / "checkpoints")] == ["step-00000002"]
    assert not (config.folder / "model").exists()


def losses(monkeypatch: pytest.MonkeyPatch, values: Iterator[float]) -> None:
    monkeypatch.setattr(ValidationRows, "loss", lambda *_: next(values))


def stopping(config: TrainConfig, patience: int | None) -> TrainConfig:
    return config.model_copy(update={"validation": ValidationConfig(every=1, early_stop=patience)})


def test_a_run_stops_early_with_the_best_validated_weights(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = train(config_of(data, tmp_path / "best", steps=3, schedule=PLAN))
    plain = config_of(data, tmp_path / "run", steps=12, schedule=PLAN, keep=1)
    losses(monkeypatch, iter([3.0, 3.1, 2.0, float("nan"), 2.0]))
    done = train(stopping(plain, 2))
    assert (done.steps, done.exported, done.validation_loss, done.early) == (5, 3, 2.0, True)
    assert "validation 2.0000 at step 3, whose weights are exported" in done.words
    assert same(done.folder / "model", best.folder / "model")
    again = train(stopping(plain, 2))  # it has ended, and is exported once more
    assert (again.begun, again.steps, again.exported) == (5, 5, 3)
    assert same(again.folder / "model", best.folder / "model")
    losses(monkeypatch, iter([2.1, 2.2]))
    further = train(stopping(plain, 4))  # more patience: it goes on from where it stopped
    assert (further.begun, further.steps, further.exported) == (5, 7, 3)
    last = train(stopping(plain, None).model_copy(update={"steps": 7}))
    assert (last.steps, last.exported) == (7, 7)
    assert not same(last.folder / "model", best.folder / "model")


def test_early_stopping_without_validation_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="early_stop = 2 needs a validation loss"):
        ValidationConfig(share=0.0, early_stop=2)
    lines = data.read_text().splitlines(keepends=True)
    data.write_text("".join(lines[:3]))
    config = stopping(config_of(data, tmp_path / "run"), 2)
    with pytest.raises(ConfigError, match="none of the 3 documents falls to validation"):
        train(config)
    other: dict[str, Any] = {"validation": ValidationConfig(every=1)}
    assert train(config.model_copy(update=other | {"steps": 1})).validation_loss is None
