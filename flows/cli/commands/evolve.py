"""Command `synth tools evolve`: synthetic tools of the taxonomy, written by the generator."""

import json

from flows.cli.shared.money import NO_MONEY, Money
from flows.cli.shared.options import DatasetOption, Json, Names, Set
from flows.cli.shared.output import say


def evolve(
    *,
    count: int,
    dataset: DatasetOption = None,
    domains: Names = [],  # noqa: B006
    specialise: int = 0,
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
    count
        How many evolved tools there are to be in the end.
    dataset
        Folder of the dataset; default $SYNTH_DATASET, else data/demo. Made if it is missing.
    domains
        Domains of the taxonomy by name, or paths of domain files; all of the taxonomy if none.
    specialise
        How many narrower domains to make of them first.
    set_
        A setting to change, such as `--set roles.generator.base_url=http://localhost:8000/v1`.
    json_
        Print the summary as a JSON object.
    """
    from flows.cli.shared.entry import run_flow
    from flows.runtime.settings import dataset_path
    from records.settings import validate_as, with_overrides
    from records.store.dataset import Dataset
    from synth.catalogue.evolution.config import EvolveConfig
    from synth.catalogue.evolution.summary import lines, summarise

    values = {"count": count, "specialise": specialise}
    given = values | ({"domains": domains} if domains else {})
    config = validate_as(EvolveConfig, with_overrides(given, set_), where="synth tools evolve")
    path = dataset_path(dataset)
    seconds = run_flow("evolve_tools", config, path, command="synth tools evolve")
    summary = summarise(Dataset.open(path))
    say(f"done in {seconds:.0f} s; dataset {path}")
    print(json.dumps(summary, indent=2) if json_ else "\n".join(lines(summary)))  # noqa: T201
