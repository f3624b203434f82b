"""Sampling from a model: many sequences at a time, each with its own cache slot and seed.

A sequence that ends frees its slot for the next one at once (continuous batching). A slot remembers
what it holds: a prompt that begins so, as a conversation's next turn does, is read on from there.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import torch
from pydantic import Field
from torch import Tensor

from records.config import Config
from records.errors import ConfigError
from trainer.cache import LatentCache
from trainer.model import Decoder


class Sampling(Config):
    temperature: float = Field(default=0.0, ge=0.0, le=10.0)
    """0 takes the likeliest token."""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    """Only the likeliest tokens that make up this share are drawn from."""
    max_tokens: int = Field(default=256, ge=1)


class Generated(NamedTuple):
    ids: list[int]
    """The stop token is not among them."""
    logprobs: list[float]
    """Of each token under the model as it is, before temperature and top-p."""
    finish_reason: Literal["stop", "length"]


class Guide(Protocol):
    """Says which tokens may come next in one answer: see `trainer.enforcer`."""

    def allows(self, token: int) -> bool: ...

    def take(self, token: int) -> None: ...


@dataclass
class _Sequence:
    number: int
    prompt: Sequence[int]
    generator: torch.Generator
    guide: Guide | None
    room: int
    """Tokens that may still be written."""
    slot: int = -1
    known: int = 0
    """Tokens of the prompt that the slot holds already."""
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


class Sampler:
    """One model, a fixed number of slots. Not for concurrent use, nor for a model that is trained
    on meanwhile: what the slots hold would be another model's."""

    def __init__(self, model: Decoder, *, slots: int = 16, tokens: int | None = None) -> None:
        """`tokens`: that a slot can hold; by default what the model takes."""
        weight = model.lm_head.weight
        self.model = model
        self.cache = LatentCache(
            model.config,
            slots=slots,
            tokens=tokens or model.config.max_positions,
            device=weight.device,
            dtype=weight.dtype,
        )
        self._free = list(range(slots))
        """The one freed longest ago first."""
        self._held: list[list[int]] = [[] for _ in range(slots)]
        """Tokens that each slot's cache holds."""

    @torch.no_grad()
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling = Sampling(),
        *,
        stop: int,
        seeds: Sequence[int] | None = None,
        guides: Sequence[Guide] | None = None,
    ) -> list[Generated]:
        """An answer to each prompt, in their order. What row i draws hangs on its seed alone.

        ConfigError for a prompt that is empty or leaves no room in a slot, and where a guide allows
        no token at all.
        """
        waiting = deque(self._sequences(prompts, sampling, seeds, guides))
        done: dict[int, Generated] = {}
        active: list[_Sequence] = []
        while waiting or active:
            fresh: list[_Sequence] = []
            while waiting and self._free:
                fresh.append(waiting.popleft())
                self._take_slot(fresh[-1])
            if fresh:
                self._advance(fresh, [s.prompt[s.known :] for s in fresh], sampling)
            else:
                self._advance(active, [s.ids[-1:] for s in active], sampling)
            active += fresh
            still = []
            for sequence in active:
                if result := _ended(sequence, stop):
                    done[sequence.number] = result
                    self._free.append(sequence.slot)
                else:
                    still.append(sequence)
            active = still
        return [done[n] for n in range(len(prompts))]

    def _take_slot(self, sequence: _Sequence) -> None:
        """The free slot that holds most of the prompt's beginning. The last token is read in any
        case: what follows it is to be drawn."""
        prompt = list(sequence.prompt)
        shared = [_shared(self._held[slot], prompt[:-1]) for slot in self._free]
        place = max(range(len(self._free)), key=shared.__getitem__)
        sequence.slot, sequence.known = self._free.pop(place), shared[place]
        self._held[sequence.slot] = prompt[: sequence.known]
        self.cache.lengths_B[sequence.slot] = sequence.known

    def _sequences(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        seeds: Sequence[int] | None,
        guides: Sequence[Guide] | None,
    ) -> list[_Sequence]:
        made = []
        for number, prompt in enumerate(prompts):
            room = self.cache.capacity - len(prompt)
            if not prompt or room < 1:
                raise ConfigError(
                    f"prompt {number} has {len(prompt)} tokens; a slot holds "
                    f"{self.cache.capacity}, and at least one of them is for the answer"
                )
            generator = torch.Generator().manual_seed(seeds[number] if seeds else number)
            guide = guides[number] if guides else None
            room = min(room, sampling.max_tokens)
            made.append(_Sequence(number, prompt, generator, guide, room))
        return made

    def _advance(
        self, sequences: list[_Sequence], new: Sequence[Sequence[int]], sampling: Sampling
    ) -> None:
        """Feed new tokens and draw the next one of each sequence."""
        device = self.cache.lengths_B.device
        longest = max(map(len, new))
        ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in new], device=device)
        counts = torch.tensor([len(row) for row in new], device=device)
        slots = torch.tensor([s.slot for s in sequences], device=device)
        logits = self.model.logits(self.model.extend(ids, counts, slots, self.cache)).float()
        logprobs = logits.log_softmax(-1)
        for row, sequence in enumerate(sequences):
            self._held[sequence.slot].extend(new[row])
            token = _draw(logits[row].cpu(), sampling, sequence)
            sequence.ids.append(token)
            sequence.logprobs.append(logprobs[row, token].item())
            if sequence.guide is not None:
                sequence.guide.take(token)


def _ended(sequence: _Sequence, stop: int) -> Generated | None:
    if sequence.ids[-1] == stop:
        return Generated(sequence.ids[:-1], sequence.logprobs[:-1], "stop")
    if len(sequence.ids) >= sequence.room:
        return Generated(sequence.ids, sequence.logprobs, "length")
    return None


def _shared(held: list[int], prompt: list[int]) -> int:
    """Tokens that both begin with."""
    most = min(len(held), len(prompt))
    return bisect_left(range(1, most + 1), True, key=lambda n: held[:n] != prompt[:n])


def _draw(logits_V: Tensor, sampling: Sampling, sequence: _Sequence) -> int:
    """The next token. One that the guide does not allow is set aside, and the draw made again:
    the same as drawing among those that it allows, without asking about all of them."""
    guide = sequence.guide
    while True:
        token = _drawn(logits_V, sampling, sequence.generator)
        if guide is None or guide.allows(token):
            return token
        logits_V[token] = -torch.inf
        if not logits_V.isfinite().any():
            raise ConfigError(
                f"prompt {sequence.number}: no token of the vocabulary may follow what was written"
            )


def _drawn(logits_V: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    if sampling.temperature == 0.0:
        return int(logits_V.argmax())
    shares = (logits_V / sampling.temperature).softmax(-1)
    if sampling.top_p < 1.0:
        ordered, index = shares.sort(descending=True)
        before = ordered.cumsum(-1) - ordered
        ordered = ordered.masked_fill(before >= sampling.top_p, 0.0)
        shares = torch.zeros_like(shares).scatter(0, index, ordered)
    return int(torch.multinomial(shares, 1, generator=generator))
