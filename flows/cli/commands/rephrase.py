"""Command `synth rephrase`: texts rewritten for pretraining."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App

from flows.cli.shared.money import NO_MONEY, Money
from flows.cli.shared.options import DatasetOption, Flag, Json, Set, at_least
from flows.cli.shared.output import say
from records.errors import ConfigError

if TYPE_CHECKING:
    from synth.rephrasing.writing.config import RephraseConfig


def register(app: App) -> None:
    app.command(rephrase)


def rephrase(
    config: Path,
    *,
    dataset: DatasetOption = None,
    dry_run: Flag = False,
    estimate: Flag = False,
    pilot: Annotated[int | None, at_least(1)] = None,
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
    estimate
        Read the beginning of each source and print how many documents there are and what rewriting
        them takes: requests, tokens and USD by role. No request is sent.
    pilot
        Rewrite only so many documents, drawn from the beginning of each source, and print what
        became of them and what a million kept tokens cost. The run goes on from there.
    json_
        Print the summary, or the estimate, as a JSON object.
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
    if sum((dry_run, estimate, pilot is not None)) > 1:
        raise ConfigError("--dry-run, --estimate and --pilot are three things to do: give one")
    if estimate or pilot is not None:
        from flows.cli.shared.estimating_rephrase import print_rephrase_estimate, run_pilot

        if pilot is None:
            print_rephrase_estimate(loaded, command=f"{command} --estimate", json_=json_)
        else:
            command = f"{command} --pilot {pilot}"
            run_pilot(loaded, path, documents=pilot, command=command, json_=json_)
        return
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
