"""A run's configuration. Its defaults are the demo: built-in tools, the offline provider."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from records.config import Config
from records.digest import digest
from synth.agents import AgentConfig
from synth.calibration import JudgingConfig
from synth.curation import CurationConfig
from synth.evolved_domains import is_evolved
from synth.extensions import ExtensionFile
from synth.llm.config import BudgetConfig, RoleConfig
from synth.offline.settings import Misbehaviour, OfflineSettings
from synth.personas import PersonaConfig
from synth.rollout import RolloutConfig
from synth.simulator import SimulateConfig
from synth.tasks.stage import TaskConfig

Role = Literal["generator", "agent", "user", "simulator", "judge", "rewriter", "embedder"]

STAGES = (
    "tools",
    "agents",
    "screening",
    "personas",
    "tasks",
    "rollouts",
    "grading",
    "calibration",
    "curation",
)
"""Names of the stages in their order, as budgets and reports use them."""


class OfflineConfig(Config):
    """How the embedded provider behaves as an endpoint; what it answers is its model's matter."""

    misbehave: Misbehaviour = Misbehaviour()
    """Shares of requests that fail in declared ways, to see a run survive them."""
    latency_s: float = Field(default=0.0, ge=0.0, le=60.0)
    """Wait before each answer."""
    jitter_s: float = Field(default=0.0, ge=0.0, le=60.0)
    """Further wait of up to so long, drawn for each request."""

    def settings(self) -> OfflineSettings:
        return OfflineSettings(
            misbehave=self.misbehave, latency_s=self.latency_s, jitter_s=self.jitter_s
        )


class JobConfig(Config):
    """What a run of any kind is told of how it goes. What decides rows makes up its id."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = frozenset(
        [
            "name",
            "budget",
            "concurrency",
            "shard_size",
            "max_failed",
            "stage_seconds",
            "offline",
        ]
    )
    KIND: ClassVar[str] = "run"
    """Keeps runs of different kinds apart, whatever their settings."""
    STAGES: ClassVar[tuple[str, ...]] = ()
    """Names of the stages in their order, as budgets and reports use them."""
    DEFAULT_ROLES: ClassVar[dict[Role, RoleConfig]] = {}
    """The roles of the run, and who plays one that is not named: the offline provider."""

    name: str = Field(default="demo", pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")
    """Shown in the UI."""
    seed: int = Field(default=0, ge=0)
    """Another seed makes other draws everywhere, and so other rows."""
    roles: dict[Role, RoleConfig] = Field(default_factory=dict, validate_default=True)
    """Who plays what; a role that is not named is played by the offline provider."""
    budget: BudgetConfig = BudgetConfig()
    """Hard limits in USD and tokens. A run that meets one stops cleanly and can be resumed."""
    concurrency: int = Field(default=16, ge=1, le=4096)
    """Items in flight at once. A few more than an endpoint's `max_in_flight` (an eighth) keep it
    full while some items work on their tools."""
    shard_size: int = Field(default=30, ge=1, le=100_000)
    """Items a commit: small loses little work to a kill, large makes fewer files."""
    max_failed: float = Field(default=0.2, ge=0.0, le=1.0)
    """Share of a stage's items that may fail before the stage does."""
    stage_seconds: dict[str, float] = Field(default_factory=dict)
    """Wall clock after which a stage starts no further shard; what is left stays pending."""
    offline: OfflineConfig = OfflineConfig()
    """How the embedded provider behaves as an endpoint."""

    @model_validator(mode="after")
    def _every_role_is_played(self) -> Self:
        if unknown := sorted(self.roles.keys() - self.DEFAULT_ROLES.keys()):
            raise ValueError(
                f"roles has {', '.join(unknown)}; roles here: {', '.join(self.DEFAULT_ROLES)}"
            )
        roles = {role: self.roles.get(role, own) for role, own in self.DEFAULT_ROLES.items()}
        object.__setattr__(self, "roles", roles)  # frozen for everyone else
        for where in ("stage_seconds", "budget.stages"):
            named = self.stage_seconds if where == "stage_seconds" else self.budget.stages
            if unknown := sorted(named.keys() - set(self.STAGES)):
                raise ValueError(
                    f"{where} names no stage by {', '.join(unknown)}; "
                    f"stages: {', '.join(self.STAGES)}"
                )
        return self

    @property
    def run_id(self) -> str:
        """Digest of what decides rows: the same command in a fresh folder has the same id."""
        return digest(self.KIND, self.identity())


