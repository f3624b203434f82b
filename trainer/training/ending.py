"""How a run ends: with a model of its own, or with an error that says why there is none."""

import json
import math
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from records.errors import SynthError
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import Tokenizer
from trainer.model.decoder import Decoder
from trainer.model.exchange import export_model
from trainer.training.checkpoints import STATE, checkpoints_in
from trainer.training.run_folder import CHECKPOINTS, MODEL
from trainer.training.step import FAULTS, StepResult

ENDS_BADLY = 2
"""Skipped steps at the end of a run from which it fails. One spike says little of the weights; two
in a row say that the run has not come back from it."""

WORSE_THAN_GUESSING = 1.0
"""Nats a learnt token over the loss of guessing from which a run has diverged."""


@dataclass(frozen=True)
class Trained:
    folder: Path
    steps: int
    """That were taken or skipped in all."""
    loss: float
    """Of the last step; NaN where it was no number."""
    begun: int
    """The step that this process went on from; 0 for a new run."""
    exported: int
    """The step whose weights are in the finished model."""
    validation_loss: float | None
    """Of the exported weights; None for a run without validation documents."""
    early: bool
    """Whether validations that were no better ended it, and not its number of steps."""

    @property
    def words(self) -> str:
        """What it came to, in a line."""
        told = f"{self.steps:,} steps, loss {self.loss:.4f}"
        if self.validation_loss is not None:
            told += f", validation {self.validation_loss:.4f}"
        if self.exported != self.steps:
            told += f" at step {self.exported:,}, whose weights are exported as the best validated"
        return f"{told}; stopped early" if self.early else told


class BadSteps:
    """The steps that were skipped in a row, up to the last one."""

    def __init__(self, reasons: Sequence[str] = ()) -> None:
        self.reasons = list(reasons)
        """Keys of `FAULTS`."""

    def __len__(self) -> int:
        return len(self.reasons)

    def add(self, result: StepResult) -> None:
        if result.skipped is None:
            self.reasons.clear()
        else:
            self.reasons.append(result.skipped)

    @property
    def end_badly(self) -> bool:
        """Whether a run that ends here has failed."""
        return len(self) >= ENDS_BADLY or "no_number" in self.reasons

    @property
    def words(self) -> str:
        """How many, and why: `10 steps in a row were skipped (10 no_number: ...)`."""
        counted = Counter(self.reasons)
        why = ", ".join(f"{n} {reason}: {FAULTS[reason]}" for reason, n in counted.items())
        many = f"{len(self)} steps in a row were" if len(self) > 1 else "the last step was"
        return f"{many} skipped ({why})"


def failed(folder: Path, step: int, why: str) -> SynthError:
    """The error of a run that has gone wrong at a step, with the way on from there."""
    return SynthError(
        f"the run in {folder} failed at step {step}: {why}; no model is exported. "
        f"{_last_good(folder)}. Where training diverges, lower peak_lr or clip_norm, in another "
        "`out`; where such steps are usual for the data, raise spike or max_bad_steps, which may "
        "change on the way"
    )


def _last_good(folder: Path) -> str:
    """A checkpoint is written behind steps that were taken, and with finite weights alone."""
    found = checkpoints_in(folder / CHECKPOINTS)
    if not found:
        return "No checkpoint was written before"
    loss = json.loads((found[-1] / STATE).read_text())["state"]["loss"]
    return f"The last good checkpoint is {found[-1]}, with a loss of {loss:.4g}"


def infinite_weights(model: Decoder) -> str | None:
    """Tensors of the model that hold something else than numbers, in words; None if none does."""
    wrong = [name for name, value in model.named_parameters() if not value.isfinite().all()]
    if not wrong:
        return None
    return f"{len(wrong)} tensors of its weights are not finite, such as {wrong[0]}"


def diverged(loss: float, first: float | None, vocabulary: int) -> str | None:
    """What says that weights with such a loss are worse than none, in words; None if nothing does.

    Guessing among all tokens costs the logarithm of their number. A new model may begin above that:
    `first` is the loss of the run's first step, where it is known.
    """
    guessing = math.log(vocabulary)
    if loss <= max(guessing, first or 0.0) + WORSE_THAN_GUESSING:
        return None
    begun = "" if first is None else f", and the run began with {first:.4g}"
    return f"its loss is {loss:.4g}, where guessing among all tokens has {guessing:.4g}{begun}"


def export_whole(model: Decoder, folder: Path, tokenizer: Tokenizer, chat: ChatFormat) -> None:
    """Write the finished model of a run, in the place of one that was there; a kill leaves none of
    it by its name."""
    unfinished = folder / f".{MODEL}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    export_model(model, unfinished, tokenizer, chat=chat)
    shutil.rmtree(folder / MODEL, ignore_errors=True)
    unfinished.rename(folder / MODEL)
