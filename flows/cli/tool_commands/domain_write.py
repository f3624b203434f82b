"""Command `synth domain write`: tools and policy for domains, written by a language model."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from flows.cli.shared.money import NO_MONEY, Money
from flows.cli.shared.options import DatasetOption, Json, Set, at_least
from flows.cli.shared.output import say
from records.errors import ConfigError

if TYPE_CHECKING:
    from synth.catalogue.writing.config import WriteConfig
    from synth.catalogue.writing.write import WrittenDomain


def write(
    *domains: str,
    tools: Annotated[int | None, at_least(1, most=60)] = None,
    out: Path | None = None,
    config: Path | None = None,
    endpoint: str | None = None,
    model: str | None = None,
    key_env: str | None = None,
    dataset: DatasetOption = None,
    money: Money = NO_MONEY,
    set_: Set = [],  # noqa: B006
    json_: Json = False,
) -> None:
    """Have a language model write tools and policy for domains, and prove each by running it.

    All domains are asked at once: of devices first one request for what happens by itself, then
    some for four to six tools each, then one for rules that the tools do not enforce. What does
    not pass is sent back once, with what was found, and then left out and told. The rest is added
    to the domain's file. Running again goes on, asks nothing twice, and then asks for what a file
    still lacks.

    Parameters
    ----------
    domains
        Domains of `synth domain list` by name, patterns such as 'smart_home/*', or paths of files.
    tools
        How many tools each domain is to have in the end, 12 if nothing is said.
    out
        Another file to write, of several domains a folder; without it each file is changed.
    config
        TOML file with `[roles.generator]` and the like. The options below win over it.
    endpoint
        URL of a server that speaks OpenAI's protocol, or the name of a file in
        `configs/endpoints/`. Without it and without roles in a file, the offline model writes.
    model
        Name of the model, as the endpoint knows it.
    key_env
        Name of the environment variable that holds the endpoint's key.
    dataset
        Folder for the ledger, the journals and all proposals; default $SYNTH_DATASET, else
        data/demo.
    set_
        A setting to change, such as `--set policy_rules=0`; may be given several times.
    json_
        Print a JSON list with an object for each domain.
    """
    from flows.cli.shared.going_on import same_command_goes_on
    from flows.cli.shared.hosted_demo import shared_settings
    from flows.runtime.settings import dataset_path
    from records.settings import merged, read_settings, validate_as, with_overrides
    from synth.catalogue.writing.config import WriteConfig

    if endpoint is None and (model is not None or key_env is not None):
        raise ConfigError("--model and --key-env are about an endpoint: give --endpoint, too")
    values = read_settings(config, (), money.settings()) if config else money.settings()
    if endpoint is not None:
        values = merged(values, {"roles": {"all": shared_settings(endpoint, model, key_env)}})
    given = {"domains": domains or None, "tools": tools}
    values = merged(values, {name: value for name, value in given.items() if value is not None})
    values = with_overrides(values, set_)
    if not values.get("domains"):
        raise ConfigError("which domains? Name some of `synth domain list`, or files")
    loaded = validate_as(WriteConfig, values, where=str(config or "synth domain write"))
    with same_command_goes_on():
        found = asyncio.run(_written(loaded, dataset_path(dataset), out, json_=json_))
    if json_:
        print(json.dumps([one._asdict() for one in found], ensure_ascii=False))  # noqa: T201


async def _written(
    config: "WriteConfig", dataset: Path, out: Path | None, *, json_: bool
) -> "list[WrittenDomain]":
    from flows.runtime.open_run import open_run
    from synth.catalogue.writing.stage import plans_of
    from synth.catalogue.writing.write import place_for, write_domains

    found: list[WrittenDomain] = []

    def told(written: "WrittenDomain") -> None:
        found.append(written)
        if not json_:
            _print(written)

    with config.prompts_in_use():
        plans = plans_of(config)
    place_of = place_for(out, len(plans))
    if not plans:
        say("nothing to write: the domains have their tools and their policy")
        return found
    async with open_run(config, str(dataset), command="synth domain write") as run:
        await write_domains(run, plans, place_of, on_written=told)
    return found


def _print(written: "WrittenDomain") -> None:
    counts = f"{written.tools} tools, {written.rules} rules and {written.jobs} jobs"
    lines = [f"{written.domain}: {counts} in {written.file}"]
    lines += [f"  left out: {name}: {why}" for name, why in written.left_out.items()]
    print("\n".join(lines))  # noqa: T201
