"""The steps of a training run, one after another: where it is, and what it keeps of it.

Shape suffixes in this file: B = rows, T = tokens.
"""

import logging
import math
import resource
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from records.errors import ConfigError, SynthError
from trainer.data.packing import PADDING, DataPosition, PackedBatch, Packer
from trainer.data.tokenizer import Tokenizer
from trainer.model.decoder import Decoder
from trainer.model.size import train_flops_per_token
from trainer.optim.muon import optimizer_of, set_lr
from trainer.training.checkpoints import (
    checkpoint_of,
    checkpoints_in,
    load_checkpoint,
    remove_old,
    save_checkpoint,
)
from trainer.training.ending import BadSteps, diverged, failed, infinite_weights
from trainer.training.metrics import MetricsLine, column, read_metrics
from trainer.training.plan import Plan, learning_rates, plan_from, plan_of
from trainer.training.run_folder import CHECKPOINTS
from trainer.training.settings import TrainConfig
from trainer.training.step import AFTER, Stepper, StepResult
from trainer.training.validation import Best, SplitCorpus, ValidationRows, best_of

log = logging.getLogger(__name__)

PEAK_FLOPS = {"H100": 989e12, "H800": 989e12, "H200": 989e12, "A100": 312e12}
"""bf16 without sparsity, by a part of the GPU's name."""


