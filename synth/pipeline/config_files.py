"""Run configurations: from files, and as a dataset has recorded them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from records.errors import ConfigError
from records.settings import read_settings, renamed_settings, validate_as, with_overrides
from records.store.dataset import Dataset
from synth.pipeline.config import RunConfig
from synth.rephrasing.writing.config import RephraseConfig


def load_config(path: Path, overrides: Sequence[str] = ()) -> RunConfig:
    """The file's settings with `overrides` ("a.b=value") applied on top.

    Raises ConfigError naming the file, the setting, its value and what is allowed.
    """
    return validate(read_settings(path, overrides), where=str(path))


def recorded_config(
    dataset: Dataset, run_id: str, overrides: Sequence[str] = ()
) -> RunConfig | RephraseConfig:
    """The configuration that a run of this dataset was last started with, with `overrides`."""
    rows = dataset.rows("runs", ["run_id", "event", "happened_at", "config", "command"])
    mine = [row for row in rows if row["run_id"] == run_id and row["event"] == "started"]
    if not mine:
        known = sorted({row["run_id"] for row in rows})
        raise ConfigError(
            f"{dataset.root} holds no run {run_id!r}; it holds {', '.join(known) or 'no run'}"
        )
    newest = max(mine, key=lambda row: row["happened_at"])
    if newest["command"].endswith(("tools evolve", "evolve-tools")):
        raise ConfigError(
            f"run {run_id} is an evolution; `synth tools evolve` with the same settings resumes it"
        )
    kind = RephraseConfig if "chunk_tokens" in newest["config"] else RunConfig
    values = with_overrides(renamed_settings(kind, newest["config"]), overrides)
    return validate_as(kind, values, where=f"the recorded configuration of run {run_id}")


def validate(values: dict[str, Any], *, where: str) -> RunConfig:
    return validate_as(RunConfig, values, where=where)
