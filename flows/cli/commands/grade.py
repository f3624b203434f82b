"""Command `synth grade`: stored trajectories judged again, or rewrites decided about again."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App

from flows.cli.shared.money import NO_MONEY, Money
from flows.cli.shared.options import Json, Set
from flows.cli.shared.output import say
from records.errors import ConfigError

if TYPE_CHECKING:
    from records.store.dataset import Dataset
    from synth.judging.config import GradeConfig
    from synth.rephrasing.writing.config import RephraseConfig


def register(app: App) -> None:
    app.command(grade)


def grade(
    path: str | None = None,
    *,
    config: Path | None = None,
    judge_model: str | None = None,
    rubric: Path | None = None,
    money: Money = NO_MONEY,
    set_: Set = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Judge the trajectories of a dataset again, without new rollouts.

    Adds a grading: verdicts, the trial of the judge and the curation that follows from it, which
    is then the newest. Nothing is rewritten. What was graded so before costs nothing again.

    On a dataset of rewrites, or with the file of a rephrasing: measures, judges and decides about
    the rewrites again, by the file's thresholds, gates and judge, and writes none anew.

    Parameters
    ----------
    path
        Folder of the dataset; default $SYNTH_DATASET, else data/demo.
    config
        TOML file with roles.judge, judging, curation, budget and the like. Without it, the settings
        of the newest run of the dataset hold; of imported conversations that no run has judged the
        defaults.
    judge_model
        Name of the model that judges, at the endpoint of the settings.
    rubric
        YAML file that drops, changes or adds criteria, in all tasks or by variant.
    set_
        A setting to change, such as `--set roles.judge.base_url=http://localhost:8000/v1`.
    json_
        Print what the judge did on perturbed negatives as a JSON list of objects.
    """
    from flows.cli.shared.entry import run_flow
    from flows.runtime.settings import open_dataset
    from synth.judging.judge_rates import as_table
    from synth.judging.judge_report import trial_text
    from synth.judging.stages import grading_of, trials, warning_about

    store = open_dataset(path)
    if _is_about_rewrites(store, config):
        if rubric is not None:
            raise ConfigError(f"--rubric {rubric} is about trajectories; rewrites have no rubric")
        _grade_rewrites(store, config, judge_model, money, set_, json_=json_)
        return
    loaded = _settings(store, config, judge_model, rubric, money, set_)
    seconds = run_flow("grade", loaded, store.root, command=f"synth grade {store.root}")
    grading_id = grading_of(loaded)
    say(f"done in {seconds:.0f} s; grading {grading_id} of {store.root}")
    table = as_table(trials(store, grading_id), loaded.judging.minimum_quality)
    if json_:
        print(json.dumps(table))  # noqa: T201
    else:
        print(trial_text(table))  # noqa: T201
    if warning := warning_about(store, loaded):
        say(warning)


def _settings(
    store: "Dataset",
    config: Path | None,
    judge_model: str | None,
    rubric: Path | None,
    money: Money,
    overrides: list[str],
) -> "GradeConfig":
    """From the file, else from the newest run that judged; refused before any work if wrong."""
    from records.settings import read_settings, validate_as, with_overrides
    from synth.judging.config import GradeConfig
    from synth.rubrics.patch import load_rubric
    from synth.tasks.proof.extensions import load_extensions

    options = money.settings()
    values = read_settings(config, (), options) if config else _recorded(store)
    if judge_model is not None:
        judge = values.setdefault("roles", {}).setdefault("judge", {})
        judge["models"] = [judge_model]
    if rubric is not None:
        patch = load_rubric(rubric)
        values.setdefault("judging", {})["rubric"] = patch.model_dump(mode="json")
    if config is None:
        values = GradeConfig.changed(values, overrides, options)
    else:
        values = with_overrides(values, overrides)
    loaded = validate_as(GradeConfig, values, where=str(config or "synth grade"))
    if loaded.judging.rubric is not None:
        loaded.judging.rubric.check(load_extensions(loaded.extensions).kinds)
    return loaded


def _recorded(store: "Dataset") -> dict[str, Any]:
    """The settings of the newest run that have a say in grading, without its budget."""
    from records.settings import renamed_settings
    from synth.judging.config import GradeConfig, JudgedConfig
    from synth.pipeline.config_files import kind_of

    rows = store.rows("runs", ["run_id", "event", "happened_at", "config", "kind"])
    judged = [
        row for row in rows if row["event"] == "started" and issubclass(kind_of(row), JudgedConfig)
    ]
    if not judged and store.ids("imports"):  # nobody has judged yet what was imported
        return GradeConfig().model_dump(mode="json", exclude={"name", "budget", "stage_seconds"})
    if not judged:
        raise ConfigError(f"{store.root} holds no run whose settings could be used; give --config")
    judged.sort(key=lambda row: row["happened_at"])
    recorded = [renamed_settings(GradeConfig, row["config"]) for row in judged]
    newest = recorded[-1]
    kept = set(GradeConfig.model_fields) - {"name", "budget", "stage_seconds"}
    values = {name: value for name, value in newest.items() if name in kept}
    # a grading of before may have none but the judge
    roles = {role: own for config in recorded for role, own in config["roles"].items()}
    values["roles"] = {role: roles[role] for role in GradeConfig.DEFAULT_ROLES if role in roles}
    return values


def _is_about_rewrites(store: "Dataset", config: Path | None) -> bool:
    """Whether a file has the settings of a rephrasing; without one, whether the dataset holds
    rewrites and no trajectory."""
    from synth.pipeline.config_files import load_any
    from synth.rephrasing.writing.config import RephraseConfig

    if config is not None:
        return isinstance(load_any(config), RephraseConfig)
    return bool(store.ids("rephrasings")) and not store.ids("trajectories")


def _grade_rewrites(
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

    loaded = _rewrite_settings(store, config, judge_model, money, overrides)
    command = f"synth grade {store.root}"
    seconds = run_flow("grade_rewrites", loaded, store.root, command=command)
    summary = summarise(store)
    say(f"done in {seconds:.0f} s; decided about the rewrites of {store.root}")
    print(json.dumps(summary.as_json()) if json_ else "\n".join(lines(summary)))  # noqa: T201


def _rewrite_settings(
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
    values = read_settings(config, (), options) if config else _recorded_rephrasing(store)
    if judge_model is not None:
        values.setdefault("roles", {}).setdefault("judge", {})["models"] = [judge_model]
    if config is None:
        values = RephraseConfig.changed(values, overrides, options)
    else:
        values = with_overrides(values, overrides)
    loaded = validate_as(RephraseConfig, values, where=str(config or "synth grade"))
    if judge_model is not None and not loaded.asks_judge:
        raise ConfigError(
            f"--judge-model {judge_model}: nobody would be asked, since judge = {loaded.judge!r} "
            f"and roles.judge.base_url = {loaded.roles['judge'].base_url!r}; add "
            "--set judge=flagged and --set roles.judge.base_url=URL"
        )
    return loaded


def _recorded_rephrasing(store: "Dataset") -> dict[str, Any]:
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
