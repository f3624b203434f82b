"""The flows that train: a dataset in, a model, curves and scores out, seen by a real server."""

import asyncio
import json
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from flows.pretrain import pretrain
from flows.sft import sft
from records.errors import ConfigError
from tests.flows.prefect_api import post
from tests.synth.small_dataset import trajectory, write_dataset
from tests.trainer.configs import small
from tests.trainer.played_dataset import make_dataset
from trainer.evaluation_run import ScoreSettings
from trainer.inference import Sampling
from trainer.settings import DataConfig, TrainConfig
from trainer.sources import SourceConfig


def config_of(root: Path, source: Path, steps: int = 4) -> TrainConfig:
    return TrainConfig(
        out=str(root / "run"),
        data=DataConfig(
            sources=(SourceConfig(path=str(source)),), row_tokens=1024, batch_rows=2, micro_rows=1
        ),
        shape=small(vocab_size=300, max_positions=1024),
        steps=steps,
        checkpoint_every=2,
        device="cpu",
    )


@pytest.mark.slow
def test_sft_trains_on_a_dataset_and_shows_what_came_of_it(
    prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNTH_DATA_ROOT", str(tmp_path))
    made = [(trajectory(f"t-{n}"), None) for n in range(6)]
    write_dataset(tmp_path / "data", made)
    done, unscored = asyncio.run(sft(config_of(tmp_path, tmp_path / "data")))
    assert (done.steps, unscored) == (4, None)
    AutoModelForCausalLM.from_pretrained(done.folder / "model")
    longer, _ = asyncio.run(sft(config_of(tmp_path, tmp_path / "data", steps=6)))
    assert longer.steps == 6
    found = sorted(post(prefect_url, "/artifacts/filter"), key=lambda a: a["created"])
    artifacts = {a["key"]: a for a in found if a["key"]}  # the newest of each key
    assert [row["step"] for row in json.loads(artifacts["metrics"]["data"])][-1] == 6
    assert "curves.html" in artifacts["trained-model"]["data"]
    assert artifacts["progress"]["data"] == 100.0


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_url")
def test_pretraining_stays_inside_the_data_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNTH_DATA_ROOT", str(tmp_path / "root"))
    (tmp_path / "root").mkdir()
    (tmp_path / "text.txt").write_text("words " * 200)
    with pytest.raises(ConfigError, match=r"config.data.sources.path .* not inside the data root"):
        asyncio.run(pretrain(config_of(tmp_path / "root", tmp_path / "text.txt")))
    (tmp_path / "root" / "text.txt").write_text("words " * 200)
    done = asyncio.run(pretrain(config_of(tmp_path / "root", tmp_path / "root" / "text.txt")))
    assert done.steps == 4


@pytest.mark.slow
def test_sft_ends_with_scores_on_tasks_of_a_dataset(
    prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNTH_DATA_ROOT", str(tmp_path))
    make_dataset(tmp_path / "data", num_tasks=6)
    config = config_of(tmp_path, tmp_path / "data", steps=1)
    wide = config.data.model_copy(
        update={"row_tokens": 8192, "batch_rows": 1, "declarations": "typescript"}
    )
    config = config.model_copy(
        update={"data": wide, "shape": small(vocab_size=300, max_positions=8192)}
    )
    settings = ScoreSettings(
        dataset=str(tmp_path / "data"),
        splits=("train",),
        tasks=2,
        sampling=Sampling(max_tokens=8),
    )
    for dataset, why in (("none", "no such folder"), ("..", "not inside the data root")):
        wrong = settings.model_copy(update={"dataset": str(tmp_path / dataset)})
        with pytest.raises(ConfigError, match=why):
            asyncio.run(sft(config, wrong))
    assert not config.folder.exists()  # told before it trains
    _, scored = asyncio.run(sft(config, settings))
    assert scored is not None
    [scores] = scored.scores
    assert scores.episodes + scores.left_aside == 2
    artifacts = {a["key"]: a for a in post(prefect_url, "/artifacts/filter")}
    assert "tasks of the training data" in artifacts["scores"]["data"]
