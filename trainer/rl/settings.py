"""What a run of reinforcement learning is told. The same model serves files, the command line and
the flow. The report gives no values: defaults are ours."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from records.config import Config
from sandboxes.lending.places import SandboxesConfig
from synth.gym.coverage import CoverageSettings
from synth.gym.difficulty import ModerateBand
from synth.gym.registry import GymConfig
from trainer.data.sources import CorpusConfig
from trainer.inference.drawing import Sampling
from trainer.rl.critic.settings import CriticSettings
from trainer.rl.objective.settings import LearningSettings
from trainer.rl.rollouts.settings import RolloutSettings
from trainer.training.devices import Device


class ChoiceSettings(Config):
    """Which tasks an iteration plays: of moderate difficulty for the policy as it is."""

    tasks: int = Field(default=16, ge=1)
    """Tasks that an iteration asks for."""
    band: ModerateBand = ModerateBand()
    """Which are moderate, by the samples of the last time. Others rest."""
    rest: int = Field(default=10, ge=0)
    """Iterations that a task rests which is too hard or too easy: then the policy is another. 0:
    none rests."""
    coverage: CoverageSettings = CoverageSettings()
    """How far tasks about what few are about are raised."""


class TestSettings(Config):
    """What is measured as the run goes on, and at its end."""

    every: int | None = Field(default=5, ge=1)
    """Iterations between validations, besides the first and the last: tasks of the validation
    share, which nothing is learnt from, choose the checkpoint. None: the last weights are
    exported."""
    tasks: int = Field(default=32, ge=1)
    """Tasks of each family at most, by digest: always the same ones."""
    samples: int = Field(default=1, ge=1)
    """Episodes of each."""
    temperature: float = Field(default=0.0, ge=0.0, le=10.0)
    """0 takes the likeliest token; more than one sample needs more."""
    heldout: bool = True
    """Whether held-out tasks are scored: once, at the end, by the weights that are exported and by
    those that the run began with."""

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if self.samples > 1 and not self.temperature:
            raise ValueError(
                f"samples = {self.samples} at temperature 0 are all the same; set a temperature"
            )
        return self


class RLConfig(Config):
    """One run of reinforcement learning."""

    out: str
    """Folder of the run: rollouts, checkpoints, metrics, curves, the finished model."""
    start_from: str
    """Folder of a model that speaks the chat format: a finished fine-tuning, or an exported
    model."""
    iterations: int = Field(default=20, ge=1)
    """Of rollouts and learning. More than a run had let it go on; fewer end it sooner."""
    seed: int = Field(default=0, ge=0)
    """Of tasks, draws and the order of steps."""
    gym: GymConfig
    """The environments whose tasks are played."""
    sandboxes: SandboxesConfig = SandboxesConfig()
    """Where their code and servers run. On a cluster `live` is by default `rollouts.in_flight`."""
    choice: ChoiceSettings = ChoiceSettings()
    """Which of their tasks an iteration plays."""
    rollouts: RolloutSettings = RolloutSettings()
    """How they are played."""
    learning: LearningSettings = LearningSettings()
    """What is learnt from them."""
    critic: CriticSettings = CriticSettings()
    """How answers are ranked that no code can reward."""
    good: tuple[CorpusConfig, ...] = ()
    """Conversations that are learnt beside the samples, by `learning.ptx`."""
    good_row_tokens: int = Field(default=1024, ge=8)
    """Tokens of a packed row of theirs; longer conversations are left out."""
    test: TestSettings = TestSettings()
    """What is measured."""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    """Only the likeliest tokens that make up this share are drawn from."""
    answer_tokens: int = Field(default=1024, ge=1)
    """Tokens of one answer at most. Best above `rollouts.token_budget`: an episode that ends by its
    budget is learnt from as truncated, and an answer that runs to this limit is `endless`."""
    constrained: bool = False
    """Only answers that keep the template and call declared tools can be written."""
    slots: int = Field(default=32, ge=1, le=1024)
    """Conversations whose cache is kept at a time."""
    slot_tokens: int | None = Field(default=None, ge=2)
    """Tokens that a conversation may have; None: what the model takes."""
    draw_threads: int | None = Field(default=None, ge=1)
    """Threads of the CPU while tokens are drawn; None: as many as learn. One draws a small model's
    faster: its operations take less time than threads take to meet."""
    max_bad_steps: int = Field(default=10, ge=1)
    """After so many skipped steps in a row the run fails, and exports nothing."""
    max_lost_iterations: int = Field(default=3, ge=1)
    """After so many iterations in a row whose episodes were all lost the run fails, and exports
    nothing."""
    checkpoint_every: int = Field(default=1, ge=1)
    """Iterations between checkpoints; there is one at the end, and at every best validation."""
    keep: int = Field(default=2, ge=1)
    """Checkpoints that stay, besides the best validated one."""
    device: Device = "auto"
    """auto: a GPU where torch sees one."""

    @model_validator(mode="after")
    def _has_what_it_learns(self) -> Self:
        if self.choice.band.k > self.rollouts.samples:
            raise ValueError(
                f"choice.band.k = {self.choice.band.k} is above rollouts.samples = "
                f"{self.rollouts.samples}: no task would be judged; lower the one or raise the "
                "other"
            )
        if bool(self.good) != (self.learning.ptx.weight > 0):
            raise ValueError(
                f"good names {len(self.good)} sources and learning.ptx.weight is "
                f"{self.learning.ptx.weight}: conversations are learnt beside the samples where "
                "both are given, and neither does anything alone"
            )
        return self

    @property
    def folder(self) -> Path:
        return Path(self.out)

    def sampling_at(self, iteration: int) -> Sampling:
        """How the samples of an iteration are drawn."""
        return Sampling(
            temperature=self.learning.temperature.at(iteration),
            top_p=self.top_p,
            max_tokens=self.answer_tokens,
        )

    @property
    def test_sampling(self) -> Sampling:
        return Sampling(temperature=self.test.temperature, max_tokens=self.answer_tokens)
