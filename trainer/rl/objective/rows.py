"""What is learnt from a played conversation: its tokens, which of them the policy drew, and how
likely they were then.

A conversation is one sample, however many sequences it has: a model that thinks has one for each
turn of the user (`trainer.inference.episode_tokens`).

Shape suffixes in this file: T = tokens, L = layers with experts, K = experts of a token.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from records.errors import ItemError
from synth.gym.core.environment import RewardError
from trainer.inference.episode_tokens import EpisodeTokens


@dataclass(frozen=True)
class LearntSequence:
    """Tokens that were read one after the other, up to the last one that was drawn. Only drawn
    tokens are learnt: those of tools, users and the template are not, nor an end token that closed
    an answer which did not end itself."""

    ids_T: Tensor
    """int64."""
    drawn_T: Tensor
    """Bool, whether the policy drew the token. The first one is not drawn, the last one is."""
    old_T: Tensor
    """float64, log-probability of each drawn token under the model that drew it, at temperature 1
    and without top-p and grammar; what the others have is never looked at."""
    sampled_T: Tensor
    """The same under the distribution that it was drawn from."""
    versions_T: Tensor
    """int64, of the weights that drew it."""
    routes_TLK: Tensor | None = None
    """int16, experts of each token; negative where they are not known. None: of no token."""

    def __post_init__(self) -> None:
        lengths = {len(self.ids_T), len(self.drawn_T), len(self.old_T), len(self.sampled_T)}
        lengths |= {len(self.versions_T)}
        lengths |= set() if self.routes_TLK is None else {len(self.routes_TLK)}
        if len(lengths) != 1:
            raise ValueError(f"columns of a sequence have lengths {sorted(lengths)}")
        if bool(self.drawn_T[0]) or not bool(self.drawn_T[-1]):
            raise ValueError("the first token of a sequence is read, and the last one is drawn")
        for name, column in (("old_T", self.old_T), ("sampled_T", self.sampled_T)):
            drawn = column[self.drawn_T]
            if not drawn.isfinite().all():
                value = drawn[~drawn.isfinite()][0].item()
                raise ItemError("logprob_no_number", f"a drawn token has {value} in {name}")

    @property
    def num_drawn(self) -> int:
        return int(self.drawn_T.sum())


@dataclass(frozen=True)
class LearntSample:
    """One answer to a prompt, or one conversation that followed from it, with its reward."""

    group: str
    """Of the samples of one prompt, which share a baseline."""
    number: int
    """Within the group."""
    family: str
    """Of the task."""
    reward: float
    """As it is learnt from, so with its penalty (`trainer.rl.objective.budget`)."""
    sequences: tuple[LearntSequence, ...]
    """Those in which anything was drawn."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.reward):
            raise RewardError("reward_no_number", self.reward)

    @property
    def num_drawn(self) -> int:
        return sum(sequence.num_drawn for sequence in self.sequences)


def sample_of(
    conversations: Iterable[EpisodeTokens], *, group: str, number: int, family: str, reward: float
) -> LearntSample:
    """The sample of an episode's conversations. RewardError for a reward, and ItemError for a
    log-probability of a drawn token, that is no number."""
    sequences = tuple(
        sequence_of(tokens)
        for conversation in conversations
        for tokens in (*conversation.earlier, conversation)
        if any(tokens.drawn)
    )
    return LearntSample(group, number, family, reward, sequences)


def sequence_of(tokens: EpisodeTokens) -> LearntSequence:
    """Of one sequence of tokens, without those before it (`EpisodeTokens.earlier`). ValueError
    where nothing was drawn; else as `sample_of`."""
    drawn = tokens.drawn
    if not any(drawn):
        raise ValueError(f"nothing was drawn among {len(drawn)} tokens")
    end = max(place for place, one in enumerate(drawn) if one) + 1
    return LearntSequence(
        ids_T=torch.tensor(tokens.ids[:end]),
        drawn_T=torch.tensor(drawn[:end]),
        old_T=_numbers(tokens.model_logprobs[:end]),
        sampled_T=_numbers(tokens.logprobs[:end]),
        versions_T=torch.tensor([-1 if v is None else v for v in tokens.versions[:end]]),
        routes_TLK=_filled(tokens.routes, end),
    )


def _numbers(column: Sequence[float | None]) -> Tensor:
    numbers = [math.nan if value is None else value for value in column]
    return torch.tensor(numbers, dtype=torch.double)


def _filled(routes_TLK: Tensor | None, length: int) -> Tensor | None:
    """Of so many tokens: the last drawn one may never have been fed."""
    if routes_TLK is None or not routes_TLK.numel():
        return None
    known = routes_TLK[:length]
    missing = known.new_full((length - len(known), *known.shape[1:]), -1)
    return torch.cat((known, missing))
