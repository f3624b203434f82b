"""A budget in USD binds: a run whose prices nobody knows is refused one."""

from typing import Any

import pytest

from records.errors import ConfigError
from records.settings import validate_as
from synth.engine.job_config import JobConfig
from synth.judging.config import GradeConfig
from synth.pipeline.config import RunConfig
from synth.rephrasing.writing.config import RephraseConfig

URL = {"base_url": "http://127.0.0.1:9/v1"}
PRICES = {"usd_per_million_prompt": 0.6, "usd_per_million_completion": 2.5}
FREE = {name: 0 for name in PRICES}
ONE = {"usd_per_million_prompt": 0.6}


def of(kind: type[JobConfig], roles: dict[str, Any], **settings: Any) -> JobConfig:
    return validate_as(kind, {"roles": roles} | settings, where="here")


@pytest.mark.parametrize(
    ("roles", "budget"),
    [
        ({"all": URL}, {}),
        ({"all": URL}, {"tokens": 1000}),
        ({"all": URL | PRICES}, {"usd": 2}),
        ({"all": URL | FREE}, {"usd": 2}),
        ({"all": URL | PRICES, "simulator": URL}, {"usd": 2}),
        ({}, {"usd": 2}),
    ],
)
def test_what_can_be_counted_may_run(roles: dict[str, Any], budget: dict[str, Any]) -> None:
    of(RunConfig, roles, budget=budget).check_roles()


@pytest.mark.parametrize("budget", [{"usd": 2}, {"usd": 0}, {"stages": {"tasks": {"usd": 1}}}])
def test_roles_without_prices_are_named_with_what_to_do(budget: dict[str, Any]) -> None:
    config = of(RunConfig, {"all": URL, "judge": PRICES, "user": ONE}, budget=budget)
    with pytest.raises(ConfigError) as caught:
        config.check_roles()
    text = str(caught.value)
    assert "roles.generator, roles.agent, roles.user have no prices" in text
    limit = "budget.stages.tasks.usd" if "stages" in budget else "budget.usd"
    assert text.startswith(f"{limit} limits")
    for word in ("--price IN,OUT", "--budget-tokens N", "Both prices at 0"):
        assert word in text


def test_only_roles_with_something_to_do_need_prices() -> None:
    idle = of(RephraseConfig, {"all": URL, "rewriter": PRICES}, budget={"usd": 1}, judge="none")
    idle.check_roles()
    asked = of(RephraseConfig, {"all": URL, "rewriter": PRICES}, budget={"usd": 1})
    with pytest.raises(ConfigError, match=r"roles\.judge, roles\.generator have no prices"):
        asked.check_roles()


def test_what_was_recorded_before_prices_could_be_unknown_goes_on() -> None:
    recorded = of(GradeConfig, {"all": URL | FREE}, budget={"usd": 1}).model_dump(mode="json")
    for name in ("usd_per_million_cached_prompt", "usd_per_million_reasoning"):
        del recorded["roles"]["judge"][name]
    validate_as(GradeConfig, recorded, where="here").check_roles()
