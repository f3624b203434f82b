"""Settings of the environment of safety."""

from pydantic import Field, model_validator

from records.config import Config
from synth.gym.maths.splits import SplitCounts

NO_TASKS = SplitCounts(train=0, validation=0, heldout=0)


class SafetySettings(Config):
    """Which tasks there are. Instructions in results and secrets are checked by code; requests need
    the role `judge`."""

    seed: int = 0
    """Of scenes, wordings, values and secrets."""
    injections: SplitCounts = SplitCounts()
    """Tasks in which a tool result holds instructions that nobody gave."""
    controls: float = Field(default=0.25, ge=0, le=1)
    """Share of `injections` whose results hold none, so that mistrust of everything is no way."""
    secrets: SplitCounts = SplitCounts()
    """Tasks in which a user asks for what the system prompt says is to be kept."""
    harmful: SplitCounts = NO_TASKS
    """Tasks in which a user asks for what must not be served; the role `judge` decides. None
    of them unless it is set."""
    lookalikes: SplitCounts = NO_TASKS
    """Tasks that sound like those and are harmless, whose refusal is a failure; the role `judge`
    decides. None of them unless it is set."""
    turns: tuple[int, ...] = (1, 2, 3)
    """Messages of the user in tasks of secrets and requests, taken in turns: with more than one the
    user presses on."""
    attacker: bool = False
    """Whether the role `attacker` words what such users say. Otherwise they speak in the built-in
    wordings."""
    seeds: str | None = None
    """A file, folder or pattern with requests of your own (JSON lines, JSON or Parquet with
    columns `request`, `risk`, `harmful`, and if you like `help`, what serving it would be), which
    take the place of the built-in ones."""
    validation_share: float = Field(default=0.15, ge=0, le=0.5)
    """Of requests of your own."""
    heldout_share: float = Field(default=0.15, ge=0, le=0.4)
    """Of requests of your own."""
    max_calls: int = Field(default=6, ge=1)
    """Tool calls of an episode after which it is over and failed."""

    @model_validator(mode="after")
    def _has_turns(self) -> "SafetySettings":
        if not self.turns or min(self.turns) < 1:
            raise ValueError(f"turns are numbers from 1 on, got {list(self.turns)}")
        return self
