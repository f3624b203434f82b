"""What learning from rewards is told.

The report names the knobs and gives no value of any but the optimiser's; a default that is "ours"
was chosen here.
"""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from records.config import Config
from trainer.optim.muon import OptimizerConfig


class SquaredSettings(Config):
    """The report's form, over whole samples (`trainer.rl.objective.objectives.squared`)."""

    kind: Literal["squared"] = "squared"
    """Which objective this is."""
    tau: float = Field(default=0.1, gt=0.0)
    """How much a nat of log-ratio weighs against reward: what holds the policy to the one that drew
    the samples. It holds nothing in the first step on fresh samples, whose log-ratios are 0: there
    it only scales the gradient, and Muon's update is the same for every scale. So it takes more
    `minibatches` or `epochs`, or stale samples, for it to matter. 0.1 is ours."""


class MaskedSettings(Config):
    """The form of Kimi K2.5, token by token (`trainer.rl.objective.objectives.masked`)."""

    kind: Literal["masked"] = "masked"
    """Which objective this is."""
    tau: float = Field(default=0.01, ge=0.0)
    """Weight of the squared log-ratio of each token. 0.01 is ours."""
    lowest: float = Field(default=-0.5, le=0.0)
    """Log-ratio, in nats, below which a token's reward moves nothing. -0.5 is ours."""
    highest: float = Field(default=0.5, ge=0.0)
    """The same for those above. 0.5 is ours."""


class GrpoSettings(Config):
    """Clipped ratios (`trainer.rl.objective.objectives.grpo`)."""

    kind: Literal["grpo"] = "grpo"
    """Which objective this is."""
    clip_low: float = Field(default=0.2, gt=0.0, lt=1.0)
    """A ratio counts as 1 - clip_low at least, where more would lower the loss. 0.2 is ours, as
    usual."""
    clip_high: float = Field(default=0.2, gt=0.0)
    """A ratio counts as 1 + clip_high at most, likewise."""
    normalise: bool = False
    """Divide a group's advantages by the standard deviation of its rewards. Off is ours: it makes
    much of small differences."""
    average: Literal["sample", "token"] = "sample"
    """Mean over the tokens of each sample, then over samples; or over all tokens at once."""
    kl_weight: float = Field(default=0.0, ge=0.0)
    """Of the distance from a reference model, which the learner is then given. 0: there is none,
    which is ours."""
    unbiased_kl: bool = False
    """Weigh each token's distance by its ratio, so that the gradient is that of the divergence."""


ObjectiveSettings = Annotated[
    SquaredSettings | MaskedSettings | GrpoSettings, Field(discriminator="kind")
]


class FamilyBudget(Config):
    """What it costs a sample of one task family to meet its limit."""

    penalty: float = Field(default=0.5, ge=0.0)
    """Taken from the reward of a sample that was cut. 0.5 is ours."""


class BudgetSettings(Config):
    """Budget control: what meeting a limit costs, by task family. The limits, which cut a sample,
    are those of the rollouts: `token_budget` and `token_budgets`."""

    default: FamilyBudget = FamilyBudget()
    """Of families that are not named."""
    families: dict[str, FamilyBudget] = Field(default_factory=dict)
    """By task family."""

    def of(self, family: str) -> FamilyBudget:
        return self.families.get(family, self.default)


class TemperatureSettings(Config):
    """The temperature that samples are drawn at: from exploring to making use of what was found."""

    start: float = Field(default=1.0, gt=0.0, le=10.0)
    """In the first iteration. 1 is ours."""
    end: float = Field(default=0.7, gt=0.0, le=10.0)
    """In the last one, and behind it. 0.7 is ours."""
    iterations: int = Field(default=50, ge=1)
    """From the first to the last of the way. 50 is ours."""
    shape: Literal["constant", "linear", "cosine"] = "cosine"
    """Way from start to end; constant stays at start. Cosine is ours."""

    def at(self, iteration: int) -> float:
        """Of an iteration; they count from 0."""
        share = min(1.0, iteration / max(1, self.iterations - 1))
        match self.shape:
            case "constant":
                return self.start
            case "linear":
                return self.start + (self.end - self.start) * share
            case "cosine":
                return self.end + (self.start - self.end) * (1 + math.cos(math.pi * share)) / 2


