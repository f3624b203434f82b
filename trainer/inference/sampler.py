"""Sampling from a model: many sequences at a time, each with its own cache slot and seed.

A sequence that ends frees its slot for the next one at once (continuous batching). A slot remembers
what it holds: a prompt that begins so, as a conversation's next turn does, is read on from there.
Prompts are read in bounded passes, so that memory hangs on the cache and not on their number.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import torch
from pydantic import Field
from torch import Tensor

from records.config import Config
from records.errors import ConfigError
from trainer.model.cache import LatentCache
from trainer.model.decoder import Decoder

READ_TOKENS = 2048
"""New tokens of prompts in one pass, padding included."""

READ_KEYS = 16_384
"""Tokens that the rows of a pass attend to, all together; a row by itself may have more."""


class Sampling(Config):
    temperature: float = Field(default=0.0, ge=0.0, le=10.0)
    """0 takes the likeliest token."""
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    """Only the likeliest tokens that make up this share are drawn from."""
    max_tokens: int = Field(default=256, ge=1)
    """Tokens of one answer at most."""


class Generated(NamedTuple):
    ids: list[int]
    """The stop token is not among them."""
    logprobs: list[float]
    """Of each token under the model as it is, before temperature and top-p."""
    finish_reason: Literal["stop", "length"]


class Guide(Protocol):
    """Says which tokens may come next in one answer: see `trainer.inference.enforcer`."""

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

    @property
    def unread(self) -> Sequence[int]:
        return self.prompt[self.known :]


class Sampler:
    """One model, a fixed number of slots. Not for concurrent use, nor for a model that is trained
    on meanwhile: what the slots hold would be another model's."""

    def __init__(self, model: Decoder, *, slots: int = 16, tokens: int | None = None) -> None:
        """`tokens`: that a slot can hold; by default, and at most, what the model takes."""
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

        ConfigError for a prompt that is empty or leaves no room in a slot, where a guide allows no
        token at all, and for a model whose logits are no numbers.
        """
        waiting = deque(self._sequences(prompts, sampling, seeds, guides))
        done: dict[int, Generated] = {}
        active: list[_Sequence] = []
        while waiting or active:
            fresh: list[_Sequence] = []
            while waiting and self._free:
                fresh.append(waiting.popleft())
                self._take_slot(fresh[-1])
            for together in _passes(fresh):
                self._write(together, self._read(together), sampling)
            if not fresh:
                self._write(active, self._feed(active, [s.ids[-1:] for s in active]), sampling)
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

    def _read(self, sequences: list[_Sequence]) -> Tensor:
        """The rest of their prompts; a long one, which comes by itself, in parts."""
        for sequence in sequences:
            while len(sequence.unread) > READ_TOKENS:
                self._feed([sequence], [sequence.unread[:READ_TOKENS]])
                sequence.known += READ_TOKENS
        return self._feed(sequences, [s.unread for s in sequences])

    def _feed(self, sequences: list[_Sequence], new: Sequence[Sequence[int]]) -> Tensor:
        """Put new tokens behind what the slots hold; the hidden state of each row's last one."""
        device = self.cache.lengths_B.device
        longest = max(map(len, new))
        ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in new], device=device)
        counts = torch.tensor([len(row) for row in new], device=device)
        slots = torch.tensor([s.slot for s in sequences], device=device)
        for row, sequence in zip(new, sequences, strict=True):
            self._held[sequence.slot].extend(row)
        return self.model.extend(ids, counts, slots, self.cache)

    def _write(self, sequences: list[_Sequence], hidden: Tensor, sampling: Sampling) -> None:
        """Draw the next token of each sequence."""
        logits_NV = self.model.logits(hidden).float().cpu()
        if not logits_NV.isfinite().all():
            raise ConfigError("the model's logits are no numbers: its weights are damaged")
        logprobs_NV = logits_NV.log_softmax(-1)  # a copy: drawing sets tokens aside in the logits
        tokens = [_draw(row, sampling, s) for row, s in zip(logits_NV, sequences, strict=True)]
        logprobs = logprobs_NV[range(len(tokens)), tokens].tolist()
        for sequence, token, logprob in zip(sequences, tokens, logprobs, strict=True):
            sequence.ids.append(token)
            sequence.logprobs.append(logprob)
            if sequence.guide is not None:
                sequence.guide.take(token)


def _passes(fresh: Sequence[_Sequence]) -> Iterator[list[_Sequence]]:
    """Which prompts are read together: such as are alike in length, since rows are padded."""
    together: list[_Sequence] = []
    for sequence in sorted(fresh, key=lambda s: len(s.unread)):
        rows = len(together) + 1
        keys = max(len(s.prompt) for s in [*together, sequence])
        if together and (rows * len(sequence.unread) > READ_TOKENS or rows * keys > READ_KEYS):
            yield together
            together = []
        together.append(sequence)
    if together:
        yield together


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
    token, guide = _drawn(logits_V, sampling, sequence.generator), sequence.guide
    if guide is None or guide.allows(token):
        return token
    if sampling.temperature == 0.0:  # in the order in which they would be drawn, sorted once
        order = logits_V.argsort(descending=True, stable=True).tolist()
        allowed = next((token for token in order if guide.allows(token)), None)
    else:
        allowed = _redrawn(logits_V, token, sampling, sequence.generator, guide)
    if allowed is None:
        raise ConfigError(
            f"prompt {sequence.number}: no token of the vocabulary may follow what was written"
        )
    return allowed


def _redrawn(
    logits_V: Tensor, token: int, sampling: Sampling, generator: torch.Generator, guide: Guide
) -> int | None:
    """Draws until the guide allows one; None when all have been set aside."""
    while not guide.allows(token):
        logits_V[token] = -torch.inf
        if not logits_V.isfinite().any():
            return None
        token = _drawn(logits_V, sampling, generator)
    return token


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
