"""What a training run is told. The same model serves files, the command line and flows."""

from pathlib import Path
from typing import Literal, Self

import torch
from pydantic import Field, model_validator

from records.chat.declarations import Style
from records.chat.k2 import KIMI
from records.config import Config
from trainer.data.documents import ReasoningUse
from trainer.data.row_length import Longer
from trainer.data.sources import CorpusConfig, ViewName
from trainer.model.config import PRESETS, TransformerConfig
from trainer.model.size import size_of
from trainer.optim.loss import tokens_at_a_time
from trainer.optim.muon import OptimizerConfig
from trainer.optim.schedule import DECAY, RateExtension, Schedule, wsd
from trainer.training.devices import Device, refuse_what_does_not_fit, weight_dtype

VALIDATIONS = 20
"""Of a run, where nothing else is said."""


class DataConfig(Config):
    sources: tuple[CorpusConfig, ...] = Field(min_length=1)
    """What is learnt from."""
    tokenizer: str | None = None
    """Folder with a `tokenizer.json`; None: that of the model it starts from, or byte-level BPE
    trained on the sources."""
    declarations: Style = "json"
    """How tools are declared; TypeScript takes far fewer tokens."""
    system: str = KIMI
    """System message of a conversation that has none, by default that of Kimi K2; empty: it stays
    without. An exported model's template writes the same."""
    reasoning: ReasoningUse = "learn"
    """What becomes of an answer's `reasoning_content` (or `reasoning`, or `<think>...</think>`
    before its content): it is learnt, as Kimi K2-Thinking writes it; it is kept in the context and
    not learnt; it is cut. Nothing is different where no row has any."""
    row_tokens: int | None = Field(default=None, ge=8)
    """Tokens of a packed row. None: the smallest multiple of 64 that holds every conversation, or
    99% of them where the longest is more than twice as long, within what the model and the memory
    take; 1,024 for texts alone. Texts are cut into rows."""
    longer: Longer = "refuse"
    """What becomes of a conversation that is longer than a row. refuse: it is left out and counted;
    cut: it is cut behind the last answer that fits, and left out where none does. The run is
    refused where either leaves out more than a tenth of them. leave_out: however many."""
    batch_rows: int = Field(default=16, ge=1)
    """Rows of a step."""
    micro_rows: int | None = Field(default=None, ge=1)
    """Rows of one forward pass; changes memory and time, no gradient. None: as many as the memory
    takes, four at most."""


class ValidationConfig(Config):
    share: float = Field(default=0.02, ge=0.0, le=0.5)
    """Part of the documents that is never learnt from, by a digest of their ids. At least one of
    ten or more documents; 0: no validation."""
    every: int | None = Field(default=None, ge=1)
    """Steps between validations, besides the one at the end; None: a twentieth of the steps."""
    rows: int = Field(default=64, ge=1)
    """Packed rows that a validation looks at, at most, always the same ones."""
    early_stop: int | None = Field(default=None, ge=1)
    """End the run after so many validations in a row without a better loss, and export the best
    validated weights rather than the last; None: neither."""

    @model_validator(mode="after")
    def _stops_by_something(self) -> Self:
        if self.early_stop is not None and not self.share:
            raise ValueError(
                f"early_stop = {self.early_stop} needs a validation loss; set share above 0"
            )
        return self


