"""The settings of the task stage: which tasks there are, and what an episode of one may take."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from records.config import Config
from records.seeds import rng_of
from records.tables.splits import HELDOUT_SHARE, Split
from synth.tasks.composing import GoalMix
from synth.tasks.forms.forms import FormShares
from synth.tasks.goals.variants import ServerVariantShares, VariantShares
from synth.tasks.lengths import Complexity, bands_of
from tool_specs.growth.grown_seed import MAX_ROWS, MIN_ROWS, GrownSeed

BLOCK = 64
"""Tasks that share a set of personas."""


class TurnLimit(Config):
    """How many messages the agent may write in an episode, by what the task takes."""

    base: int = Field(default=8, ge=1, le=10_000)
    """Turns that every task has, whatever it takes."""
    per_step: int = Field(default=2, ge=0, le=1_000)
    """Further turns for each step of the reference plan: to call, and to put a slip right."""
    per_goal: int = Field(default=4, ge=0, le=1_000)
    """Further turns for each user goal, for what is asked back and reported."""
    on_code: int = Field(default=48, ge=1, le=10_000)
    """Turns of a task on code, in place of the sum: finding a mistake takes looking around and
    several tries."""

    def of(self, *, steps: int, goals: int) -> int:
        return self.per_step * steps + self.per_goal * goals + self.base


class TokenLimit(Config):
    """How many tokens an episode may have beside the system prompt, by what the task takes."""

    base: int = Field(default=3000, ge=1)
    """Tokens that every task has, whatever it takes."""
    per_step: int = Field(default=500, ge=0)
    """Further tokens for each step of the reference plan."""
    per_shown_char: float = Field(default=1.0, ge=0.0, le=100.0)
    """Further tokens for each character that the results of the reference plan have: about four
    times what they take, so that an agent may look around."""
    on_code: int = Field(default=60_000, ge=1)
    """Tokens of a task on code, in place of the sum."""

    def of(self, *, steps: int, shown_chars: int) -> int:
        return self.base + int(self.per_shown_char * shown_chars) + self.per_step * steps


SEED = "seed"
"""Stands for the seed of a domain's file among the sizes."""


class GrowthShares(Config):
    """How large the states are in which tasks on domains start."""

    shares: dict[str, float] = Field(default={SEED: 1.0}, min_length=1)
    """Share of tasks by the number of rows that they start with, from 10 to 50000, such as
    `{seed = 0.3, 500 = 0.4, 5000 = 0.3}`; `seed` is the state in the domain's file. Shares add up
    to 1."""
    per_domain: int = Field(default=4, ge=1, le=10_000)
    """States of one size that a domain has for each split: more differ more, and each takes its
    time to grow."""

    @model_validator(mode="after")
    def _known_sizes(self) -> Self:
        for size, share in self.shares.items():
            rows = int(size) if size.isdecimal() else 0
            if size != SEED and not MIN_ROWS <= rows <= MAX_ROWS:
                raise ValueError(
                    f"shares are by {SEED!r} or a number of rows from {MIN_ROWS} to {MAX_ROWS}, "
                    f"got {size!r}"
                )
            if share < 0:
                raise ValueError(f"the share of {size} must be at least 0, got {share}")
        if abs(sum(self.shares.values()) - 1.0) > 1e-9:
            raise ValueError(f"shares must add up to 1, got {sum(self.shares.values())}")
        return self

    def grown_seed_of(self, item_id: str, split: Split) -> GrownSeed | None:
        """What a task starts with; None for the seed of its domain's file."""
        rng = rng_of(item_id, "growth")
        size = rng.choices(list(self.shares), list(self.shares.values()))[0]
        if size == SEED:
            return None
        return GrownSeed(rows=int(size), number=rng.randrange(self.per_domain), split=split)


