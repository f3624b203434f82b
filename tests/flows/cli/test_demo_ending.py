"""What the demo ends with: a conversation with its state changes, and commands that work there."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from flows.cli.main import app
from flows.cli.shared.conversation import worth_reading
from flows.cli.shared.demo import PLAYED, as_demo
from flows.cli.shared.next_steps import with_your_endpoint
from flows.cli.shared.program import program
from records.settings import read_settings
from records.store.dataset import Dataset
from synth.pipeline.config import RunConfig
from synth.pipeline.config_files import load_config
from synth.tasks.config import TaskConfig
from synth.tasks.forms.forms import ALL_PLAIN, FormShares
from tests.flows.conftest import ROOT
from tests.flows.pipeline_work import SMALL, run_pipeline


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("demo") / "d"
    run_pipeline(folder, SMALL.model_copy(update={"num_tasks": 12, "shard_size": 6}))
    return Dataset.open(folder)


@pytest.mark.slow
def test_the_conversation_changed_the_state_twice_and_left_no_fault_open(made: Dataset) -> None:
    told = worth_reading(made)
    assert told is not None
    assert told == worth_reading(made)
    calls = [c for c in made.rows("tool_calls") if c["trajectory_id"] == told.trajectory_id]
    assert sum(bool(call["state_diff"]) for call in calls) >= 2
    assert all(call["recovered"] for call in calls if call["injected_outcome"])
    [curated] = [c for c in made.rows("curation") if c["trajectory_id"] == told.trajectory_id]
    assert curated["accepted"]

    text = " ".join(" ".join(told.lines).split())
    [talk] = [t for t in made.rows("trajectories") if t["trajectory_id"] == told.trajectory_id]
    for message in talk["messages"]:
        if message["role"] in ("user", "assistant") and message.get("content"):
            assert " ".join(message["content"].split()) in text
    assert all(changed_words(change) in text for call in calls for change in call["state_diff"])
    assert max(map(len, told.lines)) <= 100


def changed_words(change: dict[str, Any]) -> str:
    """The row, and the first value that it has now."""
    row = f"changed: {change['entity']} {change['id']}"
    if not change["before"]:
        return f"{row} created: "
    name = next(iter(change["after"]))
    return f"{row}: {name} {json.dumps(change['before'].get(name))} ->"


def test_nothing_is_shown_of_a_dataset_where_nothing_changed(tmp_path: Path) -> None:
    assert worth_reading(Dataset.create_or_open(tmp_path / "d")) is None


def test_the_program_is_named_as_the_shell_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_ = tmp_path / ".venv" / "bin"
    bin_.mkdir(parents=True)
    (bin_ / "synth").write_text("#!/bin/sh\n")
    (bin_ / "synth").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bin_ / "python"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == ".venv/bin/synth"
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert program() == str(bin_ / "synth")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(bin_))
    assert program() == "synth"
    (bin_ / "synth").unlink()
    assert program().endswith("python -m flows.cli")


def test_the_demo_names_its_worlds_where_none_are_given() -> None:
    own = as_demo(RunConfig(), offline=True)
    assert (own.domains, own.simulate.tools) == (("builtin/*",), PLAYED)
    assert own.shard_size < RunConfig().shard_size
    assert own.tasks.forms == ALL_PLAIN
    assert as_demo(RunConfig(), offline=False).tasks == RunConfig().tasks
    wanted = TaskConfig(forms=FormShares(chosen=0.5))
    assert as_demo(RunConfig(tasks=wanted), offline=True).tasks == wanted
    given = as_demo(RunConfig(domains=("clinic_desk",), shard_size=3), offline=True)
    assert (given.domains, given.shard_size) == (("clinic_desk",), 3)
    assert given.simulate == RunConfig().simulate, "a played tool may not be there"


def test_a_checkout_is_shown_its_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    lines = with_your_endpoint()
    assert "demo --endpoint" in lines[1]
    parses(lines[1])
    assert lines[-1].endswith("run configs/hosted.toml --dataset data/first")
    parses(lines[-1])


def test_elsewhere_the_config_is_written_out_and_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = with_your_endpoint()
    begin, end = lines.index("cat > first.toml <<'END'"), lines.index("END")
    Path("first.toml").write_text("\n".join(lines[begin + 1 : end]))
    config = load_config(Path("first.toml"))
    hosted = load_config(ROOT / "configs" / "hosted.toml")
    named = read_settings(Path("first.toml"))["roles"]
    assert named.keys() == read_settings(ROOT / "configs" / "hosted.toml")["roles"].keys()
    config.check_roles()
    assert config.roles == hosted.roles
    assert (config.num_tasks, config.budget.usd) == (hosted.num_tasks, hosted.budget.usd)
    parses(lines[-1])


def parses(line: str) -> None:
    words = line.split()
    arguments = words[words.index("demo" if "--endpoint" in words else "run") :]
    command, _, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
    assert command