class TrainConfig(Config):
    """One run of pretraining or fine-tuning."""

    stage: ViewName = "sft"
    """Which view of our datasets is learnt from; the command, or the flow, sets it."""
    out: str
    """Folder of the run: checkpoints, metrics, curves, the finished model."""
    data: DataConfig
    """What is learnt from, and how it is cut into steps."""
    preset: str | None = "tiny"
    """Shape of a new model, by name; its vocabulary is the tokenizer's."""
    shape: TransformerConfig | None = None
    """A shape of your own, instead of a preset."""
    start_from: str | None = None
    """Folder of an exported model to go on from, instead of a new one."""
    steps: int = Field(default=200, ge=1, le=10_000_000)
    """Optimizer steps in all. Fewer than a run began with end it sooner, at the rates that it began
    with; for more, see `extend`."""
    extend: RateExtension | None = None
    """For a run that goes on with more `steps` than it had: hold keeps its last learning rate,
    redecay rises to peak_lr and decays again over the new steps. None: more steps are refused, as
    nothing says what their rate is. With a `schedule`, that says it."""
    peak_lr: float = Field(default=2e-3, gt=0.0)
    """Highest learning rate, where no `schedule` is given."""
    decay: float = Field(default=DECAY, gt=0.0, le=0.9)
    """Share of the steps over which the rate falls, where no `schedule` is given."""
    schedule: Schedule | None = None
    """By tokens. None: warm-up over 2% of the steps, constant, a cosine over `decay` of them."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """Muon for matrices, AdamW for the rest."""
    clip_norm: float = Field(default=1.0, gt=0.0)
    """Largest norm of the gradient."""
    qk_clip_tau: float | None = Field(default=100.0, gt=0.0)
    """Attention logits above this have their heads clipped; None: none is."""
    balance_rate: float = Field(default=1e-3, ge=0.0)
    """How fast router biases even out the experts' loads; 0 in an annealing phase."""
    balance_loss: float = Field(default=0.0, ge=0.0)
    """Weight of the sequence balance loss."""
    bad_step: Literal["skip", "stop"] = "skip"
    """On a loss or gradient that is no number, or a spike."""
    max_bad_steps: int = Field(default=10, ge=1)
    """After so many skipped steps in a row the run fails, and exports nothing."""
    spike: float = Field(default=20.0, gt=1.0)
    """A gradient norm so many times the median of the last 100 is a spike."""
    recompute: bool = False
    """Run layers again for the gradients instead of keeping what is inside them."""
    validation: ValidationConfig = ValidationConfig()
    """The loss on documents that are not learnt from, as the run goes on."""
    checkpoint_every: int = Field(default=100, ge=1)
    """Steps between checkpoints; there is one at the end, too, and none behind a skipped step."""
    keep: int = Field(default=2, ge=1)
    """Checkpoints that are kept."""
    seed: int = Field(default=0, ge=0)
    """Of the first weights and of the order of rows."""
    device: Device = "auto"
    """auto: a GPU where torch sees one."""

    @model_validator(mode="after")
    def _one_start(self) -> Self:
        if self.preset is not None and self.preset not in PRESETS:
            raise ValueError(f"preset = {self.preset!r}; presets: {', '.join(PRESETS)}")
        if self.preset is None and self.shape is None and self.start_from is None:
            raise ValueError("none of preset, shape and start_from says what model to train")
        if self.shape is not None and self.preset not in (None, "tiny"):
            raise ValueError(
                f"preset = {self.preset!r} and a shape are both given; set one of them"
            )
        if self.start_from is not None and (self.shape or self.preset not in (None, "tiny")):
            raise ValueError("start_from brings its own shape; leave out preset and shape")
        if self.schedule is not None and self.extend is not None:
            raise ValueError(
                f"extend = {self.extend!r} and a schedule are both given; the schedule's last rate "
                "holds beyond its end, so leave out extend"
            )
        if any(source.held_out for source in self.data.sources):
            raise ValueError("data.sources: held_out rows are for scoring; set held_out = false")
        if self.data.batch_rows % (self.data.micro_rows or 1):
            raise ValueError(
                f"data.batch_rows = {self.data.batch_rows} must be a multiple of data.micro_rows "
                f"= {self.data.micro_rows}"
            )
        return self

    @property
    def new_shape(self) -> TransformerConfig:
        """Of a model that does not start from another."""
        return self.shape or PRESETS[self.preset or ""]

    @property
    def row_tokens(self) -> int:
        """Of a run that knows its rows: see `trainer.training.rows`."""
        assert self.data.row_tokens is not None
        return self.data.row_tokens

    @property
    def micro_rows(self) -> int:
        """Likewise."""
        assert self.data.micro_rows is not None
        return self.data.micro_rows

    @property
    def step_tokens(self) -> int:
        """Of a step's rows, padding included: what schedules go by."""
        return self.data.batch_rows * self.row_tokens

    @property
    def learning_rates(self) -> Schedule:
        """Of a run that begins with these settings."""
        return self.schedule or wsd(self.peak_lr, self.steps * self.step_tokens, decay=self.decay)

    @property
    def validate_every(self) -> int:
        return self.validation.every or -(-self.steps // VALIDATIONS)

    @property
    def folder(self) -> Path:
        return Path(self.out)


def bytes_needed(config: TrainConfig, model: TransformerConfig, device: torch.device) -> int:
    """Memory of a step, estimated: weights, masters, gradients, optimiser state, activations of
    one forward pass. Meant to be right within a third or so, and to refuse what cannot fit."""
    parameters = size_of(model).total
    weight = weight_dtype(device).itemsize
    masters = 4 if device.type == "cuda" else 0
    gradients = 4  # fp32, whatever the weights are
    state = 4.5 if config.optimizer.muon else 8
    tokens = config.micro_rows * config.row_tokens
    inner = (model.experts_per_token + model.num_shared_experts) * model.moe_intermediate_size
    kept = 12 * model.hidden_size + 3 * max(inner, model.intermediate_size)
    kept += 4 * model.num_heads * model.qk_head_dim
    if device.type == "cpu":  # the weights of attention, at most all of them
        kept += model.num_heads * config.row_tokens
    layers = 1 if config.recompute else model.num_layers
    # logits of a stretch, and the gradient of the head that is added up over the stretches
    logits = (2 * min(tokens, tokens_at_a_time(device)) + model.hidden_size) * model.vocab_size * 4
    activations = tokens * kept * layers * weight + logits
    return int(parameters * (weight + gradients + masters + state) + activations)


def check_memory(config: TrainConfig, model: TransformerConfig, device: torch.device) -> int:
    """The estimate in bytes; ConfigError when the device has less."""
    needed = bytes_needed(config, model, device)
    refuse_what_does_not_fit(
        needed,
        device,
        what="a step",
        instead="lower data.micro_rows or data.row_tokens, set recompute, or choose a smaller "
        "preset",
    )
    return needed