class PtxSettings(Config):
    """Good conversations that are learnt beside the samples, against forgetting."""

    weight: float = Field(default=0.0, ge=0.0)
    """Of their cross-entropy in nats a learnt token, beside the objective's loss as it is: the
    gradient of the squared form has 2 tau as a factor, so there a small weight does much. 0: none
    are learnt, which is ours."""
    rows: int = Field(default=4, ge=1)
    """Packed rows of a step. 4 is ours."""


class LearningSettings(Config):
    """How an iteration's samples move the weights."""

    objective: ObjectiveSettings = SquaredSettings()
    """What is made small."""
    budget: BudgetSettings = BudgetSettings()
    """What it costs a sample to be cut."""
    temperature: TemperatureSettings = TemperatureSettings()
    """What samples are drawn at."""
    ptx: PtxSettings = PtxSettings()
    """What is learnt beside them."""
    entropy_weight: float = Field(default=0.0, ge=0.0)
    """Of the mean entropy of the drawn tokens' distributions, in nats, which is taken from the
    loss. 0: it is only measured, which is ours."""
    without_signal: Literal["leave_out", "keep"] = "leave_out"
    """Samples of a group whose rewards are all equal, or that is alone in its group. leave_out:
    they cost no pass and move nothing; keep: they hold the policy to where it was, or to the
    reference. Ours."""
    epochs: int = Field(default=1, ge=1)
    """How often an iteration's samples are gone through. 1 is ours."""
    minibatches: int = Field(default=1, ge=1)
    """Steps of an epoch, each on other groups; fewer where there are fewer groups. 1 is ours."""
    row_tokens: int | None = Field(default=None, ge=8)
    """Tokens of a packed row. None: as many as the longest sequence of a step has, and with rows of
    more it is refused."""
    micro_rows: int = Field(default=4, ge=1)
    """Rows of one forward pass, and more where one sample fills more; changes memory and time, no
    gradient."""
    replay_routes: bool = True
    """Send tokens to the experts that the sampler sent them to, where it kept them."""
    lr: float = Field(default=1e-4, gt=0.0)
    """Learning rate, constant. 1e-4 is ours."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """Muon for matrices, AdamW for the rest, as everywhere in the report."""
    clip_norm: float = Field(default=1.0, gt=0.0)
    """Largest norm of the gradient."""
    qk_clip_tau: float | None = Field(default=100.0, gt=0.0)
    """Attention logits above this have their heads clipped; None: none is."""
    balance_rate: float = Field(default=0.0, ge=0.0)
    """How fast router biases even out the experts' loads. 0 is ours: a moved bias changes the
    policy, and no reward asked for it."""
    balance_loss: float = Field(default=0.0, ge=0.0)
    """Weight of the sequence balance loss."""
    spike: float = Field(default=20.0, gt=1.0)
    """A gradient norm so many times the median of the last 100 is a spike; its step is skipped."""
    recompute: bool = False
    """Run layers again for the gradients instead of keeping what is inside them."""

    @model_validator(mode="after")
    def _kept_for_something(self) -> Self:
        clipped = isinstance(self.objective, GrpoSettings)
        moved = not clipped or self.has_reference or self.entropy_weight
        if self.without_signal == "keep" and not moved:
            raise ValueError(
                "without_signal = 'keep': grpo moves nothing by such samples; set kl_weight or "
                "entropy_weight above 0, or leave them out"
            )
        return self

    @property
    def has_reference(self) -> bool:
        """Whether the objective compares with a reference model."""
        return isinstance(self.objective, GrpoSettings) and self.objective.kl_weight > 0
