"""The flows that train: a dataset in, a model, curves and scores out, seen by a real server."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM

from flows.pretrain import pretrain
from flows.sft import sft
from flows.training.learning import check_reads
from records.errors import ConfigError, SynthError
from tests.flows.prefect_api import artifacts, flow_runs, post, whole_log
from tests.synth.small_dataset import trajectory, write_dataset
from tests.trainer.configs import small
from tests.trainer.played_dataset import make_dataset
from trainer.data.sources import CorpusConfig
from trainer.evaluation.scoring import ScoreSettings
from trainer.inference.sampler import Sampling
from trainer.training.curves import PLOTS
from trainer.training.settings import DataConfig, TrainConfig
from trainer.training.step import StepFault, Stepper


def config_of(root: Path, source: Path, steps: int = 4) -> TrainConfig:
    return TrainConfig(
        out=str(root / "run"),
        data=DataConfig(
            sources=(CorpusConfig(path=str(source)),), row_tokens=1024, batch_rows=2, micro_rows=1
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
    made += [(trajectory(f"kept-{n}", split="heldout_task"), None) for n in range(2)]
    write_dataset(tmp_path / "data", made)
    done, unscored = asyncio.run(sft(config_of(tmp_path, tmp_path / "data")))
    assert (done.steps, unscored) == (4, None)
    AutoModelForCausalLM.from_pretrained(done.folder / "model")
    further = config_of(tmp_path, tmp_path / "data", steps=6)
    longer, _ = asyncio.run(sft(further.model_copy(update={"extend": "hold"})))
    assert longer.steps == 6
    found = sorted(post(prefect_url, "/artifacts/filter"), key=lambda a: a["created"])
    newest = {a["key"]: a for a in found if a["key"]}
    assert [row["step"] for row in json.loads(newest["metrics"]["data"])][-1] == 6
    summary = newest["trained-model"]["data"]
    assert "curves.html" in summary
    assert summary.startswith("**6 steps, loss ")
    assert "; the first 4 steps were taken before.**" in summary
    assert "- rows: 6 learnt from; left out: 2 held_out" in summary
    assert [row["count"] for row in json.loads(newest["rows-and-steps"]["data"])] == [6, 2, 6]
    assert newest["curves"]["data"].count("](data:image/svg+xml;base64,") == len(PLOTS)
    assert newest["progress"]["data"] == 100.0


@pytest.mark.slow
def test_a_run_that_fails_shows_what_it_came_to(
    prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNTH_DATA_ROOT", str(tmp_path))
    (tmp_path / "text.txt").write_text("words " * 200)
    config = config_of(tmp_path, tmp_path / "text.txt").model_copy(update={"bad_step": "stop"})
    faults = iter([None, None, None, StepFault("no_number", "loss nan")])
    monkeypatch.setattr(Stepper, "_fault", lambda *_: next(faults))
    with pytest.raises(SynthError, match=r"step 4, .* loss nan"):
        asyncio.run(pretrain(config))
    name = f"pretrain-{config.out}"
    failed = flow_runs(prefect_url, name)[name]
    assert "step 4" in failed["state"]["message"]
    found = artifacts(prefect_url, failed["id"])
    assert (found["progress"]["data"], found["progress"]["description"]) == (75.0, "step 3 of 4")
    assert counted(found["rows-and-steps"]) == [("rows", "", 1), ("steps", "", 3)]
    assert found["curves"]["data"].startswith("![Loss")
    assert "trained-model" not in found

    faults = iter([None, StepFault("spike", "far too steep")])  # from the checkpoint at step 2
    asyncio.run(pretrain(config.model_copy(update={"bad_step": "skip"})))
    done = flow_runs(prefect_url, name)[name]
    found = artifacts(prefect_url, done["id"])
    assert counted(found["rows-and-steps"])[1:] == [("steps", "", 3), ("steps", "spike", 1)]
    assert found["curves"]["data"].startswith("Red: steps that were skipped.")
    said = whole_log(prefect_url, done["id"])
    assert "step 4 of 4 was skipped: far too steep" in said
    assert any(line.startswith("going on from step 2: ") for line in said)
    assert any(line.startswith("step 3  loss ") for line in said)

    monkeypatch.setattr(Stepper, "_fault", lambda *_: StepFault("no_number", "loss nan"))
    other = {"out": str(tmp_path / "diverging"), "bad_step": "skip", "max_bad_steps": 2}
    with pytest.raises(SynthError, match="2 steps in a row were skipped"):
        asyncio.run(pretrain(config.model_copy(update=other)))
    name = f"pretrain-{other['out']}"
    failed = flow_runs(prefect_url, name)[name]
    assert "no model is exported" in failed["state"]["message"]
    assert "trained-model" not in artifacts(prefect_url, failed["id"])


def counted(artifact: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(row["of"], row["why"], row["count"]) for row in json.loads(artifact["data"])]


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


@pytest.mark.parametrize("path", ["hf://owner/name", "s3://bucket/rows"])
def test_a_run_from_the_ui_reads_no_address_that_nobody_allowed(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNTH_DATA_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # as a path it would lie in the data root
    config = config_of(tmp_path, tmp_path)
    sources = config.data.model_copy(update={"sources": (CorpusConfig(path=path),)})
    with pytest.raises(ConfigError, match="no address that a flow which is started from the UI"):
        check_reads(config.model_copy(update={"data": sources}))


def test_a_run_from_the_ui_reads_no_folder_by_the_name_of_a_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    monkeypatch.setenv("SYNTH_DATA_ROOT", str(root))
    monkeypatch.setenv("SYNTH_FLOW_ADDRESSES", "hf://")
    config = config_of(root, root)
    for folder in (root / "own", outside):
        folder.mkdir(parents=True)
        sources = (CorpusConfig(path=f"hf://{folder}"),)
        named = config.model_copy(
            update={"data": config.data.model_copy(update={"sources": sources})}
        )
        if folder == outside:
            with pytest.raises(ConfigError, match="is not inside the data root"):
                check_reads(named)
        else:
            check_reads(named)


@pytest.mark.slow
def test_sft_ends_with_scores_on_tasks_of_a_dataset(
    prefect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYNTH_DATA_ROOT", str(tmp_path))
    make_dataset(tmp_path / "data", num_tasks=6)
    config = config_of(tmp_path, tmp_path / "data", steps=1)
    wide = config.data.model_copy(
        update={"row_tokens": None, "micro_rows": None, "declarations": "typescript"}
    )
    config = config.model_copy(
        update={"data": wide, "shape": small(vocab_size=300, max_positions=16_384)}
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
    made = {a["key"]: a["data"] for a in post(prefect_url, "/artifacts/filter")}
    assert "tasks of the training data" in made["scores"]
    assert "- tasks left out: none" in made["scores"]
