"""Run configurations: from files, and as a dataset has recorded them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from records.errors import ConfigError
from records.settings import read_settings, renamed_settings, validate_as
from records.store.dataset import Dataset
from records.tables.schemas import Row
from synth.catalogue.evolution.config import EvolveConfig
from synth.engine.job_config import JobConfig
from synth.judging.config import GradeConfig
from synth.pipeline.config import RunConfig
from synth.rephrasing.writing.config import RephraseConfig

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})

KINDS: dict[str, type[JobConfig]] = {
    kind.KIND: kind for kind in (RunConfig, GradeConfig, RephraseConfig, EvolveConfig)
}
"""What a row of `runs` may hold the configuration of, by its column `kind`."""


def load_config(
    path: Path, overrides: Sequence[str] = (), *, options: Mapping[str, Any] = NO_OPTIONS
) -> RunConfig:
    """The file's settings with those that options of the command stand for on top, and `overrides`
    ("a.b=value") on top of these.

    Raises ConfigError naming the file, the setting, its value and what is allowed.
    """
    return validate_as(RunConfig, read_settings(path, overrides, options), where=str(path))


def load_any(
    path: Path, overrides: Sequence[str] = (), *, options: Mapping[str, Any] = NO_OPTIONS
) -> JobConfig:
    """As `load_config`, of whatever kind of run the file describes: the one that knows its settings
    best, of several the first."""
    values = read_settings(path, overrides, options)
    kind = min(KINDS.values(), key=lambda kind: len(values.keys() - kind.model_fields.keys()))
    return validate_as(kind, values, where=str(path))


def recorded_config(
    dataset: Dataset,
    run_id: str,
    overrides: Sequence[str] = (),
    *,
    options: Mapping[str, Any] = NO_OPTIONS,
) -> RunConfig | RephraseConfig:
    """The configuration that a run of this dataset was last started with, with what options and
    `overrides` change. Prices are for the roles that were recorded without."""
    rows = dataset.rows("runs", ["run_id", "event", "happened_at", "config", "kind"])
    mine = [row for row in rows if row["run_id"] == run_id and row["event"] == "started"]
    if not mine:
        known = sorted({row["run_id"] for row in rows})
        raise ConfigError(
            f"{dataset.root} holds no run {run_id!r}; it holds {', '.join(known) or 'no run'}"
        )
    newest = max(mine, key=lambda row: row["happened_at"])
    kind = kind_of(newest)
    if kind not in (RunConfig, RephraseConfig):
        raise ConfigError(f"run {run_id} is {_CALLED[kind]} with the same settings resumes it")
    recorded = renamed_settings(kind, newest["config"])
    values = kind.changed(recorded, overrides, options)
    return validate_as(kind, values, where=f"the recorded configuration of run {run_id}")


def newest_run_config(dataset: Dataset) -> RunConfig:
    """The configuration of the newest run in the dataset that made trajectories. ConfigError where
    none did."""
    rows = dataset.rows("trajectories", ["trajectory_id", "run_id"])
    runs = dataset.rows("runs", ["run_id", "event", "happened_at"])
    rolled = {row["run_id"] for row in rows}
    mine = [r for r in runs if r["run_id"] in rolled and r["event"] == "started"]
    if not mine:
        raise ConfigError(f"{dataset.root} holds no run with trajectories, so no tasks to play")
    newest = max(mine, key=lambda row: row["happened_at"])
    config = recorded_config(dataset, newest["run_id"])
    if not isinstance(config, RunConfig):
        raise ConfigError(
            f"run {newest['run_id']} of {dataset.root} made texts, and no trajectories"
        )
    return config


_CALLED: dict[type[JobConfig], str] = {
    EvolveConfig: "an evolution; `synth tools evolve`",
    GradeConfig: "a grading; `synth grade`",
}
"""Runs that their own command resumes."""


def kind_of(started: Row) -> type[JobConfig]:
    """The model of the configuration in a row of `runs`, by its `kind`. ConfigError for a kind that
    this version does not know."""
    name = started["kind"]
    if name is None:
        return _kind_before_it_was_stored(started["config"])
    if name not in KINDS:
        raise ConfigError(
            f"run {started['run_id']} is of kind {name!r}; this version of the program knows "
            f"{', '.join(KINDS)}: use the version that made it"
        )
    return KINDS[name]


def _kind_before_it_was_stored(values: dict[str, Any]) -> type[JobConfig]:
    """The model that has the recorded settings, all of which were written; of several, such as a
    grading's, which a pipeline run has too, the smallest."""

    def mismatch(kind: type[JobConfig]) -> tuple[int, int]:
        return len(values.keys() - kind.model_fields.keys()), len(kind.model_fields)

    return min(KINDS.values(), key=mismatch)


def validate(values: dict[str, Any], *, where: str) -> RunConfig:
    return validate_as(RunConfig, values, where=where)
