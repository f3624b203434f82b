"""GRPO here is GRPO of TRL: its own loss function on a fixed batch gives the same loss and the same
gradients. Of its trainer nothing runs but what that function asks for."""

from collections import defaultdict
from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.rl.objective.objectives import LearntTokens, StepTotals, grpo
from trainer.rl.objective.settings import GrpoSettings

LENGTHS, COMPLETION, VOCABULARY = (5, 3, 7, 1, 6, 7), 7, 13


class FixedBatch:
    """Six samples of different lengths, one of them without an advantage, with a tool's tokens
    within."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        shape = (len(LENGTHS), COMPLETION)
        self.ids = torch.randint(0, VOCABULARY, shape, generator=generator)
        self.scores = torch.randn(*shape, VOCABULARY, generator=generator, dtype=torch.double)
        apart = torch.randn(2, *shape, generator=generator, dtype=torch.double) * 0.4
        own = self.scores.log_softmax(-1).gather(2, self.ids[..., None])[..., 0]
        self.old, self.reference = own + apart[0], own + apart[1]
        self.advantages = torch.tensor([1.5, -0.5, 0.75, -2.0, 0.0, 0.3], dtype=torch.double)
        self.completion = torch.arange(COMPLETION) < torch.tensor(LENGTHS)[:, None]
        self.drawn = self.completion.clone()
        self.drawn[0, 2:4] = False  # a tool's answer

    def logprobs(self, scores: Tensor) -> Tensor:
        return scores.log_softmax(-1).gather(2, self.ids[..., None])[..., 0]


def of_trl(batch: FixedBatch, settings: GrpoSettings) -> tuple[Tensor, Tensor]:
    """Loss and gradient of the scores by TRL's function."""
    from accelerate import Accelerator
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    scores = batch.scores.clone().requires_grad_()

    class Bare(GRPOTrainer):
        def __init__(self) -> None:  # all that a trainer loads and makes is left out
            self.model = torch.nn.Identity()
            self.accelerator = Accelerator(cpu=True)
            self.args = GRPOConfig(use_cpu=True, bf16=False, report_to=[])
            self.args.use_bias_correction_kl = settings.unbiased_kl
            self.loss_type = "grpo" if settings.average == "sample" else "bnpo"
            self.epsilon_low, self.epsilon_high = settings.clip_low, settings.clip_high
            self.beta = settings.kl_weight
            self.aux_loss_enabled = self.use_vllm = self._entropy_bonus_enabled = False
            self.top_entropy_quantile, self.off_policy_mask_threshold = 1.0, None
            self.importance_sampling_level = "token"
            self.current_gradient_accumulation_steps = 1
            self._metrics = {"train": defaultdict(list), "eval": defaultdict(list)}

        def _get_per_token_logps_and_entropies(self, *_: Any, **__: Any) -> Any:
            logprobs = batch.logprobs(scores)
            return logprobs, torch.zeros_like(logprobs), None

    given = {
        "prompt_ids": torch.zeros(len(LENGTHS), 2, dtype=torch.long),
        "prompt_mask": torch.ones(len(LENGTHS), 2, dtype=torch.long),
        "completion_ids": batch.ids,
        "completion_mask": batch.completion.long(),
        "tool_mask": batch.drawn.long(),
        "advantages": batch.advantages,
        "old_per_token_logps": batch.old,
        "ref_per_token_logps": batch.reference,
    }
    loss = Bare()._compute_loss(None, given)
    return loss.detach(), torch.autograd.grad(loss, scores)[0]


def of_ours(batch: FixedBatch, settings: GrpoSettings) -> tuple[Tensor, Tensor]:
    scores = batch.scores.clone().requires_grad_()
    samples = torch.arange(len(LENGTHS))[:, None].expand_as(batch.drawn)[batch.drawn]
    tokens = LearntTokens(
        batch.logprobs(scores)[batch.drawn],
        batch.old[batch.drawn],
        samples,
        batch.advantages,
        torch.zeros_like(batch.advantages),  # what grpo does not look at
        batch.drawn.sum(1).double(),
        batch.reference[batch.drawn],
    )
    totals = StepTotals(len(LENGTHS), int(batch.drawn.sum()))
    loss = grpo(tokens, totals, settings).loss
    return loss.detach(), torch.autograd.grad(loss, scores)[0]


@pytest.mark.slow
@pytest.mark.parametrize("average", ["sample", "token"])
@pytest.mark.parametrize(("kl_weight", "unbiased"), [(0.0, False), (0.3, False), (0.3, True)])
def test_loss_and_gradients_are_those_of_trl(
    average: str, kl_weight: float, unbiased: bool
) -> None:
    pytest.importorskip("trl", reason="TRL is not installed")
    settings = GrpoSettings.model_validate(
        {
            "average": average,
            "kl_weight": kl_weight,
            "unbiased_kl": unbiased,
            "clip_low": 0.2,
            "clip_high": 0.28,
        }
    )
    batch = FixedBatch()
    theirs, ours = of_trl(batch, settings), of_ours(batch, settings)
    assert theirs[0].abs() > 1e-3
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
