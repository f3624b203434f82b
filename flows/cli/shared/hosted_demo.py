"""`synth demo --endpoint ...`: the demo's pipeline on an endpoint of one's own, within a budget."""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from flows.cli.shared.money import Money
from flows.runtime.settings import DEFAULT_DATASET
from records.errors import ConfigError
from records.settings import merged, with_overrides
from synth.llm.settings.config import TokenUsage
from synth.pipeline.config import RunConfig
from synth.pipeline.config_files import validate

ENVIRONMENT = "env"
"""The endpoint that the usual variables name; nothing else reads them."""

URL_VARIABLE, KEY_VARIABLE, MODEL_VARIABLE = "OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"
USUAL_URL = "https://api.openai.com/v1"
"""What programs that read these variables take where there is a key and no URL."""

TOKENS_PER_TASK = TokenUsage(prompt=37_400, completion=1_200)
"""What a task that is tried takes in the demo of the offline model, from its share of agents and
personas to the verdicts and the trial of the judge: tokens of the ledger by tasks, of 60 tasks.
Nine parts of ten are the conversation that the agent reads again at each of its turns."""

PLANNED_SHARE = 0.5
"""Of the budget, what the number of tasks is made for: models use more words than the rules of the
offline model, and some reason; what is left over is not spent."""

UNLIMITED_TASKS = 40
"""Where no budget is given: enough to see accepted trajectories of most domains."""

MOST_TASKS = 420
"""As many as the demo tries without an endpoint."""


class HostedDemo(NamedTuple):
    config: RunConfig
    dataset: Path
    """Where it goes if the user names no other place."""
    command: str
    """What goes on with it."""
    words: str
    """How many tasks are tried, and why so many."""


def hosted_demo(
    endpoint: str, model: str | None, key_env: str | None, money: Money, overrides: Sequence[str]
) -> HostedDemo:
    """The settings of a demo on that endpoint: a URL, the name or path of a ready one, or `env`.
    ConfigError for what is missing."""
    shared = shared_settings(endpoint, model, key_env)
    values = merged({"roles": {"all": shared}}, money.settings())
    config = validate(with_overrides(values, overrides), where="synth demo")
    config.check_roles()
    agent = config.roles["agent"]
    if agent.is_offline:
        raise ConfigError(f"--endpoint {endpoint} names no address; give the URL of a server")
    if "models" not in agent.model_fields_set:
        raise ConfigError("which model? Give --model NAME, as the endpoint knows it")
    name = _as_name(agent.models[0].name)
    words = "the number of tasks is set by --set num_tasks"
    if "num_tasks" not in config.model_fields_set:
        tasks, words = _number_of_tasks(config)
        config = config.model_copy(update={"num_tasks": tasks})
    if "name" not in config.model_fields_set:
        config = config.model_copy(update={"name": f"demo-{name}"})
    given = [
        *("--endpoint", endpoint),
        *(("--model", model) if model else ()),
        *(("--key-env", key_env) if key_env else ()),
        *money.words(),
        *(word for override in overrides for word in ("--set", override)),
    ]
    default = Path(DEFAULT_DATASET)
    return HostedDemo(
        config, default.with_name(f"demo-{name}"), f"synth demo {shlex.join(given)}", words
    )


def shared_settings(endpoint: str, model: str | None, key_env: str | None) -> dict[str, Any]:
    """What `--endpoint`, `--model` and `--key-env` say of all roles."""
    if endpoint == ENVIRONMENT:
        return _from_environment(model, key_env)
    where = "base_url" if re.match(r"https?://", endpoint) else "endpoint"
    return {where: endpoint} | _known(model, key_env)


def _from_environment(model: str | None, key_env: str | None) -> dict[str, Any]:
    url, key = os.environ.get(URL_VARIABLE), os.environ.get(KEY_VARIABLE)
    if not url and not key:
        raise ConfigError(
            f"--endpoint {ENVIRONMENT} reads {URL_VARIABLE}, {KEY_VARIABLE} and {MODEL_VARIABLE}, "
            f"and neither of the first two is set; set them, or give --endpoint URL"
        )
    own_key = KEY_VARIABLE if key else None
    own = _known(model or os.environ.get(MODEL_VARIABLE), key_env or own_key)
    return {"base_url": url or USUAL_URL} | own


def _known(model: str | None, key_env: str | None) -> dict[str, Any]:
    given = {"models": [model] if model else None, "api_key_env": key_env}
    return {name: value for name, value in given.items() if value is not None}


def _number_of_tasks(config: RunConfig) -> tuple[int, str]:
    """How many tasks the budget is likely to do, at the prices of the dearest role."""
    prompt, completion, *_ = TOKENS_PER_TASK
    usd = max(own.cost_usd(TOKENS_PER_TASK) for own in config.roles_asked().values())
    limits: list[tuple[float, str]] = []
    if config.budget.tokens is not None:
        limits.append(
            (
                config.budget.tokens / (prompt + completion),
                f"{config.budget.tokens:,} tokens",
            )
        )
    if config.budget.usd is not None and usd > 0:
        limits.append((config.budget.usd / usd, f"{config.budget.usd:g} USD"))
    if not limits:
        return UNLIMITED_TASKS, (
            f"{UNLIMITED_TASKS} tasks, since no budget binds (--budget USD, --budget-tokens N)"
        )
    affordable, limit = min(limits)
    each = f"some {prompt + completion:,} tokens" + (f" ({usd:.4f} USD)" if usd else "")
    tasks = min(MOST_TASKS, int(affordable * PLANNED_SHARE))
    if tasks < 1:
        raise ConfigError(
            f"a budget of {limit} is too small for the demo: a task takes {each}, and the demo "
            f"plans for {PLANNED_SHARE:.0%} of the budget; raise it"
        )
    return tasks, (
        f"{tasks} {'task' if tasks == 1 else 'tasks'}: each takes {each} in the demo of the "
        f"offline model, and {PLANNED_SHARE:.0%} of {limit} is planned for, since models use more "
        "words; the whole is the hard limit"
    )


def _as_name(model: str) -> str:
    """Of a model, as part of a folder's name."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", model.lower()).strip("-._")
    return plain[:40].rstrip("-._") or "model"
