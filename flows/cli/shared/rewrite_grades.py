"""`synth grade` on a dataset of rewrites: decided anew, without writing any text."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.shared.money import Money
from flows.cli.shared.output import say
from records.errors import ConfigError

if TYPE_CHECKING:
    from records.store.dataset import Dataset
    from synth.rephrasing.writing.config import RephraseConfig


def is_about_rewrites(store: "Dataset", config: Path | None) -> bool:
    """Whether a file has the settings of a rephrasing; without one, whether the dataset holds
    rewrites and no trajectory."""
    from synth.pipeline.config_files import load_any
    from synth.rephrasing.writing.config import RephraseConfig

    if config is not None:
        return isinstance(load_any(config), RephraseConfig)
    return bool(store.ids("rephrasings")) and not store.ids("trajectories")


def grade_rewrites(
    store: "Dataset",
    config: Path | None,
    judge_model: str | None,
    money: Money,
    overrides: list[str],
    *,
    json_: bool,
) -> None:
    """Measure what no check of today has measured, judge what the settings want judged, decide."""
    from flows.cli.shared.entry import run_flow
    from synth.rephrasing.summary import lines, summarise

    loaded = _settings(store, config, judge_model, money, overrides)
    command = f"synth grade {store.root}"
    seconds = run_flow("grade_rewrites", loaded, store.root, command=command)
    summary = summarise(store)
    say(f"done in {seconds:.0f} s; decided about the rewrites of {store.root}")
    print(json.dumps(summary.as_json()) if json_ else "\n".join(lines(summary)))  # noqa: T201


def _settings(
    store: "Dataset",
    config: Path | None,
    judge_model: str | None,
    money: Money,
    overrides: list[str],
) -> "RephraseConfig":
    """From the file, else from the newest rephrasing of the dataset."""
    from records.settings import read_settings, validate_as, with_overrides
    from synth.rephrasing.writing.config import RephraseConfig

    options = money.settings()
    values = read_settings(config, (), options) if config else _recorded(store)
    if judge_model is not None:
        values.setdefault("roles", {}).setdefault("judge", {})["models"] = [judge_model]
    if config is None:
        values = RephraseConfig.changed(values, overrides, options)
    else:
        values = with_overrides(values, overrides)
    return validate_as(RephraseConfig, values, where=str(config or "synth grade"))


def _recorded(store: "Dataset") -> dict[str, Any]:
    """The settings of the newest rephrasing, without its budget."""
    from records.settings import renamed_settings
    from synth.pipeline.config_files import kind_of
    from synth.rephrasing.writing.config import RephraseConfig

    rows = store.rows("runs", ["run_id", "event", "happened_at", "config", "kind"])
    made = [row for row in rows if row["event"] == "started" and kind_of(row) is RephraseConfig]
    if not made:
        raise ConfigError(f"{store.root} holds no rephrasing to take settings from; give --config")
    newest = max(made, key=lambda row: row["happened_at"])
    recorded = renamed_settings(RephraseConfig, newest["config"])
    kept = set(RephraseConfig.model_fields) - {"budget", "stage_seconds"}
    return {name: value for name, value in recorded.items() if name in kept}
