"""One optimizer step: gradients over micro-batches, the update, QK-Clip, router biases.

Shape suffixes in this file: B = rows, T = tokens, N = tokens that are learnt, L = layers,
H = heads, E = experts.
"""

import math
import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from trainer.data.packing import PackedBatch
from trainer.model.decoder import Decoder
from trainer.optim.balance import load_excess, move_router_bias
from trainer.optim.muon import MuonAdamW
from trainer.optim.qk_clip import qk_clip, rotary_key_norm
from trainer.training.loss import summed_loss
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


@dataclass
class Stepper:
    """A model, its optimiser, and what judging a step takes."""

    model: Decoder
    optimizer: MuonAdamW
    config: TrainConfig
    norms: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """Of the last steps, as far as they were numbers."""

    def step(self, batch: PackedBatch) -> StepResult:
        """Take one step, unless its loss or gradient is bad: then nothing is changed."""
        parts = _micro_batches(batch, self.config.micro_rows)
        self.optimizer.zero_grad(set_to_none=True)
        total = max(1, batch.num_targets)
        loss, tops, load_LE = 0.0, [], None
        for part in parts:
            output = self.model(
                part.ids_BT,
                documents_BT=part.documents_BT,
                track_logits=True,
            )
            summed = summed_loss(self.model, output.hidden_BTD, part.targets_BT)
            balance = output.imbalance * self.config.balance_loss / len(parts)
            (summed / total + balance).backward()
            loss += summed.item() / total
            load_LE = output.load_LE if load_LE is None else load_LE + output.load_LE
            assert output.max_logit_LH is not None  # it was asked for
            tops.append(output.max_logit_LH)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm).item()
        top_LH = torch.stack(tops).amax(0)
        result = StepResult(loss, norm, batch.num_targets, top_LH.max().item())
        fault = self._fault(loss, norm)
        if math.isfinite(norm):  # a spike's, too: else a rise that lasts is skipped for good
            self.norms.append(norm)
        if fault:
            result.skipped, result.why_skipped = fault
        else:
            self.optimizer.step()
            self._after(result, top_LH, load_LE)
        return result

    def _fault(self, loss: float, norm: float) -> StepFault | None:
        if not (math.isfinite(loss) and math.isfinite(norm)):
            return StepFault("no_number", f"loss {loss:g}, gradient norm {norm:g}")
        if len(self.norms) >= BEFORE_JUDGING:
            usual = statistics.median(self.norms)
            if norm > self.config.spike * usual:
                times = f"{norm / usual:.3g} times the usual {usual:.3g}"
                return StepFault("spike", f"gradient norm {norm:.3g}, {times}")
        return None

    def _after(self, result: StepResult, top_LH: Tensor, load_LE: Tensor | None) -> None:
        result.update_rms = self.optimizer.last_update_rms
        if self.config.qk_clip_tau is not None:
            clipped = qk_clip(self.model, self.optimizer, top_LH, tau=self.config.qk_clip_tau)
            result.clipped_heads = clipped.heads
        result.rotary_key_norm = rotary_key_norm(self.model)
        if load_LE is not None and load_LE.numel():
            result.load_excess = load_excess(load_LE)
            if self.config.balance_rate:
                move_router_bias(self.model, load_LE, rate=self.config.balance_rate)
            biases = [b for n, b in self.model.named_buffers() if n.endswith("correction_bias")]
            result.bias_max = max(b.abs().max().item() for b in biases)


def _micro_batches(batch: PackedBatch, rows: int) -> Sequence[PackedBatch]:
    return [PackedBatch(*parts) for parts in zip(*(t.split(rows) for t in batch), strict=True)]
