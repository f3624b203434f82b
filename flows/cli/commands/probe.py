"""Command `synth probe`: what the endpoints of a config can do, found out by asking them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App

from flows.cli.shared.options import Json, Set
from flows.cli.shared.output import print_rows, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synth.llm.probing.thorough import ProbedModel


def register(app: App) -> None:
    app.command(probe)


def probe(
    config: Path,
    *,
    set_: Set = [],  # noqa: B006
    json_: Json = False,
) -> int:
    """Find out what the models of a config can do at their endpoints, by short requests.

    Prints every entry of their profiles with how it was found, and each profile as a config takes
    it, under `roles.NAME.profile`. Ends with code 1 where a model cannot do what its roles need.

    Parameters
    ----------
    config
        TOML file of a run, a rephrasing, a grading or an evolution.
    set_
        A setting to change, such as `--set roles.all.base_url=http://localhost:8000/v1`.
    json_
        Print a JSON list with an object for each model.
    """
    import asyncio

    from synth.llm.probing.thorough import probe_thoroughly
    from synth.pipeline.config_files import load_any

    loaded = load_any(config, set_)
    loaded.check_roles()
    hosted = {role: own for role, own in loaded.roles_asked().items() if not own.is_offline}
    models = asyncio.run(probe_thoroughly(hosted, on_progress=say))
    if json_:
        print(json.dumps([as_json(one) for one in models], ensure_ascii=False))  # noqa: T201
    else:
        tell(models)
    return 1 if any(one.problems for one in models) else 0


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
        tokens = model.usage.prompt + model.usage.completion
        say(f"spent {model.requests} requests, {tokens:,} tokens, {model.usd:.4f} USD")
        for problem in model.problems:
            print(f"problem: {problem}")  # noqa: T201


def _written(value: object) -> str:
    """As TOML writes it; a dash for what could not be found."""
    return "-" if value is None else json.dumps(value, ensure_ascii=False)
