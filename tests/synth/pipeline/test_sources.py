"""What a run's settings say of who plays what, before anything is asked."""

import pytest

from synth.episode.tools.simulator import SimulateConfig
from synth.judging.config import GradeConfig
from synth.llm.settings.config import RoleConfig
from synth.pipeline.config import RunConfig
from synth.pipeline.sources import calls_tools
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
