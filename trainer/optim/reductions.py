"""What a step adds up, takes the largest of, and reads back: over its micro-batches, in one place.

Parallel training adds its all-reduces here and nowhere else in a step, before anything is judged or
moved. Over the processes that see other tokens (data and context parallel): `summed_P`, `load_LE`,
the gradients, and the step's numbers of targets and of micro-batches, by which loss and balance
loss are divided, by SUM; `max_logit_LH` by MAX. Over those that hold other parts of the weights
(shards, experts, stages): the square of the gradients' norm by SUM.

Shape suffixes in this file: P = micro-batches, L = layers (of loads: with experts), H = heads,
E = experts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from trainer.model.decoder import Output
from trainer.model.precision import wide_dtype


def accumulate_wide(model: nn.Module) -> None:
    """Have the gradients of weights narrower than fp32 add up in fp32.

    Each backward pass still makes them in the weights' dtype, one at a time; autograd adds them to
    `grad`, which is fp32, and drops them.
    """
    for parameter in model.parameters():
        if (wide := wide_dtype(parameter.dtype)) != parameter.dtype:
            parameter.grad_dtype = wide


def clip_gradients(model: nn.Module, largest: float) -> Tensor:
    """Scale all gradients together so that their norm is `largest` at most. Returns the norm before
    that, left on the device; where it is no number, the gradients are of no use any more."""
    return nn.utils.clip_grad_norm_(model.parameters(), largest)


class Reduced(NamedTuple):
    """Of a whole step, on the device."""

    summed_P: Tensor
    """Loss summed over the learnt tokens of each micro-batch."""
    max_logit_LH: Tensor
    """Largest attention logit of each head."""
    load_LE: Tensor
    """Tokens sent to each expert; no rows where no layer has experts."""


@dataclass
class StepTally:
    """Of the micro-batches so far."""

    _summed: list[Tensor] = field(default_factory=list)
    _tops: list[Tensor] = field(default_factory=list)
    _loads: list[Tensor] = field(default_factory=list)

    def add(self, output: Output, summed: Tensor) -> None:
        """`output` of a forward pass that tracked logits, and its summed loss."""
        assert output.max_logit_LH is not None  # it was asked for
        self._summed.append(summed.detach())
        self._tops.append(output.max_logit_LH)
        self._loads.append(output.load_LE)

    def reduced(self) -> Reduced:
        return Reduced(
            torch.stack(self._summed),
            torch.stack(self._tops).amax(0),
            torch.stack(self._loads).sum(0),
        )


def read_back(told: Mapping[str, Tensor]) -> dict[str, list[float]]:
    """The values of tensors of any shape: all of a step's together, since a reading makes the host
    wait until the device has done everything before it."""
    values = torch.cat([tensor.detach().double().flatten() for tensor in told.values()]).tolist()
    found: dict[str, list[float]] = {}
    at = 0
    for name, tensor in told.items():
        found[name] = values[at : at + tensor.numel()]
        at += tensor.numel()
    return found
