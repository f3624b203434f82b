"""A run whose roles have endpoints in part is refused, unless its settings say that it is meant."""

from typing import Any

import pytest

from records.errors import ConfigError
from records.settings import validate_as
from synth.catalogue.evolution.config import EvolveConfig
from synth.engine.job_config import JobConfig
from synth.judging.config import GradeConfig
from synth.pipeline.config import RunConfig
from synth.rephrasing.writing.config import RephraseConfig

HOSTED = {"base_url": "http://127.0.0.1:9/v1"}
NEEDED = ("generator", "agent", "user", "judge")


def of(kind: type[JobConfig], *hosted: str, **settings: Any) -> JobConfig:
    values = {"roles": {role: HOSTED for role in hosted}} | settings
    return validate_as(kind, values, where="here")


@pytest.mark.parametrize(
    "config",
    [
        of(RunConfig),
        of(RunConfig, simulate={"tools": "all"}),
        of(RunConfig, *NEEDED),
        of(RunConfig, *NEEDED, "simulator", simulate={"tools": "all"}),
        of(RunConfig, "agent", offline={"roles": ["generator", "user", "judge"]}),
        of(GradeConfig),
        of(GradeConfig, "judge", offline={"roles": ["generator"]}),
        of(EvolveConfig),
        of(EvolveConfig, "generator"),
        of(RephraseConfig),
        of(RephraseConfig, "rewriter"),
        of(RephraseConfig, "rewriter", "judge"),
        of(RephraseConfig, "rewriter", judge="all", offline={"roles": ["judge"]}),
        of(RephraseConfig, "rewriter", "embedder", align="embedder"),
    ],
    ids=lambda config: f"{config.KIND}-{'-'.join(config.roles_asked())}",
)
def test_all_offline_all_hosted_and_what_is_meant_may_run(config: JobConfig) -> None:
    config.check_roles()


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        (of(RunConfig, "agent"), "roles.generator, roles.user, roles.judge have no endpoint"),
        (of(RunConfig, "generator", "agent", "user"), "roles.judge has no endpoint"),
        (of(RunConfig, "simulator"), "roles.generator, roles.agent, roles.user, roles.judge have"),
        (of(RunConfig, *NEEDED, simulate={"tools": "all"}), "roles.simulator has no endpoint"),
        (of(RunConfig, *NEEDED, simulate={"tools": ["pay"]}), "roles.simulator has no endpoint"),
        (of(RunConfig, *NEEDED, simulate={"sources": ["web"]}), "roles.simulator has no endpoint"),
        (
            of(RunConfig, "agent", "user", offline={"roles": ["judge"]}),
            "roles.generator has no endpoint",
        ),
        (of(RephraseConfig, "rewriter", judge="all"), "roles.judge has no endpoint"),
        (of(RephraseConfig, "rewriter", align="embedder"), "roles.embedder has no endpoint"),
        (of(RephraseConfig, "judge"), "roles.rewriter has no endpoint"),
    ],
)
def test_a_role_that_is_needed_and_left_out_is_named(config: JobConfig, missing: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.check_roles()
    assert str(caught.value).startswith(missing)


def test_the_refusal_says_both_ways_to_mend_it() -> None:
    config = of(RunConfig, "agent", "user", offline={"roles": ["judge"]})
    with pytest.raises(ConfigError) as caught:
        config.check_roles()
    assert str(caught.value) == (
        "roles.generator has no endpoint, and agent, user have one: the offline model would "
        "play generator by its rules. Give roles.generator a base_url, or say that it is meant: "
        '[offline] roles = ["judge", "generator"]'
    )


def test_roles_that_are_meant_to_be_offline_change_no_id() -> None:
    assert of(RunConfig, offline={"roles": ["judge"]}).run_id == RunConfig().run_id