class TrainingRun:
    """The loop's state: how far it is, and where in the data."""

    def __init__(
        self,
        config: TrainConfig,
        model: Decoder,
        corpus: str,
        split: SplitCorpus,
        tokenizer: Tokenizer,
        device: torch.device,
    ) -> None:
        """`corpus` is the fingerprint of what was split."""
        self.config, self.model, self.device, self.corpus = config, model, device, corpus
        pad, row_tokens = tokenizer.special["[PAD]"], config.row_tokens
        self.packer = Packer(split.training, row_tokens, config.seed, pad)
        self.validator: ValidationRows | None = None
        if split.validation is not None:
            self.validator = ValidationRows(
                Packer(split.validation, row_tokens, 0, pad),
                most_rows=config.validation.rows,
                micro_rows=config.micro_rows,
            )
        self.optimizer = optimizer_of(model, config.optimizer, lr=config.peak_lr)
        self.stepper = Stepper(model, self.optimizer, config)
        self.done, self.saved, self.place, self.tokens = 0, 0, DataPosition(), 0
        self.loss = math.nan
        self.validation_loss: float | None = None
        """Of the last step; None where it was not measured."""
        self.bad = BadSteps()
        self.best: Best | None = None
        self.plan: Plan = ()
        self._resume()
        self.plan = plan_of(config, self.plan, self.done)
        self.rates = learning_rates(config, self.plan)
        if config.schedule is None and config.steps < (planned := self.plan[-1].steps):
            log.info("ends at step %d of %d, without the rest of its decay", config.steps, planned)

    @property
    def stopped_early(self) -> bool:
        """Whether validations that were no better have ended it."""
        patience = self.config.validation.early_stop
        return patience is not None and self.best is not None and self.best.since >= patience

    @property
    def _best_checkpoint(self) -> Path | None:
        """Of the weights that are to be exported in place of the last; None: the last are."""
        if self.config.validation.early_stop is None or self.best is None:
            return None
        return checkpoint_of(self.config.folder / CHECKPOINTS, self.best.step)

    @property
    def _loss_at_end(self) -> float:
        """Of the weights that are to be exported, or of those before the last step."""
        if self._best_checkpoint is not None and self.best is not None:
            return self.best.loss
        return self.loss if self.validation_loss is None else self.validation_loss

    @property
    def _first_loss(self) -> float | None:
        """None where it was no number."""
        points = column(read_metrics(self.config.folder)[:1], "loss")
        return points[0][1] if points else None

    @property
    def ended(self) -> bool:
        return self.stopped_early or self.done >= self.config.steps

    def lines(self) -> Iterator[MetricsLine]:
        """Take the steps that are left, a line of metrics each. SynthError when too many of them
        are bad."""
        batches = self.packer.batches(self.config.data.batch_rows, self.place)
        while not self.ended:
            begun = time.perf_counter()
            batch, place = next(batches)
            lr = self.rates.lr_at((self.done + 1) * self.config.step_tokens)
            set_lr(self.optimizer, lr)
            result = self.stepper.step(batch)
            if result.skipped and self.config.bad_step == "stop":
                raise SynthError(
                    f"step {self.done + 1}, rows before {tuple(place)} of the data: "
                    f"{result.why_skipped}; the last checkpoint is kept, bad_step = 'skip' goes on"
                )
            seconds = time.perf_counter() - begun
            self.done, self.place = self.done + 1, place
            self.bad.add(result)
            self.loss = result.loss
            better = self._validate()
            yield self._line(result, lr, seconds, batch)
            if len(self.bad) >= self.config.max_bad_steps:
                raise failed(self.config.folder, self.done, self.bad.words)
            every = self.config.checkpoint_every
            due = self.done // every > self.saved // every or better
            if due and not self.bad:  # behind a skipped step the one before is as good
                self.save()

    def end(self) -> None:
        """Save what the run came to; SynthError where it came to nothing that can be used."""
        measured = self.validation_loss
        why = infinite_weights(self.model)
        if self.bad.end_badly:
            why = f"{self.bad.words} as it came to its end"
        elif why is None and measured is not None and not math.isfinite(measured):
            why = f"its validation loss is {measured}"
        why = why or diverged(self._loss_at_end, self._first_loss, self.model.config.vocab_size)
        if why is not None:
            raise failed(self.config.folder, self.done, why)
        self.save()

    def take_best(self) -> int:
        """Fill the model with the weights that are to be exported; their step."""
        if self._best_checkpoint is None:
            return self.done
        return load_checkpoint(self._best_checkpoint, self.model, self.optimizer)["step"]

    def save(self) -> None:
        if (why := infinite_weights(self.model)) is not None:
            raise failed(self.config.folder, self.done, why)
        state = {
            "step": self.done,
            "place": list(self.place),
            "norms": list(self.stepper.norms),
            "corpus": self.corpus,
            "tokens": self.tokens,
            "loss": self.loss,
            "validation_loss": self.validation_loss,
            "bad": self.bad.reasons,
            "best": self.best,
            "plan": self.plan,
        }
        folder = self.config.folder / CHECKPOINTS
        folder.mkdir(parents=True, exist_ok=True)
        save_checkpoint(folder, self.model, self.optimizer, state, step=self.done)
        self.saved = self.done
        remove_old(folder, keep=self.config.keep, spare=self._best_checkpoint)

    def _resume(self) -> None:
        found = checkpoints_in(self.config.folder / CHECKPOINTS)
        if not found:
            return
        state = load_checkpoint(found[-1], self.model, self.optimizer)
        if state["corpus"] != self.corpus:
            raise ConfigError(f"{found[-1]} was trained on other data than {self.config.out} has")
        self.done, self.place = state["step"], DataPosition(*state["place"])
        self.saved, self.tokens, self.plan = self.done, state["tokens"], plan_from(state["plan"])
        self.stepper.norms.extend(state["norms"])
        self.bad = BadSteps(state["bad"])
        self.loss, self.validation_loss = state["loss"], state["validation_loss"]
        self.best = Best(*state["best"]) if state["best"] else None
        if self._best_checkpoint is not None and not self._best_checkpoint.is_dir():
            self.best = None  # it was not kept, as early_stop was not set then
        log.info("going on from step %d: %s", self.done, found[-1])

    def _validate(self) -> bool:
        """Measure, where it is due; whether the weights have to be kept as the best."""
        self.validation_loss = None
        every = self.config.validate_every
        due = self.done == self.config.steps or (self.done % every == 0 and not self.bad)
        if self.validator is None or not due:
            return False
        self.validation_loss = self.validator.loss(self.model)
        self.best = best_of(self.best, self.done, self.validation_loss)
        better = self.best is not None and self.best.step == self.done
        return better and self._best_checkpoint is not None

    def _line(
        self, result: StepResult, lr: float, seconds: float, batch: PackedBatch
    ) -> MetricsLine:
        lengths = document_lengths(batch)
        tokens, squares = lengths.sum().item(), lengths.square().sum().item()
        self.tokens += tokens
        flops = train_flops_per_token(self.model.config, round(squares / tokens))
        peak = _peak_flops(self.device)
        unknown = dict.fromkeys(AFTER) if result.skipped else {}
        return {
            "step": self.done,
            "tokens": self.tokens,
            "schedule_tokens": self.done * self.config.step_tokens,
            "padding": 1 - tokens / self.config.step_tokens,
            "lr": lr,
            **asdict(result),
            **unknown,
            "validation_loss": self.validation_loss,
            "tokens_per_s": tokens / seconds,
            "memory_gib": _memory_gib(self.device),
            "mfu": tokens / seconds * flops / peak if peak else None,
        }


def document_lengths(batch: PackedBatch) -> Tensor:
    """Tokens of each document, or part of one, in the rows."""
    documents_BT = batch.documents_BT
    rows_B1 = torch.arange(len(documents_BT))[:, None]
    numbers_BT = rows_B1 * documents_BT.shape[1] + documents_BT
    return torch.unique(numbers_BT[documents_BT != PADDING], return_counts=True)[1]


def _peak_flops(device: torch.device) -> float | None:
    """Of a GPU that we know; a CPU's share of its peak says little."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for part, peak in PEAK_FLOPS.items() if part in name), None)


def _memory_gib(device: torch.device) -> float:
    """Highest so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
