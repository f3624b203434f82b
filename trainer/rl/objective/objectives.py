"""What is made small: one function for each objective, of tokens and advantages.

With r for a sample's reward, A for it less the mean of its prompt's K samples, and l for a token's
log-ratio, log pi(token) - log pi_old(token), pi_old being the model that drew it at temperature 1:

    squared   mean over prompts and samples of (A - tau sum of l)^2
    masked    - 1/N sum over all tokens of exp(min(max(l, lowest), highest)) A - tau l^2
    grpo      - mean of min(e^l A, min(max(e^l, 1 - clip_low), 1 + clip_high) A) - kl_weight k3

Sources: `squared` is https://arxiv.org/abs/2507.20534 section 3.2.3. `masked` is the update of Kimi
K2.5, whose N are all tokens that were drawn. `grpo` is https://arxiv.org/abs/2402.03300, k3 being
e^d - d - 1 with d = log pi_ref - log pi; its mean is over the tokens of each sample and then over
samples, or over all tokens. Where it is asked for, k3 is multiplied by e^l, whose gradient then is
that of KL(pi || pi_ref): https://arxiv.org/abs/2512.02556. The constants are settings, and ours
where the sources have none.

Every loss is a sum over samples once advantages and the numbers of prompts, samples and tokens are
known, so samples may be learnt in any parts, as long as each stays whole.

Shape suffixes in this file: N = drawn tokens, S = samples.
"""

from typing import NamedTuple, assert_never

import torch
from torch import Tensor

from trainer.rl.objective.settings import (
    GrpoSettings,
    MaskedSettings,
    ObjectiveSettings,
    SquaredSettings,
)

MOST_NATS = 20.0
"""A log-ratio counts as this at most where it is raised to a power: beyond, fp32 soon ends."""


class StepTotals(NamedTuple):
    """Of all that a step looks at, with samples that are left out for want of a signal: what means
    are over."""

    samples: int
    tokens: int


class LearntTokens(NamedTuple):
    """The drawn tokens of some whole samples."""

    logprobs_N: Tensor
    """Under the model that learns, with gradients."""
    old_N: Tensor
    """Under the one that drew them."""
    sample_N: Tensor
    """Of which sample each is, as a number from 0."""
    advantages_S: Tensor
    shares_S: Tensor
    """Of the mean over prompts and their samples (`WeighedSample`)."""
    lengths_S: Tensor
    """Drawn tokens."""
    reference_N: Tensor | None = None
    """Under the reference model; None where there is none."""


class ObjectiveLoss(NamedTuple):
    loss: Tensor
    """The part of these samples in the step's loss: parts add up."""
    cut_N: Tensor
    """Bool, the tokens by which the reward moves nothing, since their ratio is out of bounds."""


def objective_loss(
    tokens: LearntTokens, totals: StepTotals, settings: ObjectiveSettings
) -> ObjectiveLoss:
    """By the objective that the settings choose."""
    match settings:
        case SquaredSettings():
            return squared(tokens, settings)
        case MaskedSettings():
            return masked(tokens, totals, settings)
        case GrpoSettings():
            return grpo(tokens, totals, settings)
        case _:
            assert_never(settings)


def squared(tokens: LearntTokens, settings: SquaredSettings) -> ObjectiveLoss:
    """The report's form. Its log-ratio is of the whole sample, the sum over its drawn tokens in all
    of its sequences; nothing is clipped."""
    ratios_S = torch.zeros_like(tokens.advantages_S)
    ratios_S = ratios_S.index_add(0, tokens.sample_N, tokens.logprobs_N - tokens.old_N)
    missed_S = tokens.advantages_S - settings.tau * ratios_S
    none_cut = torch.zeros_like(tokens.sample_N, dtype=torch.bool)
    return ObjectiveLoss((tokens.shares_S * missed_S.square()).sum(), none_cut)


def masked(tokens: LearntTokens, totals: StepTotals, settings: MaskedSettings) -> ObjectiveLoss:
    """Token by token. Out of its bounds a token's reward has no gradient, whatever the sign of its
    advantage. Ours is the reading that the bounds are of the log-ratio, as the update's text says
    of them, and that the squared log-ratio, which its formula does not clip, goes on pulling such a
    token back."""
    log_ratios_N = tokens.logprobs_N - tokens.old_N
    within_N = log_ratios_N.clamp(settings.lowest, settings.highest)
    gains_N = within_N.exp() * tokens.advantages_S[tokens.sample_N]
    losses_N = -gains_N
    if (
        settings.tau
    ):  # else a ratio of 0, which is out of bounds, would come back as 0 times infinity
        losses_N = losses_N + settings.tau * log_ratios_N.square()
    cut_N = (log_ratios_N < settings.lowest) | (log_ratios_N > settings.highest)
    return ObjectiveLoss(losses_N.sum() / totals.tokens, cut_N)


def grpo(tokens: LearntTokens, totals: StepTotals, settings: GrpoSettings) -> ObjectiveLoss:
    """Clipped ratios. Ours: log-ratios count as `MOST_NATS` at most."""
    ratios_N = (tokens.logprobs_N - tokens.old_N).clamp(max=MOST_NATS).exp()
    advantages_N = tokens.advantages_S[tokens.sample_N]
    low, high = 1 - settings.clip_low, 1 + settings.clip_high
    clipped_N = ratios_N.clamp(low, high)
    losses_N = -torch.minimum(ratios_N * advantages_N, clipped_N * advantages_N)
    if settings.kl_weight:
        if tokens.reference_N is None:
            raise ValueError(f"kl_weight = {settings.kl_weight}, and there is no reference")
        apart_N = k3(tokens.reference_N - tokens.logprobs_N)
        if settings.unbiased_kl:
            apart_N = apart_N * ratios_N
        losses_N = losses_N + settings.kl_weight * apart_N
    if settings.average == "sample":
        weights_S = 1 / (tokens.lengths_S.clamp_min(1) * totals.samples)
        losses_N = losses_N * weights_S[tokens.sample_N]
    else:
        losses_N = losses_N / totals.tokens
    above_N = (advantages_N > 0) & (ratios_N > high)
    below_N = (advantages_N < 0) & (ratios_N < low)
    return ObjectiveLoss(losses_N.sum(), above_N | below_N)


def k3(log_ratios_N: Tensor) -> Tensor:
    """e^d - d - 1 of log-ratios d = log q - log p of tokens drawn from p: never below 0, and on
    average KL(p || q). Source: http://joschu.net/blog/kl-approx.html."""
    return log_ratios_N.clamp(max=MOST_NATS).exp() - log_ratios_N - 1
