"""A run's configuration. Its defaults are every world that has tools, and the offline model."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from pydantic import Field

from synth.catalogue.evolved_domains import is_evolved
from synth.engine.job_config import JobConfig, Role
from synth.episode.rollout import RolloutConfig
from synth.episode.tools.simulator import SimulateConfig
from synth.judging.config import JudgedConfig
from synth.llm.settings.config import BudgetConfig, RoleConfig
from synth.tasks.agents.agents import AgentConfig
from synth.tasks.agents.persona_config import PersonaConfig
from synth.tasks.config import TaskConfig
from synth.tasks.difficulty import DERIVATION, EASIER, HARDER, DifficultyConfig
from synth.tasks.servers.config import ServerGoalsConfig

STAGES = (
    "tools",
    "server-starts",
    "server-goals",
    "agents",
    "personas",
    "screening",
    "tasks",
    "rollouts",
    "grading",
    "difficulty",
    DERIVATION,
    "calibration",
    "curation",
)
"""Names of the stages in their order, as budgets and reports use them."""


BUILT_IN = "builtin/*"
"""The built-in domains in a run's `domains`: few enough for a demo or a dry run."""


class RunConfig(JudgedConfig):
    """Everything a run of the pipeline is told."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = JudgedConfig.NOT_IDENTITY | {"num_tasks"}
    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            **JobConfig.ADDED_LATER,
            "server_goals": {
                "servers": "without_goals",
                "wanted": 12,
                "rounds": 3,
                "look_calls": 10,
            },
            "released_tools": [],
            "difficulty": {
                "rounds": 0,
                "target": 0.5,
                "operators": dict.fromkeys((*HARDER, *EASIER), 1.0),
                "added_tools": 8,
            },
        }
    )
    STAGES: ClassVar[tuple[str, ...]] = STAGES
    DEFAULT_ROLES: ClassVar[dict[Role, RoleConfig]] = {
        role: RoleConfig()
        for role in ("generator", "agent", "user", "simulator", "judge", "embedder")
    }

    domains: tuple[str, ...] = ("all",)
    """Domains of the taxonomy by name, `all` that have tools, patterns such as `smart_home/*` for a
    category or `builtin/*`, paths of domain files, or domains that the dataset holds evolved tools
    of: `evolved` for all, `evolved:NAME` for one."""
    servers: tuple[str, ...] = ("all",)
    """Built-in MCP servers by name, `all` of them, or paths of server definitions."""
    released_tools: tuple[str, ...] = ()
    """Tools of the run's servers, written SERVER/TOOL, that are used although their texts were
    found to instruct the model that reads them. For tools that a person has read."""
    simulate: SimulateConfig = SimulateConfig()
    """Which tools a model plays, and what stands in for servers that cannot run here."""
    personas: PersonaConfig = PersonaConfig()
    """Who the simulated users are."""
    agents: AgentConfig = AgentConfig()
    """Which tools an agent gets."""
    server_goals: ServerGoalsConfig = ServerGoalsConfig()
    """How goals are found on MCP servers whose definition lists none."""
    tasks: TaskConfig = TaskConfig()
    """How many tasks an agent is given and how complex they are."""
    rollouts: RolloutConfig = RolloutConfig()
    """Attempts at each task, and the limits of an episode."""
    difficulty: DifficultyConfig = DifficultyConfig()
    """Rounds in which tasks are made harder or easier, by how often the agent passes them."""

    num_tasks: int = Field(default=420, ge=1, le=10_000_000)
    """How many tasks are tried; agents and personas follow from it. No part of an identity:
    raising it adds items and changes none."""

    @property
    def has_rounds(self) -> bool:
        """Whether pass rates are measured before curation."""
        return bool(self.difficulty.rounds) or self.curation.band is not None

    def roles_asked(self) -> dict[Role, RoleConfig]:
        """Those that the settings give something to do: no tool may be there that is played."""
        asked = super().roles_asked()
        return {role: own for role, own in asked.items() if role != "simulator" or self.plays}

    @property
    def plays(self) -> bool:
        """Whether a model is told to play tools. Those of domain files all have programs."""
        return bool(self.simulate.sources) or self.simulate.tools != "without_semantics"

    def in_small(self) -> Self:
        """The same run on a handful of items, played by the offline model: a dry run. It has a
        dataset of its own, so built-in domains stand in for evolved ones and imported sources, and
        for `all`, of which a handful of items uses few."""
        names = [BUILT_IN if n == "all" or is_evolved(n) else n for n in self.domains]
        if self.simulate.sources and not (names or self.servers or self.code):
            names = [BUILT_IN]
        return self.model_copy(
            update={
                "roles": {role: RoleConfig() for role in self.roles},
                "num_tasks": 24,
                "domains": tuple(dict.fromkeys(names)),
                "simulate": self.simulate.model_copy(update={"sources": ()}),
                "rollouts": self.rollouts.model_copy(update={"attempts": 1}),
                "difficulty": DifficultyConfig(),
                "curation": self.curation.model_copy(update={"band": None}),
                "shard_size": 8,
                "budget": BudgetConfig(),
            }
        )
