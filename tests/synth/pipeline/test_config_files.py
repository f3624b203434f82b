"""Errors of a configuration say what is wrong, and never repeat what may be a key; a recorded one
is read back as what it was."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.catalogue.evolution.config import EvolveConfig
from synth.engine.job_config import JobConfig
from synth.judging.config import GradeConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.config_files import kind_of, load_config, recorded_config
from synth.rephrasing.writing.config import RephraseConfig
from synth.tasks.config import TaskConfig
from tests.records.rows import row


def message_of(tmp_path: Path, text: str, *overrides: str) -> str:
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "run.toml", overrides)
    return str(caught.value)


def test_a_wrong_setting_is_named_with_its_value(tmp_path: Path) -> None:
    text = message_of(tmp_path, "[roles.agent]\nmax_tokenss = 512\n")
    assert "roles.agent.max_tokenss = 512" in text
    assert "did you mean 'max_tokens'" in text


@pytest.mark.parametrize(
    "text",
    [
        '[roles.agent]\napi_key = "4711"\n',
        '[roles.agent]\nmodel = "sk-4711"\n',
        '[roles.agent]\nextra_body = "Bearer 4711"\n',
        '[roles]\nagent = ["access_token", "4711"]\n',
    ],
)
def test_what_may_be_a_key_is_not_repeated(tmp_path: Path, text: str) -> None:
    shown = message_of(tmp_path, text)
    assert "4711" not in shown
    assert "roles.agent" in shown


def recorded(folder: Path, config: JobConfig, *, kind: str | None) -> Dataset:
    """A dataset in which a run with these settings began."""
    dataset = Dataset.create_or_open(folder)
    started = row(
        "runs",
        invocation_id="one",
        event="started",
        happened_at=datetime(2026, 11, 1, tzinfo=UTC),
        config=config.model_dump(mode="json"),
        kind=kind,
    )
    dataset.commit(run_id=config.run_id, stage="run-started", shard=0, tables={"runs": [started]})
    return dataset


CONFIGS: list[JobConfig] = [
    RunConfig(),
    RunConfig(tasks=TaskConfig(pass_threshold=0.9)),
    RephraseConfig(rewrites=3),
]


@pytest.mark.parametrize("stored", [True, False], ids=["with its kind", "from before"])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.KIND)
def test_a_run_is_read_back_as_what_it_was(config: JobConfig, stored: bool, tmp_path: Path) -> None:
    dataset = recorded(tmp_path / "d", config, kind=config.KIND if stored else None)
    assert recorded_config(dataset, config.run_id) == config
    changed = recorded_config(dataset, config.run_id, ["concurrency=3"])
    assert (changed.concurrency, changed.run_id) == (3, config.run_id)


@pytest.mark.parametrize("stored", [True, False], ids=["with its kind", "from before"])
@pytest.mark.parametrize(
    ("config", "command"),
    [(GradeConfig(), "synth grade"), (EvolveConfig(), "synth tools evolve")],
    ids=["grade", "evolve"],
)
def test_a_run_of_another_kind_names_its_command(
    config: JobConfig, command: str, stored: bool, tmp_path: Path
) -> None:
    dataset = recorded(tmp_path / "d", config, kind=config.KIND if stored else None)
    with pytest.raises(ConfigError, match=f"`{command}` with the same settings resumes it"):
        recorded_config(dataset, config.run_id)


@pytest.mark.parametrize(
    "config", [*CONFIGS, GradeConfig(), EvolveConfig()], ids=lambda config: config.KIND
)
def test_a_configuration_without_newer_settings_fits_its_kind(config: JobConfig) -> None:
    """As an older version has written it."""
    values = config.model_dump(mode="json")
    for name in config.ADDED_LATER:
        del values[name]
    assert kind_of({"run_id": "r", "kind": None, "config": values}) is type(config)


def test_a_kind_of_another_version_is_named(tmp_path: Path) -> None:
    dataset = recorded(tmp_path / "d", RunConfig(), kind="translate")
    with pytest.raises(ConfigError, match=r"of kind 'translate'.* knows run, grade, rephrase"):
        recorded_config(dataset, RunConfig().run_id)


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("num_task=3", "did you mean 'num_tasks' or 'tasks'?"),
        ("tasks.max_turn.base=3", "did you mean 'max_turns'?"),
        ("tasks.max_turns.bas=3", "did you mean 'base'?"),
        ("roles.agent.temprature=1", "did you mean 'temperature'?"),
        ("max_turns=20", "did you mean 'tasks.max_turns' or"),
        ("perturbed_share=0.1", "did you mean 'judging.perturbed_share'?"),
        ("max_tokens=64", "did you mean 'roles.NAME.max_tokens'?"),
        ("tasks.attempts=2", "did you mean 'rollouts.attempts'?"),
        ("heldout_share=0.2", "did you mean 'agents.heldout_share' or 'tasks.heldout_share'?"),
        ("tasks.zzz=2", "known settings: complex, dual_control,"),
    ],
)
def test_a_misspelt_setting_names_what_may_be_meant(
    override: str, hint: str, tmp_path: Path
) -> None:
    assert hint in message_of(tmp_path, "", override)
