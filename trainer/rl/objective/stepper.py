"""One optimizer step on rewarded samples: the passes, the objective, and the update of any step.

Shape suffixes in this file: N = drawn tokens.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from records.errors import ConfigError
from trainer.data.packing import PackedBatch
from trainer.model.decoder import Decoder, Output
from trainer.model.experts import MixtureOfExperts
from trainer.optim.loss import summed_loss
from trainer.optim.muon import optimizer_of
from trainer.optim.reductions import StepTally
from trainer.rl.objective.baseline import SignalCounts
from trainer.rl.objective.logprobs import TokenLogprobs, token_logprobs
from trainer.rl.objective.measures import LearningMeasures, MeasuredPasses, measures_of
from trainer.rl.objective.minibatches import Minibatch
from trainer.rl.objective.objectives import LearntTokens, objective_loss
from trainer.rl.objective.packing import LearntRows, rows_of
from trainer.rl.objective.ptx import WeightedRows
from trainer.rl.objective.settings import LearningSettings
from trainer.training.batches import MicroBatch, micro_batches
from trainer.training.step import StepResult, Updater


class LearntStep(NamedTuple):
    """What became of a step."""

    counts: SignalCounts
    taken: StepResult | None = None
    """None where there was nothing to learn from, so that nothing was moved. Its loss is that of
    the objective, less the entropy and with the good conversations, each by its weight."""
    measures: LearningMeasures | None = None
    """Likewise."""


@dataclass
class RLStepper(Updater[LearningSettings]):
    """Steps that learn from rewards. `RLStepper.of` makes one."""

    reference: Decoder | None = None
    """A model that stays as it is, which the objective may hold the policy to."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.config.has_reference != (self.reference is not None):
            raise ConfigError(
                "a reference model is given where kl_weight of grpo is above 0, and only there"
            )
        self.model.recompute = self.config.recompute

    @classmethod
    def of(
        cls, model: Decoder, settings: LearningSettings, reference: Decoder | None = None
    ) -> "RLStepper":
        """With an optimiser at its beginning. ConfigError for a reference that nothing needs, and
        for none where one is needed."""
        optimizer = optimizer_of(model, settings.optimizer, lr=settings.lr)
        return cls(model, optimizer, settings, reference=reference)

    def step(
        self,
        minibatch: Minibatch,
        *,
        version: int,
        ptx: PackedBatch | None = None,
        verdicts: WeightedRows | None = None,
    ) -> LearntStep:
        """Take one step, unless its loss or gradient is bad or there is nothing to learn: then
        nothing is changed. Muon would else move the weights by its momentum alone.

        `version`: of the weights as they are, to tell how old the samples' are. `ptx`: rows of good
        conversations, given where their weight is above 0 and there only. `verdicts`: what a critic
        should have said. ConfigError for a sequence that does not fit a row, and for routes that
        are to be replayed and were not kept.
        """
        if (ptx is not None) != (self.config.ptx.weight > 0):
            raise ValueError("rows of good conversations belong to a ptx.weight above 0")
        beside = {"verdict": verdicts} if verdicts is not None else {}
        if ptx is not None:
            beside["ptx"] = WeightedRows(ptx, self.config.ptx.weight)
        if not minibatch.has_signal and not beside:
            return LearntStep(minibatch.counts)
        self._check_routes(minibatch)
        self.optimizer.zero_grad(set_to_none=True)
        rows = self._rows(minibatch)
        parts = {
            name: list(micro_batches(own.rows, self.config.micro_rows, self.model.device))
            for name, own in beside.items()
        }
        passes, targets = len(rows) + sum(map(len, parts.values())), minibatch.num_drawn
        tally, measured = StepTally(), MeasuredPasses()
        for part in rows:
            self._learn(part.on(self.model.device), minibatch, version, passes, tally, measured)
        for name, own in beside.items():
            targets += own.rows.num_targets
            for part in parts[name]:
                self._learn_beside(name, own, part, passes, tally, measured)
        result, told = self._taken(
            tally.reduced(), total=1, targets=targets, others=measured.told()
        )
        return LearntStep(minibatch.counts, result, measures_of(told))

    def _rows(self, minibatch: Minibatch) -> list[LearntRows]:
        config = self.config
        made = rows_of(
            minibatch.samples,
            row_tokens=config.row_tokens,
            micro_rows=config.micro_rows,
            routes=config.replay_routes,
        )
        return list(made)

    def _check_routes(self, minibatch: Minibatch) -> None:
        has_experts = any(isinstance(layer.mlp, MixtureOfExperts) for layer in self.model.layers)
        if not (self.config.replay_routes and has_experts):
            return
        for one in minibatch.samples:
            for number, sequence in enumerate(one.sample.sequences):
                if sequence.routes_TLK is None:
                    raise ConfigError(
                        f"sequence {number} of sample {one.sample.number} of group "
                        f"{one.sample.group} has no routes to replay: have the policy keep them "
                        "(routes = true), or set replay_routes = false"
                    )

    def _learn(
        self,
        rows: LearntRows,
        minibatch: Minibatch,
        version: int,
        passes: int,
        tally: StepTally,
        measured: MeasuredPasses,
    ) -> None:
        """The gradients of one pass over samples, added to those before."""
        output, made = self._passed(rows)
        tokens = self._tokens(rows, made)
        loss, cut_N = objective_loss(tokens, minibatch.totals, self.config.objective)
        whole = loss
        if self.config.entropy_weight:
            bonus = made.entropies_N.sum() / minibatch.totals.tokens
            whole = loss - self.config.entropy_weight * bonus
        (whole + self._balance(output, passes)).backward()
        tally.add(output, whole)
        measured.add(rows, output, tokens, made, cut_N, loss, version=version)

    def _learn_beside(
        self,
        name: str,
        own: WeightedRows,
        part: MicroBatch,
        passes: int,
        tally: StepTally,
        measured: MeasuredPasses,
    ) -> None:
        """The same over a part of rows that are learnt beside them."""
        output = self.model(part.ids_BT, documents_BT=part.documents_BT, track_logits=True)
        summed = summed_loss(self.model, output.hidden_BTD, part.targets_BT, part.learnt_N)
        loss = summed / max(1, own.rows.num_targets)
        whole = own.weight * loss
        (whole + self._balance(output, passes)).backward()
        tally.add(output, whole)
        measured.add_beside(name, loss)

    def _balance(self, output: Output, passes: int) -> Tensor:
        return output.imbalance * self.config.balance_loss / passes

    def _passed(self, rows: LearntRows) -> tuple[Output, TokenLogprobs]:
        output = self.model(
            rows.ids_BT,
            documents_BT=rows.documents_BT,
            track_logits=True,
            routes_BTLK=rows.routes_BTLK,
        )
        made = token_logprobs(self.model, output.hidden_BTD, rows.targets_BT, rows.learnt_N)
        return output, made

    def _tokens(self, rows: LearntRows, made: TokenLogprobs) -> LearntTokens:
        dtype = made.logprobs_N.dtype
        return LearntTokens(
            made.logprobs_N,
            rows.old_N.to(dtype),
            rows.sample_N,
            rows.advantages_S.to(dtype),
            rows.shares_S.to(dtype),
            rows.lengths_S.to(dtype),
            None if self.reference is None else self._referred(self.reference, rows),
        )

    @torch.no_grad()
    def _referred(self, reference: Decoder, rows: LearntRows) -> Tensor:
        """Log-probabilities under the reference, by its own routers."""
        hidden = reference(rows.ids_BT, documents_BT=rows.documents_BT).hidden_BTD
        return token_logprobs(reference, hidden, rows.targets_BT, rows.learnt_N).logprobs_N
