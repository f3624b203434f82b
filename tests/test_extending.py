"""The page on extending works as it stands: its files prove, run, and leave their traces."""

import asyncio
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from flows.cli.main import app, run
from records.store.dataset import Dataset
from synth.episode.replay import replay
from synth.pipeline.config_files import load_config, recorded_config
from synth.pipeline.sources import catalogue_of
from synth.publish.report import report_html
from synth.rubrics.built_in import CHECKS_VERSION
from synth.rubrics.refused import LASTING
from synth.rubrics.reward import rubric_of
from synth.rubrics.standing import ECONOMY
from synth.tasks.proof.extensions import ExtensionFile, load_extensions
from tests.flows.pipeline_work import run_pipeline

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()
FENCED = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
FILES = {name: text for _, name, text in FENCED if name}
COMMANDS = [line for kind, _, text in FENCED if kind == "sh" for line in text.splitlines()]
MORE = ["num_tasks=36"]
"""Than on the page: one task in twelve asks for what the policy forbids."""
PERSONAS = tomllib.loads(FILES["my_run.toml"])["personas"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("extending")
    for name, text in FILES.items():
        (path / name).write_text(text)
    return path


@pytest.fixture(scope="module")
def dataset(folder: Path) -> Dataset:
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        run_pipeline(folder / "data", load_config(Path("my_run.toml"), MORE))
    return Dataset.open(folder / "data")


def test_the_page_has_its_files_and_its_commands_parse() -> None:
    assert list(FILES) == ["bike_kitchen.yaml", "my_kinds.py", "my_run.toml"]
    assert len(COMMANDS) == 4
    for line in COMMANDS:
        app.parse_args(shlex.split(line)[1:], exit_on_error=False, print_error=False)


def test_a_file_written_for_the_earlier_names_still_loads(folder: Path) -> None:
    earlier = re.sub(
        r"from synth\.rubrics\.criteria.*?Extension\n",
        "from synth.checks import Episode, Kind, Verdict\n"
        "from synth.extensions import Extension\n"
        "from synth.rubric import Criterion, Strict\n"
        "from synth.tasks.goals import Draft\n",
        FILES["my_kinds.py"],
        flags=re.DOTALL,
    )
    assert "from synth.rubric import" in earlier
    path = folder / "earlier_kinds.py"
    path.write_text(earlier)
    loaded = load_extensions([ExtensionFile.model_validate(str(path))])
    assert "few_calls" in loaded.kinds.by_name


def test_the_program_of_the_page_is_tidy(folder: Path) -> None:
    ruff = [sys.executable, "-m", "ruff", "--config", str(ROOT / "pyproject.toml")]
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run([*ruff[:3], *command, *ruff[3:], str(folder / "my_kinds.py")])
        assert done.returncode == 0


def test_the_domain_is_proved(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert run(["domain", "check", "bike_kitchen.yaml", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["problems"] == []
    assert report["example_task"]


@pytest.mark.slow
def test_the_policy_is_told_to_agents_and_stands_in_rubrics(dataset):
    talks = [row["messages"] for row in dataset.rows("trajectories", ("trajectory_id", "messages"))]
    assert talks
    assert all("on its own day" in messages[0]["content"] for messages in talks)
    asked = [
        criterion.check
        for task in dataset.rows("tasks")
        for criterion in rubric_of(task).criteria
        if criterion.kind == "policy"
    ]
    assert {"rules": ["not_on_the_day"]} in asked
    assert any(task["variant"] == "against_policy" for task in dataset.rows("tasks"))


@pytest.mark.slow
def test_users_are_drawn_from_the_lists_of_the_config(dataset):
    personas = dataset.rows("personas")
    assert {row["communication_style"] for row in personas} == set(PERSONAS["styles"])
    for row in personas:
        assert set(row["preferences"]) & set(PERSONAS["preferences"])
        assert row["disclosure"] in PERSONAS["disclosure"]
        assert PERSONAS["patience"][0] <= row["patience"] <= PERSONAS["patience"][1]


@pytest.mark.slow
def test_the_kind_stands_in_every_rubric_and_counts_in_the_reward(dataset):
    rubrics = {row["task_id"]: rubric_of(row) for row in dataset.rows("tasks")}
    scores: dict[str, dict[str, float]] = {}
    for v in dataset.rows("verdicts"):
        if v["checked_by"] == "code" and v["passed"] is not None:
            scores.setdefault(v["trajectory_id"], {})[v["criterion_id"]] = v["score"]
    partial = 0
    for row in dataset.rows("trajectories"):
        if LASTING & set(row["injected_outcomes"]):  # grading excuses what the reward does not
            continue
        seen = scores[row["trajectory_id"]]
        by_id = {c.id: c for c in rubrics[row["task_id"]].criteria if c.id in seen}
        limit = (by_id["few_calls"].check or {})["limit"]
        assert (seen["few_calls"] == 1.0) == (row["num_tool_calls"] <= limit)
        total = sum(c.weight for c in by_id.values())
        reward = sum(c.weight * seen[i] for i, c in by_id.items()) / total
        spoilt = any(c.mandatory and seen[i] < 1.0 for i, c in by_id.items())
        assert row["objective_reward"] == pytest.approx(0.0 if spoilt else reward)
        partial += seen["few_calls"] < 1.0 and not spoilt
    assert partial, "no trajectory is told apart by the new kind"


@pytest.mark.slow
def test_the_kind_shows_in_the_report_and_replays(dataset, folder, monkeypatch):
    monkeypatch.chdir(folder)
    judged = {v["checked_by"] for v in dataset.rows("verdicts") if v["kind"] == "few_calls"}
    assert judged == {"code"}
    assert "few_calls" in report_html(dataset)
    config = load_config(Path("my_run.toml"), MORE)
    assert recorded_config(dataset, config.run_id) == config
    first = min(dataset.ids("trajectories"))
    catalogue = catalogue_of(dataset, config)
    found = asyncio.run(replay(dataset, first, catalogue, config.rollouts.episode))
    assert found.differences == []


@pytest.mark.slow
def test_a_run_without_the_extension_leaves_its_trajectories_and_says_so(folder, monkeypatch):
    monkeypatch.chdir(folder)
    config = load_config(Path("my_run.toml"), ["num_tasks=2"])
    run_pipeline(folder / "both", config)
    dataset = Dataset.open(folder / "both")
    with_it = dataset.ids("trajectories")
    run_pipeline(folder / "both", config.model_copy(update={"extensions": ()}))
    reasons = [s.reason for s in dataset.item_statuses("grading").values() if s.reason]
    assert reasons == ["unknown_kind"] * len(with_it)
    standing = {"nl", ECONOMY.kind}  # these have a version of their own
    by_checks = [v for v in dataset.rows("verdicts") if v["kind"] not in standing]
    graded = {v["trajectory_id"] for v in by_checks if v["checker_version"] == CHECKS_VERSION}
    assert graded == dataset.ids("trajectories") - with_it
