"""Command `synth rephrase`: texts rewritten for pretraining."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App

from flows.cli.shared.money import NO_MONEY, Money
from flows.cli.shared.options import DatasetOption, Flag, Json, Set
from flows.cli.shared.output import say

if TYPE_CHECKING:
    from synth.rephrasing.writing.config import RephraseConfig


def register(app: App) -> None:
    app.command(rephrase)


def rephrase(
    config: Path,
    *,
    dataset: DatasetOption = None,
    dry_run: Flag = False,
    json_: Json = False,
    money: Money = NO_MONEY,
    set_: Set = [],  # noqa: B006
) -> None:
    """Rewrite texts in several styles and perspectives, part by part, and check their fidelity.

    Every rewrite is compared with its source; what lost or changed something, was copied, or
    repeats another rewrite is dropped with its reason. The table `rephrasings` holds all, the view
    `pretrain` what is kept. Running again resumes.

    Parameters
    ----------
    config
        TOML file; `configs/rephrase.toml` is a commented example.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo. Made if it is missing.
    dry_run
        Check everything with a handful of texts and the offline model, in a folder of its own
        beside the dataset, and spend nothing. Prints each hosted role's first request as it would
        be sent, unless the summary is printed as JSON.
    json_
        Print the summary as a JSON object.
    set_
        A setting to change, such as `--set rewrites=10`; may be given several times.
    """
    from flows.runtime.settings import dataset_path
    from records.settings import read_settings, validate_as
    from synth.rephrasing.writing.config import RephraseConfig

    values = read_settings(config, set_, money.settings())
    loaded = validate_as(RephraseConfig, values, where=str(config))
    path = dataset_path(dataset)
    command = f"synth rephrase {config}"
    if not dry_run:
        run_rephrase(loaded, path, command=command, json_=json_)
        return
    from flows.cli.shared.requests import tell_requests
    from synth.llm.first_requests import first_requests

    # in this process alone, where the requests are seen
    small = loaded.in_small().model_copy(update={"workers": 1})
    beside = path.with_name(f"{path.name}-dry-run")
    with first_requests() as plain:
        run_rephrase(small, beside, command=f"{command} --dry-run", json_=json_)
    if not json_:
        tell_requests(loaded, plain, beside)


def run_rephrase(
    config: "RephraseConfig",
    path: Path,
    *,
    command: str,
    json_: bool = False,
    retry_failed: bool = False,
) -> None:
    """Run it, then print what came of it."""
    from flows.cli.shared.entry import run_flow
    from records.store.dataset import Dataset
    from synth.rephrasing.summary import lines, summarise

    seconds = run_flow("rephrase", config, path, command=command, retry_failed=retry_failed)
    summary = summarise(Dataset.open(path))
    say(f"done in {seconds:.0f} s; dataset {path}, report {path / 'rephrasing.html'}")
    print(json.dumps(summary.as_json()) if json_ else "\n".join(lines(summary)))  # noqa: T201
