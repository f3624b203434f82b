"""What `benchmarks/bench_trainer.py` takes the time of: one training step, as `python -m trainer`
takes it and as transformers with torch's optimisers does."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from transformers import DeepseekV3ForCausalLM

from trainer.data.packing import IGNORE, PackedBatch
from trainer.model.decoder import Decoder
from trainer.optim.muon import optimizer_of
from trainer.training.settings import TrainConfig
from trainer.training.step import Stepper
from trainer.training.training_run import document_lengths

LR = 1e-3

EXPERTS = ("eager", "batched_mm", "grouped_mm")
"""Forms in which transformers runs experts."""

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
"""cpu, with one thread, is what a core of its own would take: for machines that are busy."""


class Took(NamedTuple):
    tokens: int
    """Real ones: padding is no work."""
    context: int
    """Tokens of the document that a token is of, on average: attention goes no further."""
    step_s: float
    optimizer_s: float
    loss: float


class Way(Protocol):
    def step(self, batch: PackedBatch) -> Took: ...


class Watch:
    """A clock, which also adds up the time inside `step` of some optimisers."""

    def __init__(self, clock: str, *optimizers: torch.optim.Optimizer) -> None:
        self.now = CLOCKS[clock]
        self.seconds, self._begun = 0.0, 0.0
        for optimizer in optimizers:
            optimizer.register_step_pre_hook(self._start)
            optimizer.register_step_post_hook(self._stop)

    def _start(self, *_: Any) -> None:
        self._begun = self.now()

    def _stop(self, *_: Any) -> None:
        self.seconds += self.now() - self._begun


class Ours:
    def __init__(self, model: Decoder, config: TrainConfig, clock: str) -> None:
        optimizer = optimizer_of(model, config.optimizer, lr=LR)
        self.stepper, self.watch = Stepper(model, optimizer, config), Watch(clock, optimizer)

    def step(self, batch: PackedBatch) -> Took:
        begun, before = self.watch.now(), self.watch.seconds
        result = self.stepper.step(batch)
        took = self.watch.now() - begun
        return Took(*_sizes(batch), took, self.watch.seconds - before, result.loss)


class Theirs:
    def __init__(
        self, model: DeepseekV3ForCausalLM, config: TrainConfig, clock: str, *, muon: bool
    ) -> None:
        """`muon`: for the experts, too, a matrix at a time."""
        self.model = model.train()
        self.rows, self.clip_norm = config.micro_rows, config.clip_norm
        matrices: list[nn.Parameter] = []
        rest: list[nn.Parameter] = []
        self.views: list[tuple[nn.Parameter, nn.Parameter, tuple[Any, ...]]] = []
        for name, p in self.model.named_parameters():
            if p.ndim == 3 and muon:
                self.views += [(nn.Parameter(p.data[at]), p, at) for at in _matrices_in(name, p)]
            elif p.ndim == 2 and name.startswith("model.layers."):
                matrices.append(p)
            else:
                rest.append(p)
        matrices += [view for view, _, _ in self.views]
        own = config.optimizer
        self.optimizers = (
            torch.optim.Muon(
                matrices,
                lr=LR,
                weight_decay=own.weight_decay,
                momentum=own.momentum,
                nesterov=own.nesterov,
                adjust_lr_fn="match_rms_adamw",
            ),
            torch.optim.AdamW(
                rest, lr=LR, betas=(own.beta1, own.beta2), weight_decay=own.weight_decay
            ),
        )
        self.watch = Watch(clock, *self.optimizers)

    def step(self, batch: PackedBatch) -> Took:
        begun, before = self.watch.now(), self.watch.seconds
        total, loss = batch.num_targets, 0.0
        self.model.zero_grad(set_to_none=True)
        there = (t.to(self.model.device) for t in batch)
        for ids, targets, documents in zip(*(t.split(self.rows) for t in there), strict=True):
            labels = torch.full_like(targets, IGNORE)
            labels[:, 1:] = targets[:, :-1]  # theirs are shifted inside
            output = self.model(
                input_ids=ids,
                position_ids=_positions(documents),
                labels=labels,
                num_items_in_batch=total,
                use_cache=False,
            )
            output.loss.backward()
            loss += output.loss.item()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        for view, stack, at in self.views:
            assert stack.grad is not None
            view.grad = stack.grad[at]
        for optimizer in self.optimizers:
            optimizer.step()
        took = self.watch.now() - begun
        return Took(*_sizes(batch), took, self.watch.seconds - before, loss)


def _sizes(batch: PackedBatch) -> tuple[int, int]:
    """(tokens, context) of `Took`."""
    lengths = document_lengths(batch)
    tokens = int(lengths.sum())
    return tokens, round(int(lengths.square().sum()) / tokens)


def _matrices_in(name: str, stack: nn.Parameter) -> Iterator[tuple[Any, ...]]:
    """Where the matrices of experts lie in a stack; gates and ups share one."""
    half = stack.shape[1] // 2
    for expert in range(len(stack)):
        if name.endswith("gate_up_proj"):
            yield from ((expert, slice(0, half)), (expert, slice(half, None)))
        else:
            yield (expert,)


def _positions(documents_BT: Tensor) -> Tensor:
    """Places of tokens within their documents."""
    index_T = torch.arange(documents_BT.shape[1], device=documents_BT.device)
    starts = torch.ones_like(documents_BT, dtype=torch.bool)
    starts[:, 1:] = documents_BT[:, 1:] != documents_BT[:, :-1]
    return index_T - (index_T * starts).cummax(-1).values
