"""A run that dies goes on to the very same end, whatever it was doing at that moment."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.trainer.small_run import SHAPE, config_of
from trainer.model.decoder import Decoder
from trainer.model.initialization import new_decoder
from trainer.optim.muon import MuonAdamW, optimizer_of
from trainer.training.checkpoints import checkpoints_in, load_checkpoint, save_checkpoint
from trainer.training.loop import train
from trainer.training.metrics import FILE, read_metrics
from trainer.training.settings import TrainConfig, ValidationConfig

pytestmark = pytest.mark.usefixtures("undrawn")

MOMENTS = (
    "tokenising",
    "checkpoint",
    "removing",
    "half_a_line",
    "validating",
    "exporting",
)

# Each run is a child of one process, which has imported torch for all of them. It sees no GPU: what
# torch has begun on one does not survive a fork.
KILLED = """
import json, os, signal, sys, torch, torch.utils.tensorboard

from trainer.data import corpus
from trainer.model import exchange
from trainer.training import checkpoints, curves, loop, metrics, validation
from trainer.training.settings import TrainConfig

torch.set_num_threads(1)
curves.can_draw = lambda: False


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def dying(plain, when):
    def called(*given, **named):
        return die() if when(*given) else plain(*given, **named)
    return called


def arrange(moment):
    write = checkpoints.write_atomic
    calls = []
    if moment == "tokenising":
        corpus.fitted = die  # tokens are on disk, and not whole
    elif moment == "checkpoint":
        named = lambda path, _: path.name == "state.json"
        second = lambda *given: named(*given) and not calls.append(1) and len(calls) == 2
        checkpoints.write_atomic = dying(write, second)
    elif moment == "removing":
        plain = checkpoints.shutil.rmtree
        def half(path, *given, **named):
            if path.name.startswith((".step", "step")) and path.exists():
                (path / "state.json").unlink()
                die()
            plain(path, *given, **named)
        checkpoints.shutil.rmtree = half
    elif moment == "half_a_line":
        plain_line = metrics.Metrics.write
        def cut(self, line):
            if line["step"] == 5:
                self._file.write('{"step": 5, "lo')
                self._file.flush()
                die()
            plain_line(self, line)
        metrics.Metrics.write = cut
    elif moment == "validating":
        plain_loss = validation.ValidationRows.loss
        second = lambda *_: calls.append(1) or len(calls) == 2
        validation.ValidationRows.loss = dying(plain_loss, second)
    elif moment == "exporting":
        named = lambda path, _: path.name == "config.json"
        exchange.write_atomic = dying(exchange.write_atomic, named)


whole, runs = json.load(open(sys.argv[1]))
loop.train(TrainConfig.model_validate(whole))  # and a warm-up, from which the others are forked
for moment, config in runs.items():
    if not (child := os.fork()):
        arrange(moment)
        loop.train(TrainConfig.model_validate(config))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (moment, status)
"""


def settings(data: Path, out: Path) -> TrainConfig:
    config = config_of(data, out, steps=6, checkpoint_every=2, keep=1)
    return config.model_copy(update={"validation": ValidationConfig(every=2)})


def curve(folder: Path) -> list[dict[str, object]]:
    clocks = ("tokens_per_s", "memory_gib")
    return [{k: v for k, v in m.items() if k not in clocks} for m in read_metrics(folder)]


@pytest.mark.slow
def test_a_run_killed_at_any_moment_goes_on_to_the_same_end(data: Path, tmp_path: Path) -> None:
    runs = {moment: settings(data, tmp_path / moment) for moment in MOMENTS}
    file = tmp_path / "runs.json"
    whole = settings(data, tmp_path / "whole")
    told = [whole.model_dump(mode="json"), {m: c.model_dump(mode="json") for m, c in runs.items()}]
    file.write_text(json.dumps(told))
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, "-c", KILLED, str(file)], check=True, env=environment)
    begun: dict[str, int] = {}
    for moment, config in runs.items():
        assert not (config.folder / "model").exists()
        done = train(config)
        begun[moment] = done.begun
        assert curve(done.folder) == curve(whole.folder), moment
        for name in ("model-00001-of-00001.safetensors", "config.json", "tokenizer.json"):
            ours, theirs = (one.folder / "model" / name for one in (done, whole))
            assert ours.read_bytes() == theirs.read_bytes(), moment
        left = [p.name for p in (done.folder / "checkpoints").iterdir()]
        assert left == ["step-00000006"], moment
    assert begun == {
        "tokenising": 0,
        "checkpoint": 2,
        "removing": 4,
        "half_a_line": 4,
        "validating": 2,
        "exporting": 6,
    }


def test_metrics_that_were_cut_lose_the_cut_line_alone(data: Path, tmp_path: Path) -> None:
    config = settings(data, tmp_path / "run")
    train(config.model_copy(update={"steps": 4}))
    path = config.folder / FILE
    whole = path.read_text()
    path.write_text(whole[:-20])
    assert [line["step"] for line in read_metrics(config.folder)] == [1, 2, 3]
    longer = config.model_copy(update={"extend": "hold"})
    assert train(longer).steps == 6
    assert [line["step"] for line in read_metrics(config.folder)] == [1, 2, 3, 5, 6]


@pytest.mark.parametrize("taken", [0, 1])
def test_a_checkpoint_before_the_first_taken_step_is_read_like_any_other(
    taken: int, tmp_path: Path
) -> None:
    def begun(seed: int) -> tuple[Decoder, MuonAdamW]:
        torch.manual_seed(seed)
        model = new_decoder(SHAPE)
        return model, optimizer_of(model, lr=1e-2)

    def step(model: Decoder, optimizer: MuonAdamW) -> None:
        ids = torch.arange(24).view(1, 24)
        model.zero_grad()
        hidden = model(ids, documents_BT=torch.zeros_like(ids)).hidden_BTD
        model.lm_head(hidden).logsumexp(-1).mean().backward()
        optimizer.step()

    model, optimizer = begun(0)
    for _ in range(taken):
        step(model, optimizer)
    save_checkpoint(tmp_path, model, optimizer, {"step": 3}, step=3)
    other, its = begun(1)
    [path] = checkpoints_in(tmp_path)
    assert load_checkpoint(path, other, its) == {"step": 3}
    step(model, optimizer)
    step(other, its)
    for one, same in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, same)
