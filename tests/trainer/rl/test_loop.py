"""Whole runs: what they leave, that they learn, and that a kill anywhere changes nothing."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from records.errors import ConfigError, SynthError
from sandboxes.lending.leases import HERE, SandboxPlace, leasing_from, place_in_use
from sandboxes.lending.places import SandboxesConfig
from sandboxes.local.backend import LocalBackend
from synth.gym.programs.programs import Programs
from tests.trainer.rl.killed_work import PLACES
from tests.trainer.rl.small_rl import ENVIRONMENT, rl_config
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import load_tokenizer
from trainer.model.exchange import export_model, import_model
from trainer.rl.lines import OF_CLOCK
from trainer.rl.loop import opened_run, reinforce
from trainer.rl.settings import RLConfig
from trainer.training.metrics import MetricsLine, read_metrics

ROOT = Path(__file__).parents[3]


def without_clock(lines: list[MetricsLine]) -> list[MetricsLine]:
    return [{k: v for k, v in line.items() if k not in OF_CLOCK} for line in lines]


def test_a_run_leaves_samples_scores_curves_and_a_model(tmp_path: Path) -> None:
    done = reinforce(rl_config(tmp_path))
    assert done.iterations == 4
    assert import_model(done.folder / "model").config.num_layers
    lines = read_metrics(done.folder)
    assert [line["step"] for line in lines] == [0, 1, 2, 3, 4]
    assert [line["validation_reward"] is not None for line in lines] == [
        True,
        False,
        True,
        False,
        True,
    ]
    rows = [
        row
        for path in sorted((done.folder / "samples").glob("*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]
    assert len(rows) == 4 * 4 * 4
    assert {row["split"] for row in rows} == {"train"}
    told = [line[name] for line in lines for name in line if name.startswith("outcome/")]
    assert sum(told) == len(rows)
    scores = json.loads((done.folder / "scores.json").read_text())
    assert [one["family"] for one in scores["after"]] == ["digits"]
    assert scores["after"][0]["tasks"] == 2
    assert "| kind | digits | 12 | 100.0% |" in (done.folder / "coverage.md").read_text()
    assert "Mean reward" in (done.folder / "curves.html").read_text()


@pytest.mark.usefixtures("undrawn")
def test_what_is_rewarded_is_said_more_often(tmp_path: Path) -> None:
    learning = {"lr": 3e-2, "objective": {"kind": "grpo"}}
    choice = {"tasks": 8, "band": {"k": 2}, "rest": 0}
    test = {"every": None, "heldout": False}
    rollouts = {"samples": 4, "in_flight": 16, "token_budget": 12, "repeats": None}
    config = rl_config(
        tmp_path,
        iterations=8,
        learning=learning,
        choice=choice,
        test=test,
        rollouts=rollouts | {"deterministic": True},
        slots=16,
    )
    reinforce(config)
    rewards = [line["reward"] for line in read_metrics(config.folder)]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.15


@pytest.mark.usefixtures("undrawn")
def test_a_finished_run_goes_on_as_it_was_begun_alone(tmp_path: Path) -> None:
    """It is not done again, more iterations are added to it, and no other run is."""
    reinforce(rl_config(tmp_path, iterations=1))
    again = reinforce(rl_config(tmp_path, iterations=1))
    assert again.begun == again.iterations == 1
    more = reinforce(rl_config(tmp_path, iterations=2))
    assert (more.begun, more.iterations) == (1, 2)
    with pytest.raises(ConfigError, match=r"seed: 0 there, 1 here"):
        reinforce(rl_config(tmp_path, iterations=2, seed=1))


@pytest.mark.usefixtures("undrawn")
def test_a_run_that_could_not_begin_closes_its_gym_and_leaves_its_folder_to_the_next(
    tmp_path: Path,
) -> None:
    closed = tmp_path / "closed"
    text = ENVIRONMENT.replace('["train"] * 6', '["heldout"] * 6').replace(
        "ENVIRONMENT =",
        f"    async def close(self):\n        open({str(closed)!r}, 'w')\n\n\nENVIRONMENT =",
    )
    (tmp_path / "none.py").write_text(text)

    async def opened(config: RLConfig) -> int:
        async with opened_run(config) as run:
            return len(run.tasks)

    with pytest.raises(ConfigError, match="no task to learn from"):
        asyncio.run(opened(rl_config(tmp_path, gym={"files": [str(tmp_path / "none.py")]})))
    assert closed.exists()
    assert asyncio.run(opened(rl_config(tmp_path))) == 16


COUNTED = """
    async def begin(self, task, seed):
        episode = await super().begin(task, seed)

        async def closed():
            print("-" + task.split, file=open(LOG, "a"))

        print("+" + task.split, file=open(LOG, "a"))
        episode.close = closed
        return episode


