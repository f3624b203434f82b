"""Command `synth probe`: what the endpoints of a config can do, found out by asking them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from flows.cli.shared.going_on import same_command_begins_anew
from flows.cli.shared.money import NO_MONEY, Money
from flows.cli.shared.options import Flag, Json, Set
from flows.cli.shared.output import print_rows, say
from records.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synth.engine.job_config import JobConfig
    from synth.llm.probing.thorough import ProbedModel


def register(app: App) -> None:
    app.command(probe)


def probe(
    config: Path,
    *,
    items: Flag = False,
    keep: Annotated[Path | None, Parameter(negative="")] = None,
    money: Money = NO_MONEY,
    set_: Set = [],  # noqa: B006
    json_: Json = False,
) -> int:
    """Find out what the models of a config can do at their endpoints, by short requests.

    Prints every entry of their profiles with how it was found, and each profile as a config takes
    it, under `roles.NAME.profile`. Ends with code 1 where a model cannot do what its roles need, or
    an item failed.

    Parameters
    ----------
    config
        TOML file of a run, a rephrasing, a grading or an evolution.
    items
        Also make one item of each stage, in a dataset of its own, and show the first request of
        each stage and role with its answer, and what came of the items. --budget and
        --budget-tokens limit what they take, 200,000 tokens unless told otherwise; the config's own
        budget is for its run.
    keep
        New folder in which the dataset of the items stays, with `exchanges.json`: the requests and
        answers uncut.
    set_
        A setting to change, such as `--set roles.all.base_url=http://localhost:8000/v1`.
    json_
        Print a JSON list with an object for each model; with --items an object with it under
        `models` beside the items, and under `stopped` what ended them before their time, if
        anything did.
    """
    from synth.llm.settings.config import BudgetConfig
    from synth.pipeline.config_files import load_any

    if not items and (keep or money.budget is not None or money.budget_tokens is not None):
        raise ConfigError("--keep, --budget and --budget-tokens are about items: give --items, too")
    loaded = load_any(config, set_, options=Money(price=money.price).settings())
    loaded = loaded.model_copy(update={"budget": BudgetConfig()})  # of the run, which is not made
    loaded.check_roles()
    small = None
    if items:
        from flows.cli.shared.items import items_of

        small = items_of(loaded, money, keep)
    with same_command_begins_anew():
        return _probed(loaded, small, keep, json_=json_)


def _probed(
    loaded: "JobConfig", small: "JobConfig | None", keep: Path | None, *, json_: bool
) -> int:
    """Ask the endpoints of a config, make its items where there are settings for them, and tell
    what was found; the exit code."""
    import asyncio

    from synth.llm.probing.thorough import probe_thoroughly

    hosted = {role: own for role, own in loaded.roles_asked().items() if not own.is_offline}
    models = asyncio.run(probe_thoroughly(hosted, on_progress=say))
    told = [as_json(one) for one in models]
    if not json_:
        tell(models)
        tell_cost(models, priced=all(own.has_prices for own in hosted.values()))
    elif small is None:
        print(json.dumps(told, ensure_ascii=False))  # noqa: T201
    failed = any(one.problems for one in models)
    if small is not None:
        from flows.cli.shared.items import is_done, probe_items

        made = probe_items(small, keep, json_=json_)
        if json_:
            values = {"models": told} | made.as_json()
            print(json.dumps(values, ensure_ascii=False, default=str))  # noqa: T201
        if made.stopped is not None:
            raise made.stopped
        failed = failed or not is_done(made)
    return 1 if failed else 0


def as_json(model: "ProbedModel") -> dict[str, object]:
    return {
        "roles": list(model.roles),
        "model": model.model,
        "url": model.url,
        "profile": model.profile.model_dump(mode="json", exclude_none=True),
        "findings": [one._asdict() for one in model.findings],
        "problems": list(model.problems),
        "requests": model.requests,
        "usage": model.usage._asdict(),
        "usd": model.usd,
    }


def tell(models: "Sequence[ProbedModel]") -> None:
    """A table for each model, then its profile in TOML and what is wrong with it."""
    if not models:
        say("no role of this config has an endpoint: there is nothing to probe")
    for model in models:
        print(f"\n{model.model} at {model.url} ({', '.join(model.roles)})")  # noqa: T201
        rows = [(entry, _written(value), how) for entry, value, how in model.findings]
        print_rows(("entry", "value", "how it was found"), rows, json_=False)
        known = model.profile.model_dump(mode="json", exclude_none=True)
        settings = ", ".join(f"{name} = {_written(value)}" for name, value in known.items())
        print(f"profile = {{{settings}}}")  # noqa: T201
        for problem in model.problems:
            print(f"problem: {problem}")  # noqa: T201


def tell_cost(models: "Sequence[ProbedModel]", *, priced: bool) -> None:
    """What all the questions took together."""
    if not models:
        return
    requests = sum(one.requests for one in models)
    prompt, completion, cached, reasoning = map(sum, zip(*(m.usage for m in models), strict=True))
    cost = f"{sum(one.usd for one in models):.4f} USD" if priced else "no prices known (--price)"
    say(
        f"the probe took {requests} requests, {prompt:,} tokens of prompt ({cached:,} cached) and "
        f"{completion:,} of completion ({reasoning:,} of reasoning), {cost}"
    )


def _written(value: object) -> str:
    """As TOML writes it; a dash for what could not be found."""
    return "-" if value is None else json.dumps(value, ensure_ascii=False)
