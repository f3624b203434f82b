"""The documents tell the truth: configs parse, commands exist, the README's commands run."""

import re
import shlex
from pathlib import Path

import pytest
from cyclopts import App

from flows.cli.main import app, run
from records.settings import read_settings, validate_as
from synth.catalogue.evolution.config import EvolveConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.config_files import load_config
from synth.rephrasing.writing.config import RephraseConfig

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def commands(of: App, prefix: str = "synth") -> list[tuple[str, App]]:
    found = []
    for name in of:
        if not name.startswith("-"):
            child = of[name]
            inner = commands(child, f"{prefix} {name}")
            found += inner or [(f"{prefix} {name}", child)]
    return found


def options(config: Path) -> str:
    return config.name


@pytest.mark.parametrize("config", sorted((ROOT / "configs").glob("*.toml")), ids=options)
def test_every_example_config_is_valid(config: Path) -> None:
    kind = {"rephrase": RephraseConfig, "evolve": EvolveConfig}.get(config.stem, RunConfig)
    loaded = validate_as(kind, read_settings(config), where=str(config))
    loaded.check_roles()
    assert loaded.run_id


EXAMPLES = ("training/sft", "training/pretrain", "proof/sft", "proof/pretrain", "proof/drills")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_of_training_is_valid(name: str) -> None:
    from trainer.training.settings import TrainConfig

    config = ROOT / "configs" / f"{name}.toml"
    stage = {"stage": "pretrain" if config.stem == "pretrain" else "sft"}
    made = validate_as(TrainConfig, read_settings(config) | stage, where=str(config))
    if made.data.row_tokens is None:  # the data says how many tokens a step has
        assert made.schedule is None
        return
    rates = made.learning_rates
    tokens = rates.warmup_tokens + sum(phase.tokens for phase in rates.phases)
    assert tokens <= made.steps * made.step_tokens


@pytest.mark.parametrize("name", ["training/eval", "proof/scores"])
def test_every_example_of_scoring_is_valid(name: str) -> None:
    from trainer.evaluation.scoring import ScoreConfig

    config = ROOT / "configs" / f"{name}.toml"
    validate_as(ScoreConfig, read_settings(config), where=str(config))


def test_the_proof_s_data_is_described_validly() -> None:
    load_config(ROOT / "configs" / "proof" / "data.toml")


def test_every_command_is_documented_and_has_help() -> None:
    documented = (ROOT / "docs" / "cli.md").read_text()
    for name, command in commands(app):
        assert f"`{name}" in documented, f"{name} is missing from docs/cli.md"
        assert command.help, f"{name} has no help"
    listed = set(re.findall(r"^\| `(synth(?: [a-z-]+)+)", documented, re.MULTILINE))
    assert listed == {name for name, _ in commands(app)}


def test_every_synth_command_of_the_readme_parses() -> None:
    text = re.sub(r"\n {20,}", " ", README)  # one command over several lines
    lines = re.findall(r"^    \.venv/bin/synth (.*)$", text, re.MULTILINE)
    assert len(lines) > 5
    for line in lines:
        arguments = shlex.split(line, comments=True)
        command, _, _ = app.parse_args(arguments, exit_on_error=False, print_error=False)
        assert command


def test_the_readme_sets_up_with_two_commands() -> None:
    assert "make demo" in README
    assert "make test" in README


def test_help_of_the_program_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert "demo" in capsys.readouterr().out
