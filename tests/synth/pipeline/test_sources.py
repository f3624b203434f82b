"""What a run's settings say of who plays what, before anything is asked."""

from pathlib import Path

import pytest

from records.errors import ConfigError
from records.store.dataset import Dataset
from synth.episode.tools.simulator import SimulateConfig
from synth.judging.config import GradeConfig
from synth.llm.settings.config import RoleConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.sources import calls_tools, catalogue_of, check_sources
from synth.tasks.config import TaskConfig
from tool_specs.domains.domain import built_domain, builtin_names

HOSTED = RoleConfig(base_url="http://127.0.0.1:9/v1")
EVERY_TOOL = SimulateConfig(tools="all")
NO_DUAL = TaskConfig(dual_control=0.0)


def of(domains: tuple[str, ...] = ("home_hub",), **changes: object) -> RunConfig:
    return RunConfig(domains=domains, servers=(), code=()).model_copy(update=changes)


def hosted(*roles: str) -> dict[str, RoleConfig]:
    return of().roles | dict.fromkeys(roles, HOSTED)


@pytest.mark.parametrize(
    ("config", "tried"),
    [
        (of(roles=hosted("agent", "user")), True),
        (of(("evolved",), roles=hosted("user")), True),
        (of(roles=hosted("agent")), False),
        (of(("clinic_desk",), roles=hosted("user")), False),
        (of(roles=hosted("user"), tasks=NO_DUAL), False),
        (GradeConfig(), False),
    ],
    ids=["owns tools", "may own some", "offline", "owns none", "no such tasks", "grading"],
)
def test_a_hosted_user_is_tried_where_it_may_have_tools(config: RunConfig, tried: bool) -> None:
    assert calls_tools(config, "user") is tried
    assert calls_tools(config, "agent")
    assert not calls_tools(config, "judge")


def test_a_run_on_every_world_begins_without_loading_one(tmp_path: Path) -> None:
    built_domain.cache_clear()
    config = of(("all",), roles=hosted("user"), simulate=SimulateConfig(tools=("device_switch",)))
    check_sources(config)
    assert calls_tools(config, "user")
    domains = catalogue_of(Dataset.create_or_open(tmp_path / "d"), config).domains
    assert len(domains) >= len(builtin_names())
    assert built_domain.cache_info().misses == 0
    first = next(iter(domains))
    assert domains[first].programs
    assert built_domain.cache_info().misses == 1


def test_a_played_tool_that_no_world_has_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"simulate\.tools names fly_to_mars"):
        check_sources(of(("all",), simulate=SimulateConfig(tools=("fly_to_mars",))))


def test_a_dry_run_of_every_world_takes_the_built_in_ones() -> None:
    assert of(("all", "evolved", "web_shop")).in_small().domains == ("builtin/*", "web_shop")