ENVIRONMENT ="""


@pytest.mark.usefixtures("undrawn")
def test_what_paused_is_closed_while_tests_are_played(tmp_path: Path) -> None:
    """It would hold the servers and sandboxes that these wait for."""
    log = tmp_path / "log"
    text = ENVIRONMENT.replace("ENVIRONMENT =", COUNTED)
    (tmp_path / "counted.py").write_text(f"LOG = {str(log)!r}\n{text}")
    rollouts = {"samples": 2, "in_flight": 4, "segment_tokens": 3, "deterministic": True}
    config = rl_config(
        tmp_path,
        iterations=1,
        gym={"files": [str(tmp_path / "counted.py")]},
        rollouts=rollouts,
        test={"every": 1, "tasks": 1, "heldout": False},
    )
    reinforce(config)
    assert read_metrics(config.folder)[-1]["carried"] > 0
    learning, tested = 0, 0
    for event in log.read_text().split():
        learning += {"+train": 1, "-train": -1}.get(event, 0)
        tested += event == "+validation"
        assert not (learning and event == "+validation")
    assert (learning, tested) == (0, 2)


def test_sandboxes_are_leased_from_where_the_run_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(LocalBackend):
        name = "elsewhere"

    @asynccontextmanager
    async def on_a_cluster(_: SandboxesConfig) -> AsyncIterator[None]:
        with leasing_from(SandboxPlace(Elsewhere())):
            yield

    asked: list[str] = []
    monkeypatch.setattr(SandboxesConfig, "in_use", on_a_cluster)
    programs = "synth.gym.programs.programs.available"
    monkeypatch.setattr(programs, lambda: asked.append(place_in_use().backend.name))

    async def live(cluster: dict[str, Any]) -> int | None:
        config = rl_config(tmp_path, gym={"families": {"programs": {}}}, sandboxes=cluster)
        async with opened_run(config) as run:
            environment = run._gym.environments["programs"]
            assert isinstance(environment, Programs)
            return environment.settings.live

    assert asyncio.run(live({"backend": "kubernetes"})) == 8  # as many as are in flight
    # where they are may change on the way
    assert asyncio.run(live({"backend": "kubernetes", "live": 3})) == 3
    assert asked == ["elsewhere"] * 2
    assert place_in_use() is HERE


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"good": [{"path": "x"}]}, "neither does anything alone"),
        ({"choice": {"band": {"k": 9}}}, "no task would be judged"),
        ({"test": {"samples": 2}}, "at temperature 0 are all the same"),
        ({"gym": {}}, "names no environment"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises((ConfigError, ValueError), match=words):
        reinforce(rl_config(tmp_path, **settings))


@pytest.mark.slow
def test_a_run_killed_in_any_phase_comes_out_to_the_bit(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.trainer.rl.killed_work", str(tmp_path)]
    made = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert made.returncode == 0, made.stderr[-2000:]
    whole = tmp_path / "whole"
    lines, weights = without_clock(read_metrics(whole)), import_model(whole / "model").state_dict()
    for name in PLACES:
        folder = tmp_path / name
        assert without_clock(read_metrics(folder)) == lines, name
        other = import_model(folder / "model").state_dict()
        assert all(torch.equal(weights[key], other[key]) for key in weights), name
        assert _samples(folder) == _samples(whole), name


def _samples(folder: Path) -> list[object]:
    paths = sorted((folder / "samples").glob("*.parquet"))
    return [pq.read_table(path).to_pylist() for path in paths]


def test_a_run_whose_episodes_are_all_lost_fails_and_exports_nothing(tmp_path: Path) -> None:
    raising = ENVIRONMENT.replace("digits = sum", "raise OSError('no disk')\n        digits = sum")
    (tmp_path / "digits.py").write_text(raising)
    config = rl_config(tmp_path, max_lost_iterations=2)
    with pytest.raises(SynthError, match=r"16 of 16 episodes of .* were lost, .*no disk"):
        reinforce(config)
    assert not (config.folder / "model").exists()


def test_another_model_in_the_place_of_the_first_is_refused(tmp_path: Path) -> None:
    reinforce(rl_config(tmp_path, iterations=1))
    start = Path(rl_config(tmp_path).start_from)
    model = import_model(start)
    model.lm_head.weight.data.neg_()
    tokenizer = load_tokenizer(start)
    shutil.rmtree(start)
    export_model(model, start, tokenizer, chat=ChatFormat(system=""))
    with pytest.raises(ConfigError, match="the model of `start_from` differ"):
        reinforce(rl_config(tmp_path, iterations=2))
