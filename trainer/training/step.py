"""One optimizer step: gradients over micro-batches, the update, QK-Clip, router biases.

`Stepper` has the gradients of the next tokens; `Updater` is what any step does with its gradients,
whatever they are of.

Shape suffixes in this file: P = micro-batches, L = layers, H = heads, E = experts.
"""

import math
import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from trainer.data.packing import PackedBatch
from trainer.model.decoder import Decoder
from trainer.model.paths import ComputePath
from trainer.optim.balance import load_excess, move_router_bias, router_biases
from trainer.optim.loss import summed_loss
from trainer.optim.muon import MuonAdamW
from trainer.optim.qk_clip import qk_clip, rotary_key_norm
from trainer.optim.reductions import (
    Reduced,
    StepTally,
    accumulate_wide,
    clip_gradients,
    read_back,
)
from trainer.training.batches import micro_batches
from trainer.training.settings import TrainConfig

REMEMBERED = 100
"""Gradient norms that a spike is told by."""

BEFORE_JUDGING = 20
"""Steps before any is called a spike: the first ones differ by nature."""

FAULTS = {
    "no_number": "loss or gradient is no number",
    "spike": "gradient far above the usual",
}
"""Why a step is skipped -> what that means."""

AFTER = ("clipped_heads", "rotary_key_norm", "load_excess", "bias_max", "update_rms")
"""What is measured of a step that was taken, and of no other."""


class StepFault(NamedTuple):
    reason: str
    """A key of `FAULTS`."""
    words: str
    """With the numbers."""


@dataclass
class StepResult:
    loss: float
    """Nats per learnt token, mean over the step."""
    grad_norm: float
    """Before clipping."""
    targets: int
    max_logit: float
    clipped_heads: int = 0
    rotary_key_norm: float = 0.0
    """Largest norm of the weights of a rotary key, which QK-Clip never shrinks."""
    load_excess: float = 0.0
    """How far the busiest experts are over their share."""
    bias_max: float = 0.0
    """Largest router bias."""
    update_rms: float = 0.0
    skipped: str | None = None
    """Why the step changed nothing, a key of `FAULTS`; None for a good step."""
    why_skipped: str | None = None
    """The same with its numbers."""


class StepSettings(Protocol):
    """What judging a step and taking it is told: fields of a config."""

    @property
    def clip_norm(self) -> float:
        """Largest norm of the gradient."""
        ...

    @property
    def qk_clip_tau(self) -> float | None:
        """Attention logits above this have their heads clipped; None: none is."""
        ...

    @property
    def balance_rate(self) -> float:
        """How fast router biases even out the experts' loads."""
        ...

    @property
    def spike(self) -> float:
        """A gradient norm so many times the usual is a spike."""
        ...


_Settings = TypeVar("_Settings", bound=StepSettings)


