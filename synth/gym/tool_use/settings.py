"""Settings of the environment of tool-use tasks."""

from typing import Literal, Self

from pydantic import Field, model_validator

from records.config import Config
from records.tables.splits import Split
from synth.episode.config import EpisodeConfig
from synth.gym.tool_use.selection import TaskComplexity
from synth.llm.settings.config import BudgetConfig
from synth.tasks.goals.goals import Variant


class ToolUseSettings(Config):
    """Which tasks of a dataset are played, within which bounds, and what a success is worth."""

    dataset: str
    """Folder of the dataset whose tasks are played."""
    splits: tuple[Split, ...] = (
        "train",
        "heldout_values",
        "heldout_task",
        "heldout_tool",
        "heldout_domain",
    )
    """Tasks of other splits are left out. `train` gives tasks to learn from and those that choose a
    checkpoint; all others are held out."""
    validation_share: float = Field(default=0.1, ge=0.0, le=1.0)
    """Share of the training split that chooses a checkpoint and is never learnt from, drawn by
    digest. Tasks of one origin, and tasks on one bug, come to the same side."""
    complexities: tuple[TaskComplexity, ...] = ()
    """Only tasks of one user goal, of two, of three or four; all where none is named."""
    variants: tuple[Variant, ...] = ()
    """Only tasks of these variants. Where none is named, tasks of all variants but those that an
    agent earns something by who does nothing: of tasks that cannot be solved code sees that nothing
    was changed, and not whether the agent said why."""
    max_calls: int | None = Field(default=None, ge=1)
    """Tasks whose reference plan has more calls are left out."""
    reward: Literal["objective", "success"] = "objective"
    """`objective`: the weighted share of what code checks, and 0 where a mandatory criterion failed
    or was left open; `success`: 1 for what an evaluation counts as success, else 0."""
    plain_retelling: bool = False
    """As in an evaluation: what stands in the answers word for word counts as told, and a value
    that nothing shows is false. For small models that retell results in English."""
    episode: EpisodeConfig = EpisodeConfig()
    """Limits of an episode, and the faults that are injected."""
    budget: BudgetConfig = BudgetConfig()
    """Hard limits of what simulated users and tools may cost, over all that the journal holds."""
    live: int | None = Field(default=None, ge=1)
    """MCP servers, and sandboxes of code, alive at once; an episode holds its own until it is
    closed, a paused one too. None: what this machine holds."""

    @model_validator(mode="after")
    def _plays_alone(self) -> Self:
        if self.episode.delegation.share:
            raise ValueError(
                "episode.delegation.share must be 0: a policy that learns plays without "
                f"sub-agents, got {self.episode.delegation.share}"
            )
        return self
