"""Command `synth tools evolve`: synthetic tools of the taxonomy, written by the generator."""

import json
from pathlib import Path

from flows.cli.shared.money import NO_MONEY, Money
from flows.cli.shared.options import DatasetOption, Flag, Json, Names, Set
from flows.cli.shared.output import say
from records.errors import ConfigError


def evolve(
    config: Path | None = None,
    *,
    count: int | None = None,
    dataset: DatasetOption = None,
    domains: Names = [],  # noqa: B006
    specialise: int | None = None,
    estimate: Flag = False,
    money: Money = NO_MONEY,
    set_: Set = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Evolve tools from the domains of the taxonomy and prove each by running it.

    The generator writes tools, batch after batch, for the domains that have the fewest. What does
    not compile, does nothing, breaks a rule or repeats another tool is sent back once and then
    dropped with its reason; the table `proposals` holds every one. Running again resumes.

    Parameters
    ----------
    config
        TOML file; `configs/evolve.toml` is a commented example. The options below win over it.
    count
        How many evolved tools there are to be in the end; needed where no file says it.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo. Made if it is missing.
    domains
        Domains of the taxonomy by name, or paths of domain files; all of the taxonomy if none.
    specialise
        How many narrower domains to make of them first.
    estimate
        Ask nobody; print what the tools that are missing will take in tokens and money, by what
        the rounds of this run took so far, or by a measured run where there is none.
    set_
        A setting to change, such as `--set roles.generator.base_url=http://localhost:8000/v1`,
        which leaves the role's other settings as they are; may be given several times.
    json_
        Print the summary, or the estimate, as a JSON object.
    """
    from flows.cli.shared.entry import run_flow
    from flows.runtime.settings import dataset_path
    from records.settings import merged, read_settings, validate_as, with_overrides
    from records.store.dataset import Dataset
    from synth.catalogue.evolution.config import EvolveConfig
    from synth.catalogue.evolution.estimate import estimate_lines, estimated, told_plainly
    from synth.catalogue.evolution.rounds import rounds_of
    from synth.catalogue.evolution.summary import lines, summarise

    options = {"count": count, "specialise": specialise, "domains": domains or None}
    given = {name: value for name, value in options.items() if value is not None}
    values = read_settings(config, (), money.settings()) if config else money.settings()
    values = with_overrides(merged(values, given), set_)
    if "count" not in values:
        raise ConfigError("how many tools? Give --count N, or a config file with count = N")
    command = f"synth tools evolve {config}" if config else "synth tools evolve"
    loaded = validate_as(EvolveConfig, values, where=str(config or command))
    path = dataset_path(dataset)
    if estimate:
        told = estimated(loaded, path)
        print(json.dumps(told_plainly(told)) if json_ else "\n".join(estimate_lines(told)))  # noqa: T201
        return
    seconds = run_flow("evolve_tools", loaded, path, command=command)
    store = Dataset.open(path)
    rounds = rounds_of(store, loaded)
    summary = summarise(store) | {"rounds": [one._asdict() for one in rounds]}
    say(f"done in {seconds:.0f} s; dataset {path}")
    print(json.dumps(summary, indent=2) if json_ else "\n".join(lines(summary)))  # noqa: T201
