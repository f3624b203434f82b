"""The next token of each row: from which distribution, drawn how, and with which log-probability.

    allowed -> logits / temperature -> softmax -> top-p -> renormalised

so that top-p is the likeliest of what the grammar allows. Temperature 0 takes the likeliest token,
which then has log-probability 0. A draw is a function of the row's distribution and of one number
in [0, 1) that hangs on the answer's seed and the token's place in it: no generator has a state that
would have to be kept, and an answer that was paused goes on with the very numbers that it would
have had.

Shape suffixes in this file: N = rows, V = vocabulary.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from records.config import Config
from records.seeds import seed_of


class Sampling(Config):
    temperature: float = Field(default=0.0, ge=0.0, le=10.0)
    """0 takes the likeliest token."""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    """Only the likeliest tokens that make up this share are drawn from."""
    max_tokens: int = Field(default=256, ge=1)
    """Tokens of one answer at most."""


class DrawnTokens(NamedTuple):
    ids: list[int]
    logprobs: list[float]
    """Under the distribution that they were drawn from."""
    model_logprobs: list[float]
    """Under the model as it is: temperature 1, no top-p, no grammar."""


def uniform_of(seed: int, place: int) -> float:
    """In [0, 1): what decides the token at `place` of the answer with this seed."""
    return (seed_of(str(seed), "token", place) >> 10) / 2**53


def sampling_logprobs(
    logits_NV: Tensor, sampling: Sampling, allowed_NV: Tensor | None = None
) -> Tensor:
    """The distribution that tokens are drawn from; minus infinity for those that cannot be drawn.
    Every row of `allowed_NV` has at least one token."""
    if allowed_NV is not None:
        logits_NV = logits_NV.masked_fill(~allowed_NV, -torch.inf)
    if sampling.temperature == 0.0:
        likeliest_N1 = logits_NV.argmax(-1, keepdim=True)
        return torch.full_like(logits_NV, -torch.inf).scatter(1, likeliest_N1, 0.0)
    # from the likeliest down, in double: the least of temperatures must not make it infinite
    below_NV = (logits_NV - logits_NV.amax(-1, keepdim=True)).double()
    logprobs_NV = (below_NV / sampling.temperature).to(logits_NV.dtype).log_softmax(-1)
    if sampling.top_p < 1.0:
        ordered, index = logprobs_NV.exp().sort(descending=True, stable=True)
        before = ordered.cumsum(-1) - ordered
        kept = torch.zeros_like(before, dtype=torch.bool)
        kept.scatter_(1, index, before < sampling.top_p)
        logprobs_NV = logprobs_NV.masked_fill(~kept, -torch.inf).log_softmax(-1)
    return logprobs_NV


def draw(
    logits_NV: Tensor,
    sampling: Sampling,
    uniforms: Sequence[float],
    allowed_NV: Tensor | None = None,
) -> DrawnTokens:
    """A token for each row. ValueError for logits that are no numbers."""
    logits_NV = logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32))
    logprobs_NV = sampling_logprobs(logits_NV, sampling, allowed_NV)
    shares_NV = logprobs_NV.double().exp().cumsum(-1)
    uniform_N1 = torch.tensor(uniforms, dtype=torch.double, device=logits_NV.device)[:, None]
    # the first token whose share reaches beyond: one of no share adds nothing, so it is never it
    ids_N1 = torch.searchsorted(shares_NV, uniform_N1 * shares_NV[:, -1:], right=True)
    ids_N1 = ids_N1.clamp_max(logits_NV.shape[-1] - 1)  # of logits that are no numbers
    told = (
        ids_N1[:, 0].double(),
        logprobs_NV.gather(1, ids_N1)[:, 0].double(),
        logits_NV.log_softmax(-1).gather(1, ids_N1)[:, 0].double(),
        logits_NV.isfinite().all(-1).double(),
    )
    ids, logprobs, model_logprobs, finite = torch.stack(told).tolist()  # read back once
    if not all(finite):
        raise ValueError("the model's logits are no numbers")
    return DrawnTokens([int(number) for number in ids], logprobs, model_logprobs)