@dataclass
class Updater(Generic[_Settings]):
    """A model, its optimiser, and what judging a step takes."""

    model: Decoder
    optimizer: MuonAdamW
    config: _Settings
    norms: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """Of the last steps, as far as they were numbers."""

    def __post_init__(self) -> None:
        accumulate_wide(self.model)

    def _taken(
        self,
        reduced: Reduced,
        *,
        total: int,
        targets: int,
        others: Mapping[str, Tensor] = MappingProxyType({}),
    ) -> tuple[StepResult, dict[str, list[float]]]:
        """Take a step by the gradients that are in the parameters, unless it is bad: then nothing
        is changed. Its result, and the values of `others`, which are read with all the rest.

        `total`: what the summed losses are divided by; `targets`: tokens that are learnt. On a
        device everything is asked for without waiting, the update included, which keeps nothing
        where the step is bad; then all that there is to tell is read at once.
        """
        norm = clip_gradients(self.model, self.config.clip_norm)
        taken = self._is_good(reduced, norm)
        told = {"summed": reduced.summed_P, "norm": norm, "top": reduced.max_logit_LH.max()}
        on_device = self.model.compute_path is ComputePath.DEVICE
        if on_device or bool(taken):  # a CPU is not waited for, and need not copy to be able to
            told |= self._update(reduced, taken if on_device else None)
        values = read_back({**told, **others})
        return self._result(values, total, targets), {name: values[name] for name in others}

    def _is_good(self, reduced: Reduced, norm: Tensor) -> Tensor:
        """As `_fault` judges, without reading: a single bool."""
        numbers = torch.isfinite(reduced.summed_P).all() & torch.isfinite(norm)
        usual = self._usual_norm()
        return numbers if usual is None else numbers & (norm.double() <= self.config.spike * usual)

    def _update(self, reduced: Reduced, taken: Tensor | None) -> dict[str, Tensor]:
        """Move weights and router biases; what is measured of it. `taken`: see `MuonAdamW.step`."""
        self.optimizer.step(taken=taken)
        told = {"update_rms": self.optimizer.update_rms}
        if (tau := self.config.qk_clip_tau) is not None:
            top_LH = reduced.max_logit_LH
            clipped = qk_clip(self.model, self.optimizer, top_LH, tau=tau, taken=taken)
            told["clipped_heads"] = clipped.heads
        told["rotary_key_norm"] = rotary_key_norm(self.model)
        if reduced.load_LE.numel():
            told["load_excess"] = load_excess(reduced.load_LE)
            if rate := self.config.balance_rate:
                move_router_bias(self.model, reduced.load_LE, rate=rate, taken=taken)
            told["bias_max"] = torch.stack(router_biases(self.model)).abs().max()
        return told

    def _result(self, told: dict[str, list[float]], total: int, targets: int) -> StepResult:
        loss = sum(summed / total for summed in told["summed"])
        (norm,), (top,) = told["norm"], told["top"]
        result = StepResult(loss, norm, targets, top)
        fault = self._fault(loss, norm)
        if math.isfinite(norm):  # a spike's, too: else a rise that lasts is skipped for good
            self.norms.append(norm)
        if fault:
            result.skipped, result.why_skipped = fault
            if self.model.compute_path is ComputePath.DEVICE:
                self.optimizer.forget_step()
            return result
        after = {name: told[name][0] for name in AFTER if name in told}
        result = replace(result, **after)
        result.clipped_heads = int(result.clipped_heads)
        return result

    def _fault(self, loss: float, norm: float) -> StepFault | None:
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return StepFault("no_number", f"loss {loss:g}, gradient norm {norm:g}")
        usual = self._usual_norm()
        if usual is not None and norm > self.config.spike * usual:
            times = f"{norm / usual:.3g} times the usual {usual:.3g}"
            return StepFault("spike", f"gradient norm {norm:.3g}, {times}")
        return None

    def _usual_norm(self) -> float | None:
        """None as long as there are too few to judge by."""
        return statistics.median(self.norms) if len(self.norms) >= BEFORE_JUDGING else None


class Stepper(Updater[TrainConfig]):
    """Steps that learn the next tokens of packed documents."""

    def step(self, batch: PackedBatch) -> StepResult:
        """Take one step, unless its loss or gradient is bad. `batch` is on the host, as the packer
        makes it."""
        self.optimizer.zero_grad(set_to_none=True)
        reduced, targets = self._gradients(batch), batch.num_targets
        return self._taken(reduced, total=max(1, targets), targets=targets)[0]

    def _gradients(self, batch: PackedBatch) -> Reduced:
        """Of the loss over all micro-batches, left in the parameters."""
        parts = list(micro_batches(batch, self.config.micro_rows, self.model.device))
        tally, total = StepTally(), max(1, batch.num_targets)
        for part in parts:
            output = self.model(part.ids_BT, documents_BT=part.documents_BT, track_logits=True)
            summed = summed_loss(self.model, output.hidden_BTD, part.targets_BT, part.learnt_N)
            balance = output.imbalance * self.config.balance_loss / len(parts)
            (summed / total + balance).backward()
            tally.add(output, summed)
        return tally.reduced()
