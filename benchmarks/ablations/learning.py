"""One model trained in memory, by the trainer's own steps, with its losses on held-out text."""

import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

import torch
from pydantic import Field

from records.config import Config
from trainer.data.corpus import Corpus
from trainer.data.packing import PackedBatch, Packer
from trainer.data.sources import CorpusConfig
from trainer.model.config import TransformerConfig
from trainer.model.decoder import Decoder
from trainer.model.initialization import new_decoder
from trainer.optim.loss import summed_loss
from trainer.optim.muon import OptimizerConfig, optimizer_of, set_lr
from trainer.optim.schedule import wsd
from trainer.training.settings import DataConfig, TrainConfig
from trainer.training.step import Stepper, StepResult

POINTS = 12
"""Of each curve."""
HELD_OUT_ROWS = 96

WATCHED = 1e9
"""A threshold that clips nothing, and has the largest logits told."""


def shape(vocab_size: int, **other: Any) -> TransformerConfig:
    """About a million parameters in K2's form."""
    sizes: dict[str, Any] = {
        "vocab_size": vocab_size,
        "hidden_size": 128,
        "num_layers": 3,
        "intermediate_size": 256,
        "num_heads": 4,
        "q_lora_rank": 64,
        "kv_lora_rank": 32,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 32,
        "num_experts": 16,
        "experts_per_token": 2,
        "moe_intermediate_size": 48,
        "max_positions": 256,
        "rope_theta": 10_000.0,
    }
    return TransformerConfig(**(sizes | other))


class Plan(Config):
    """One training run."""

    shape: TransformerConfig
    optimizer: OptimizerConfig = OptimizerConfig()
    peak_lr: float = Field(gt=0.0)
    steps: int = Field(ge=1)
    rows: int = 8
    row_tokens: int = 128
    qk_clip_tau: float = WATCHED
    seed: int = 0
    corpus: str
    """Fingerprint of what is learnt from."""

    @property
    def step_tokens(self) -> int:
        return self.rows * self.row_tokens

    def scaled(self, steps: int, scale: float) -> "Plan":
        return self.at(steps=max(1, round(steps * scale)))

    def at(self, **other: Any) -> "Plan":
        return self.model_copy(update=other)


def learn(plan: Plan, corpus: Corpus, held_out: Corpus | None) -> tuple[Decoder, dict[str, Any]]:
    """The trained model, and what is told of it: curves as [step, value], the last losses."""
    begun = time.perf_counter()
    model = new_decoder(plan.shape, plan.seed)
    stepper = Stepper(model, optimizer_of(model, plan.optimizer, lr=plan.peak_lr), _config(plan))
    rates = wsd(plan.peak_lr, plan.steps * plan.step_tokens)
    batches = Packer(corpus, plan.row_tokens, plan.seed, pad=0).batches(plan.rows)
    results: list[StepResult] = []
    losses: list[list[float]] = []
    told = {round(plan.steps * n / POINTS) for n in range(1, POINTS + 1)}
    for step, (batch, _) in enumerate(islice(batches, plan.steps), 1):
        set_lr(stepper.optimizer, rates.lr_at(step * plan.step_tokens))
        results.append(stepper.step(batch))
        if held_out is not None and step in told:
            losses.append([step, round(loss_on(model, held_out, plan), 4)])
    return model, {
        "held_out_loss": losses,
        "loss": losses[-1][1] if losses else None,
        "train_loss": [round(v, 4) for v in _ends([r.loss for r in results])],
        "max_logit": _peaks([r.max_logit for r in results]),
        "clipped_heads": sum(r.clipped_heads for r in results),
        "skipped": sum(r.skipped is not None for r in results),
        "load_excess": round(results[-1].load_excess, 3),
        "tokens": plan.steps * plan.step_tokens,
        "tokens_per_s": round(plan.steps * plan.step_tokens / (time.perf_counter() - begun)),
    }


@torch.no_grad()
def loss_on(model: Decoder, corpus: Corpus, plan: Plan) -> float:
    """Nats a token over the same rows for every model."""
    packer = Packer(corpus, plan.row_tokens, seed=0, pad=0)
    wanted = min(HELD_OUT_ROWS, len(packer.rows_of(0)))
    total, targets = 0.0, 0
    for batch, _ in islice(packer.batches(16), wanted // 16):
        total += _summed(model, batch)
        targets += batch.num_targets
    return total / targets


def _summed(model: Decoder, batch: PackedBatch) -> float:
    hidden = model(batch.ids_BT, documents_BT=batch.documents_BT).hidden_BTD
    return summed_loss(model, hidden, batch.targets_BT).item()


def _config(plan: Plan) -> TrainConfig:
    data = DataConfig(
        sources=(CorpusConfig(path="in memory"),),
        row_tokens=plan.row_tokens,
        batch_rows=plan.rows,
        micro_rows=plan.rows,
    )
    return TrainConfig(out="none", data=data, qk_clip_tau=plan.qk_clip_tau, device="cpu")


def _ends(values: Sequence[float]) -> list[float]:
    """Means of the first and last tenth."""
    tenth = max(1, len(values) // 10)
    return [sum(part) / tenth for part in (values[:tenth], values[-tenth:])]


def _peaks(values: Sequence[float]) -> list[list[float]]:
    """The largest of each stretch, at its last step."""
    size = -(-len(values) // POINTS)
    starts = range(0, len(values), size)
    return [[min(s + size, len(values)), round(max(values[s : s + size]), 1)] for s in starts]