class JudgedConfig(JobConfig):
    """What a run is told that judges trajectories."""

    code: tuple[str, ...] = ("all",)
    """Built-in repositories and problem sets by name, `all` of them, or paths of definitions."""
    extensions: tuple[ExtensionFile, ...] = ()
    """Paths of Python files of your own that add kinds of criteria, and criteria to tasks."""
    judging: JudgingConfig = JudgingConfig()
    """How the judge is tried, and what it must reach for its word to count."""
    curation: CurationConfig = CurationConfig()
    """What is kept of the trajectories that pass their checks."""


class GradeConfig(JudgedConfig):
    """Grading what a dataset holds once more: by another judge, another rubric, newer checks."""

    KIND: ClassVar[str] = "grade"
    STAGES: ClassVar[tuple[str, ...]] = ("grading", "calibration", "curation")
    DEFAULT_ROLES: ClassVar[dict[Role, RoleConfig]] = {"judge": RoleConfig()}

    name: str = Field(default="grade", pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")
    """Shown in the UI."""


class RunConfig(JudgedConfig):
    """Everything a run of the pipeline is told."""

    NOT_IDENTITY: ClassVar[frozenset[str]] = JobConfig.NOT_IDENTITY | {"num_tasks", "workers"}
    STAGES: ClassVar[tuple[str, ...]] = STAGES
    DEFAULT_ROLES: ClassVar[dict[Role, RoleConfig]] = {
        role: RoleConfig() for role in ("generator", "agent", "user", "simulator", "judge")
    }

    domains: tuple[str, ...] = ("all",)
    """Built-in domains by name, `all` of them, paths of domain files, or domains that the dataset
    holds evolved tools of: `evolved` for all, `evolved:NAME` for one."""
    servers: tuple[str, ...] = ("all",)
    """Built-in MCP servers by name, `all` of them, or paths of server definitions."""
    simulate: SimulateConfig = SimulateConfig()
    """Which tools a model plays, and what stands in for servers that cannot run here."""
    personas: PersonaConfig = PersonaConfig()
    """Who the simulated users are."""
    agents: AgentConfig = AgentConfig()
    """Which tools an agent gets."""
    tasks: TaskConfig = TaskConfig()
    """How many tasks an agent is given and how complex they are."""
    rollouts: RolloutConfig = RolloutConfig()
    """Attempts at each task, and the limits of an episode."""

    workers: int = Field(default=0, ge=0, le=256)
    """Processes that make the tasks, rollouts and verdicts; 1: none beside the run's own; 0: one
    for each core, in stages with work enough for them."""
    num_tasks: int = Field(default=420, ge=1, le=10_000_000)
    """How many tasks are tried; agents and personas follow from it. No part of an identity:
    raising it adds items and changes none."""

    def in_small(self) -> Self:
        """The same run on a handful of items, played by the offline provider: a dry run. It has a
        dataset of its own, so built-in domains stand in for evolved ones and imported sources."""
        names = ["all" if is_evolved(name) else name for name in self.domains]
        if self.simulate.sources and not (names or self.servers or self.code):
            names = ["all"]
        return self.model_copy(
            update={
                "roles": {role: RoleConfig() for role in self.roles},
                "num_tasks": 24,
                "domains": tuple(dict.fromkeys(names)),
                "simulate": self.simulate.model_copy(update={"sources": ()}),
                "rollouts": self.rollouts.model_copy(update={"attempts": 1}),
                "shard_size": 8,
                "budget": BudgetConfig(),
            }
        )
