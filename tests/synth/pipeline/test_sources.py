"""What a run's settings say of who plays what, before anything is asked."""

import pytest

from synth.episode.tools.simulator import SimulateConfig
from synth.judging.config import GradeConfig
from synth.llm.config import RoleConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.sources import calls_tools, offline_simulator
from synth.tasks.config import TaskConfig

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


@pytest.mark.parametrize(
    "config",
    [
        of(),
        of(simulate=EVERY_TOOL),
        of(roles=hosted("agent")),
        of(roles=hosted("agent", "simulator"), simulate=EVERY_TOOL),
    ],
    ids=["nothing", "all offline", "no tool played", "all hosted"],
)
def test_nothing_is_said_where_rules_play_no_tool_of_hosted_roles(config: RunConfig) -> None:
    assert offline_simulator(config) is None


@pytest.mark.parametrize(
    "simulate",
    [EVERY_TOOL, SimulateConfig(tools=("scene_run",)), SimulateConfig(sources=("weather",))],
)
def test_rules_that_play_tools_among_hosted_roles_are_told(simulate: SimulateConfig) -> None:
    words = offline_simulator(of(roles=hosted("agent", "user"), simulate=simulate)) or ""
    assert "roles.simulator is the offline model" in words
    assert "agent, user are hosted" in words