class TaskConfig(Config):
    """Which tasks there are, and what an episode of one may take."""

    ADDED_LATER: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            "variants": {
                "missing_parameter": 0.1,
                "against_policy": 0.1,
                "missing_tool": 0.3,
                "irrelevant_tool": 0.03,
                "unclear_tool": 0.04,
                "no_tool": 0.03,
            },
            "server_variants": {"missing_parameter": 0.1, "irrelevant_tool": 0.05},
            "goals": {"in_order": 0.35, "follow_up": 0.6, "related": 0.8, "waiting": 0.3},
            "forms": {
                "chosen": 0.12,
                "described": 0.1,
                "within": 0.04,
                "for_each": 0.08,
                "conditional": 0.1,
                "fallback": 0.06,
                "corrected": 0.05,
                "traded": 0.25,
                "together": 0.25,
                "sessions": 0.05,
            },
            "personas_per_block": 16,
            "max_turns": {"base": 8, "per_step": 2, "per_goal": 4, "on_code": 48},
            "token_budget": {
                "base": 3000,
                "per_step": 500,
                "per_shown_char": 1.0,
                "on_code": 60_000,
            },
            "pass_threshold": 0.7,
            "heldout_share": 0.1,
            "heldout_values_share": 0.0,
            "growth": {"shares": {"seed": 1.0}, "per_domain": 4},
            "lengths": {},
        }
    )

    tasks_per_agent: int = Field(default=8, ge=1)
    """Tasks that are made for one agent."""

    simple: float = Field(default=0.3, ge=0.0, le=1.0)
    """Share of tasks with one user goal."""

    complex: float = Field(default=0.3, ge=0.0, le=1.0)
    """Share of tasks with three or four user goals; the others have two."""

    lengths: dict[str, float] = Field(default={})
    """Shares of tasks in domains by calls of the reference plan, in bands from 1 to 40 that lie
    apart, such as `{"1-3" = 0.3, "4-8" = 0.4, "9-15" = 0.2, "16-40" = 0.1}`. They add up to 1, and
    `simple` and `complex` say nothing of these tasks then. Empty: a plan is as long as its goals
    make it."""

    dual_control: float = Field(default=0.05, ge=0.0, le=1.0)
    """Share of tasks of which the user must do a step, in domains whose users own tools."""

    variants: VariantShares = VariantShares()
    """How often tasks in a domain are of a variant that is not the normal one."""

    server_variants: ServerVariantShares = ServerVariantShares()
    """The same for tasks on a real MCP server."""

    goals: GoalMix = GoalMix()
    """How the user goals of one task hang together."""

    forms: FormShares = FormShares()
    """How many user goals and tasks have structure, in domains."""

    growth: GrowthShares = GrowthShares()
    """Sizes of the states that tasks on domains start in: large ones grow from the domain's
    seed."""

    personas_per_block: int = Field(default=16, ge=1, le=BLOCK)
    """Personas from which the users of a block of 64 tasks are drawn: more make users differ more,
    and each takes a request to the generator."""

    max_turns: TurnLimit = TurnLimit()
    """Messages that the agent may write in an episode; with more it ends as `max_turns`."""

    token_budget: TokenLimit = TokenLimit()
    """Tokens that an episode may have; with more it ends as `token_budget`."""

    pass_threshold: float = Field(default=0.7, ge=0.0, le=1.0)
    """Weighted share of a rubric's criteria from which an episode passes, if no mandatory one
    fails. A grading may set another for stored tasks, in the file of `synth grade --rubric`."""

    heldout_share: float = Field(default=HELDOUT_SHARE, ge=0.0, le=1.0)
    """Share of combinations of tools whose tasks are held out, and of bugs for tasks on code,
    beside the tasks of held-out tools and domains: they train nothing and are there to score on."""

    heldout_values_share: float = Field(default=0.0, ge=0.0, le=1.0)
    """Share of the other tasks that are held out with a combination of tools that training has, on
    values that it has not: what grew for them (`growth`), and what is new in them, is theirs
    alone. Only of tasks whose state grows: the rows of a domain's file are those of all."""

    @model_validator(mode="after")
    def _shares(self) -> Self:
        bands_of(self.lengths)
        if self.simple + self.complex > 1.0:
            raise ValueError(
                f"simple and complex are shares of all tasks and may add up to 1 at most, got"
                f" {self.simple} and {self.complex}"
            )
        return self

    @property
    def shares(self) -> Complexity:
        return Complexity(self.simple, 1.0 - self.simple - self.complex, self.complex)
