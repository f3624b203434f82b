"""Samples made for the purpose, and what is learnt from them written out plainly.

The plain form runs each sequence by itself, makes all logits, and follows the formulas sample by
sample: nothing is packed, padded, cut into passes or fused.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.inference.episode_tokens import EpisodeTokens
from trainer.inference.sampler import AnswerDraft
from trainer.model.decoder import Decoder
from trainer.rl.objective.rows import LearntSample, LearntSequence
from trainer.rl.objective.settings import (
    GrpoSettings,
    LearningSettings,
    MaskedSettings,
    SquaredSettings,
)

VOCABULARY = 97

REWARDS = {"a": [1.0, 0.0, 0.25], "b": [0.0, 0.75], "equal": [0.5, 0.5], "alone": [1.0]}
"""Of the groups: of different sizes, and two without a signal."""

OBJECTIVES = {
    "squared": SquaredSettings(tau=0.3),
    "masked": MaskedSettings(tau=0.05, lowest=-0.2, highest=0.3),
    "masked, free": MaskedSettings(tau=0.0),
    "grpo": GrpoSettings(clip_high=0.3),
    "grpo, normalised over tokens": GrpoSettings(normalise=True, average="token", clip_low=0.1),
}


def sequence(generator: torch.Generator, length: int, drawn: Sequence[int], **other: Any) -> Any:
    """Random tokens, of which those at these places are drawn; elsewhere no column is a number."""
    drawn_T = torch.zeros(length, dtype=torch.bool)
    drawn_T[list(drawn)] = True
    old_T = torch.randn(length, generator=generator, dtype=torch.double) * 0.3 - 4.0
    columns: dict[str, Any] = {
        "ids_T": torch.randint(0, VOCABULARY, (length,), generator=generator),
        "drawn_T": drawn_T,
        "old_T": old_T.masked_fill(~drawn_T, math.nan),
        "sampled_T": (old_T + 0.1).masked_fill(~drawn_T, -math.inf),
        "versions_T": torch.full((length,), 3).masked_fill(~drawn_T, -1),
    }
    return LearntSequence(**(columns | other))


def samples(seed: int = 0) -> list[LearntSample]:
    """Of several lengths, two of them with two sequences and one with two answers."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for group, rewards in REWARDS.items():
        for number, reward in enumerate(rewards):
            sequences = [sequence(generator, 9 + 5 * number, [4, 5, 8 + 5 * number])]
            if number == 1:
                sequences.append(sequence(generator, 21, [1, *range(15, 21)]))
            made.append(LearntSample(group, number, "tool_use", reward, tuple(sequences)))
    return made


def episode_of(draft: AnswerDraft) -> EpisodeTokens:
    """The conversation of one answer, as the sampler drew it."""
    before: list[Any] = [None] * len(draft.prompt)
    return EpisodeTokens(
        ids=[*draft.prompt, *draft.ids],
        logprobs=[*before, *draft.logprobs],
        model_logprobs=[*before, *draft.model_logprobs],
        versions=[*before, *draft.versions],
        routes=draft.routes,
    )


def plain_logprobs(model: Decoder, sample: LearntSample) -> tuple[Tensor, Tensor, Tensor]:
    """(logprobs, old logprobs, entropies) of a sample's drawn tokens in all its sequences."""
    columns: list[tuple[Tensor, Tensor, Tensor]] = []
    for one in sample.sequences:
        logs_TV = model.logits(model(one.ids_T[None]).hidden_BTD)[0].log_softmax(-1)
        before = one.drawn_T.nonzero()[:, 0] - 1
        of_target = logs_TV[before, one.ids_T[before + 1]]
        entropies = -(logs_TV.exp() * logs_TV).sum(-1)[before]
        columns.append((of_target, one.old_T[before + 1], entropies))
    new, old, entropies = (torch.cat(column) for column in zip(*columns, strict=True))
    return new, old, entropies


def plain_loss(
    model: Decoder,
    given: Sequence[LearntSample],
    settings: LearningSettings,
    reference: Decoder | None = None,
) -> Tensor:
    """Of all samples, those without a signal included, by the formulas."""
    groups: dict[str, list[LearntSample]] = {}
    for sample in given:
        groups.setdefault(sample.group, []).append(sample)
    num_tokens = sum(int(q.drawn_T.sum()) for s in given for q in s.sequences)
    loss = torch.zeros((), dtype=torch.double)
    for group in groups.values():
        rewards = torch.tensor([sample.reward for sample in group], dtype=torch.double)
        advantages = rewards - rewards.mean()
        if isinstance(settings.objective, GrpoSettings) and settings.objective.normalise:
            spread = rewards.std() if len(group) > 1 else torch.zeros(())
            advantages = advantages / (spread + 1e-4)
        for sample, advantage in zip(group, advantages, strict=True):
            if settings.without_signal == "leave_out" and not advantages.any():
                continue
            new, old, entropies = plain_logprobs(model, sample)
            loss = loss - settings.entropy_weight * entropies.sum() / num_tokens
            match settings.objective:
                case SquaredSettings(tau=tau):
                    missed = advantage - tau * (new - old).sum()
                    loss = loss + missed**2 / len(group) / len(groups)
                case MaskedSettings() as own:
                    for log_ratio in new - old:
                        within = own.lowest <= log_ratio.item() <= own.highest
                        bounded = min(max(log_ratio.item(), own.lowest), own.highest)
                        value = log_ratio.exp() if within else math.exp(bounded)
                        token = value * advantage - own.tau * log_ratio**2
                        loss = loss - token / num_tokens
                case GrpoSettings() as own:
                    ratio = (new - old).exp()
                    bounded = ratio.clamp(1 - own.clip_low, 1 + own.clip_high)
                    tokens = -torch.min(ratio * advantage, bounded * advantage)
                    if reference is not None:
                        with torch.no_grad():
                            referred = plain_logprobs(reference, sample)[0]
                        apart = referred - new
                        tokens = tokens + own.kl_weight * (apart.exp() - apart - 1)
                    mean = tokens.mean() / len(given)
                    loss = loss + (mean if own.average == "sample" else tokens.sum() / num_tokens)
    return loss


def plain_cross_entropy(model: Decoder, ids_BT: Tensor, targets_BT: Tensor) -> Tensor:
    logits = model.logits(model(ids_BT).hidden_BTD).flatten(0, 1)
    return F.cross_entropy(logits, targets_BT.flatten())


def gradients_of(model: Decoder) -> dict[str, Tensor]:
    """Those that are there, by name."""
    found = model.named_parameters()
    return {name: p.grad.clone() for name, p in found if p.grad is not None}
