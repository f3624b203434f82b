"""Sampling from a model: many sequences at a time, each with its own cache slot and seed.

A sequence that ends frees its slot for the next one at once (continuous batching). A slot remembers
what it holds: a prompt that begins so, as a conversation's next turn does, is read on from there. A
beginning that several prompts share, as the samples of one task do, is read once and copied.
Prompts are read in bounded passes, so that memory hangs on the cache and not on their number.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import torch
from torch import Tensor

from records.errors import ConfigError
from trainer.inference.drawing import Sampling, draw, uniform_of
from trainer.inference.routes import empty_routes, recorded_routes
from trainer.inference.slots import COPIED_TOKENS, HeldTokens, shared_tokens
from trainer.model.cache import LatentCache
from trainer.model.config import TransformerConfig
from trainer.model.decoder import Decoder

log = logging.getLogger(__name__)

READ_TOKENS = 2048
"""New tokens of prompts in one pass, padding included."""

READ_KEYS = 16_384
"""Tokens that the rows of a pass attend to, all together; a row by itself may have more."""

FinishReason = Literal["stop", "length", "guide"]
"""By the stop token; by a limit; because the answer's guide gave up."""


class GuideError(ConfigError):
    """A guide cannot say what may follow: its answer ends where it is."""


@dataclass
class AnswerDraft:
    """An answer in the making, as a value: whoever keeps it can draw on later, and elsewhere."""

    prompt: list[int]
    seed: int
    ids: list[int] = field(default_factory=list)
    """As drawn; the stop token is the last one of an answer that it ended."""
    logprobs: list[float] = field(default_factory=list)
    """Of each token under the distribution that it was drawn from."""
    model_logprobs: list[float] = field(default_factory=list)
    """Of each token under the model as it is, before temperature, top-p and grammar."""
    versions: list[int] = field(default_factory=list)
    """Of the weights that drew each token."""
    finish_reason: FinishReason | None = None
    """None while there is more to draw."""
    routes: Tensor | None = None
    """Experts of each token that was fed, the last drawn one not yet: (tokens, layers with experts,
    experts of a token), those of the pass that read the token last: what was drawn behind it was
    drawn from that reading. None where they were not asked for."""


class Guide(Protocol):
    """Says which tokens may come next in one answer: see `trainer.inference.enforcer`."""

    def allowed(self) -> Tensor:
        """Of each token of the tokenizer whether it may; on the CPU. GuideError where it cannot be
        told."""
        ...

    def take(self, token: int) -> None:
        """The token came next. GuideError where nothing can be told of what follows it."""
        ...


@dataclass
class _Sequence:
    number: int
    draft: AnswerDraft
    guide: Guide | None
    most: int
    """Tokens that the answer may have."""
    pause_at: int
    """Tokens that it may have before the caller is to be asked."""
    read: list[int]
    """What was there when it took its slot."""
    slot: int = -1
    known: int = 0
    """Tokens of them that the slot holds already."""

    @property
    def unread(self) -> Sequence[int]:
        return self.read[self.known :]


class Sampler:
    """One model, a fixed number of slots. Not for concurrent use, nor for a model that is trained
    on meanwhile: what the slots hold would be another model's."""

    def __init__(
        self, model: Decoder, *, slots: int = 16, tokens: int | None = None, routes: bool = False
    ) -> None:
        """`tokens`: that a slot can hold; by default, and at most, what the model takes. `routes`:
        keep which experts each token was sent to. ConfigError for no slot, and for slots of less
        than a token or of more than the model takes."""
        if slots < 1:
            raise ConfigError(f"slots = {slots}: a sampler has at least one")
        weight = model.lm_head.weight
        self.model = model
        self.version = 0
        """Of the weights; whoever changes them says which they are now."""
        self.cache = LatentCache(
            model.config,
            slots=slots,
            tokens=slot_tokens(model.config, tokens),
            device=weight.device,
            dtype=weight.dtype,
        )
        self._routes_BSLK = empty_routes(model, slots, self.cache.capacity) if routes else None
        self._slots = HeldTokens(self.cache, self._routes_BSLK)

    def forget(self) -> None:
        """Drop what the slots hold: it is of other weights."""
        self._slots.forget()

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling = Sampling(),
        *,
        stop: int,
        seeds: Sequence[int] | None = None,
        guides: Sequence[Guide] | None = None,
    ) -> list[AnswerDraft]:
        """A whole answer to each prompt, in their order. What row i draws hangs on its seed alone;
        without seeds it is its number. For errors see `draw`."""
        drafts = [
            AnswerDraft(list(prompt), seeds[number] if seeds else number)
            for number, prompt in enumerate(prompts)
        ]
        self.draw(drafts, sampling, stop=stop, guides=guides)
        return drafts

    @torch.no_grad()
    def draw(
        self,
        drafts: Sequence[AnswerDraft],
        sampling: Sampling,
        *,
        stop: int,
        guides: Sequence[Guide | None] | None = None,
        budget: int | None = None,
        paused: Callable[[], bool] | None = None,
    ) -> None:
        """Draw on at the end of each draft until it has ended, `budget` more tokens of it are drawn
        or `paused` says so, which is asked before every pass. A guide has taken a draft's tokens.

        A guide that gives up (`GuideError`) ends its own answer, with a warning. ConfigError for a
        prompt that is empty or leaves no room in a slot, where a guide allows no token at all, and
        for a model whose logits are no numbers. Drafts keep what was drawn.
        """
        if budget is not None and budget < 1:
            raise ValueError(f"budget must be at least one token, got {budget}")
        waiting = deque(self._sequences(drafts, sampling, guides, budget))
        active: list[_Sequence] = []
        try:
            while (waiting or active) and not (paused is not None and paused()):
                fresh: list[_Sequence] = []
                while waiting and self._slots.has_room:
                    fresh.append(waiting.popleft())
                    fresh[-1].slot, fresh[-1].known = self._slots.take(fresh[-1].read)
                begun, active = active, active + fresh
                self._begin(fresh, sampling)
                if not fresh:
                    last = [s.draft.ids[-1:] for s in begun]
                    self._write(begun, self._feed(begun, last), sampling)
                active = [s for s in active if not self._is_over(s, stop)]
        finally:
            for sequence in active:
                self._leave_slot(sequence)

    def _sequences(
        self,
        drafts: Sequence[AnswerDraft],
        sampling: Sampling,
        guides: Sequence[Guide | None] | None,
        budget: int | None,
    ) -> list[_Sequence]:
        made = []
        for number, draft in enumerate(drafts):
            room = self.cache.capacity - len(draft.prompt)
            if not draft.prompt or room < 1:
                raise ConfigError(
                    f"prompt {number} has {len(draft.prompt)} tokens; a slot holds "
                    f"{self.cache.capacity}, and at least one of them is for the answer"
                )
            most = min(room, sampling.max_tokens)
            if draft.finish_reason is None and len(draft.ids) >= most:
                draft.finish_reason = "length"  # it was paused under another limit
            elif draft.finish_reason is None:
                pause_at = most if budget is None else len(draft.ids) + budget
                guide = guides[number] if guides else None
                read = [*draft.prompt, *draft.ids]
                made.append(_Sequence(number, draft, guide, most, pause_at, read))
        return made

    def _begin(self, fresh: Sequence[_Sequence], sampling: Sampling) -> None:
        """Read what they begin with and draw the first token of each. One that begins as another of
        them comes after it and copies; one that reads the very same reads nothing."""
        first: list[_Sequence] = []
        same: list[tuple[_Sequence, _Sequence]] = []
        alike: list[tuple[_Sequence, _Sequence, int]] = []
        for sequence in fresh:
            shared = [0]
            if len(sequence.unread) > COPIED_TOKENS:
                shared = [shared_tokens(other.read, sequence.read[:-1]) for other in first]
            most = max(shared, default=0)
            if most - sequence.known < COPIED_TOKENS:
                first.append(sequence)
            elif (other := first[shared.index(most)]).read == sequence.read:
                same.append((sequence, other))
            else:
                alike.append((sequence, other, most))
        hidden: dict[int, Tensor] = {}
        for together in _passes(first):
            hidden_ND = self._read(together)
            hidden |= {s.slot: hidden_D for s, hidden_D in zip(together, hidden_ND, strict=True)}
            self._write(together, hidden_ND, sampling)
        for sequence, other, most in (*((s, o, len(s.read)) for s, o in same), *alike):
            self._slots.copy(other.slot, sequence.slot, most)
            sequence.known = most
        if same:
            hidden_ND = torch.stack([hidden[other.slot] for _, other in same])
            self._write([sequence for sequence, _ in same], hidden_ND, sampling)
        for together in _passes([sequence for sequence, _, _ in alike]):
            self._write(together, self._read(together), sampling)

    def _leave_slot(self, sequence: _Sequence) -> None:
        if self._routes_BSLK is not None:
            draft, held = sequence.draft, self._slots.count(sequence.slot)
            read = self._routes_BSLK[sequence.slot, :held].to("cpu", copy=True)
            unread = read[:0] if draft.routes is None else draft.routes[held:]
            draft.routes = torch.cat((read, unread))
        self._slots.leave(sequence.slot)

    def _is_over(self, sequence: _Sequence, stop: int) -> bool:
        """Whether nothing more is drawn of it now; then its slot is free."""
        draft = sequence.draft
        if draft.ids[-1:] == [stop]:
            draft.finish_reason = "stop"
        elif draft.finish_reason is None and len(draft.ids) >= sequence.most:
            draft.finish_reason = "length"
        over = draft.finish_reason is not None or len(draft.ids) >= sequence.pause_at
        if over:
            self._leave_slot(sequence)
        return over

    def _read(self, sequences: list[_Sequence]) -> Tensor:
        """The rest of what was there; a long one, which comes by itself, in parts."""
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
        if self._routes_BSLK is None:
            hidden = self.model.extend(ids, counts, slots, self.cache)
        else:
            with recorded_routes(self.model) as seen:
                hidden = self.model.extend(ids, counts, slots, self.cache)
            self._keep_routes(sequences, new, seen)
        for row, sequence in zip(new, sequences, strict=True):
            self._slots.add(sequence.slot, row)
        return hidden

    def _keep_routes(
        self, sequences: list[_Sequence], new: Sequence[Sequence[int]], seen: list[Tensor]
    ) -> None:
        if self._routes_BSLK is None or not seen:
            return
        fed_NTLK = torch.stack(seen, dim=1).unflatten(0, (len(new), -1))
        for sequence, row, routes_TLK in zip(sequences, new, fed_NTLK, strict=True):
            held = self._slots.count(sequence.slot)
            self._routes_BSLK[sequence.slot, held : held + len(row)] = routes_TLK[: len(row)]

    def _write(self, sequences: list[_Sequence], hidden: Tensor, sampling: Sampling) -> None:
        """Draw the next token of each sequence but those whose guide gives up."""
        logits_NV = self.model.logits(hidden)
        uniforms = [uniform_of(s.draft.seed, len(s.draft.ids)) for s in sequences]
        try:
            drawn = draw(logits_NV, sampling, uniforms, _allowed(sequences, logits_NV))
        except ValueError as error:
            raise ConfigError(f"{error}: its weights are damaged") from error
        for sequence, token, logprob, own in zip(sequences, *drawn, strict=True):
            draft = sequence.draft
            if draft.finish_reason is not None:
                continue
            draft.ids.append(token)
            draft.logprobs.append(logprob)
            draft.model_logprobs.append(own)
            draft.versions.append(self.version)
            if sequence.guide is not None:
                try:
                    sequence.guide.take(token)
                except GuideError as error:
                    _give_up(sequence, error)


def slot_tokens(config: TransformerConfig, tokens: int | None) -> int:
    """That a slot holds: `tokens`, or what the model takes, which is the most there can be."""
    room = config.max_positions if tokens is None else tokens
    if not 1 <= room <= config.max_positions:
        raise ConfigError(
            f"a slot of {room} tokens: the model takes {config.max_positions} at most, and a slot "
            "holds one at least"
        )
    return room


def _give_up(sequence: _Sequence, error: GuideError) -> None:
    draft = sequence.draft
    draft.finish_reason = "guide"
    log.warning("answer %d ends after %d tokens: %s", sequence.number, len(draft.ids), error)


def _allowed(sequences: Sequence[_Sequence], logits_NV: Tensor) -> Tensor | None:
    """What the guides say, for all rows; None where there are none. Of a row whose guide gives up
    anything, since nothing is drawn for it."""
    if all(sequence.guide is None for sequence in sequences):
        return None
    allowed_NV = torch.ones(logits_NV.shape, dtype=torch.bool)
    for sequence, row_V in zip(sequences, allowed_NV, strict=True):
        if sequence.guide is not None:
            try:
                own = sequence.guide.allowed()
            except GuideError as error:
                _give_up(sequence, error)
                continue
            row_V[: len(own)] = own
            row_V[len(own) :] = False  # rows of the head that are no token of the tokenizer
            if not own.any():
                raise ConfigError(
                    f"prompt {sequence.number}: no token of the vocabulary may follow what was "
                    "written"
                )
    return allowed_NV.to(logits_NV.device)


def _passes(fresh: Sequence[_Sequence]) -> Iterator[list[_Sequence]]:
    """Which prompts are read together: such as are alike in length, since rows are padded."""
    together: list[_Sequence] = []
    for sequence in sorted(fresh, key=lambda s: len(s.unread)):
        rows = len(together) + 1
        keys = max(len(s.read) for s in [*together, sequence])
        if together and (rows * len(sequence.unread) > READ_TOKENS or rows * keys > READ_KEYS):
            yield together
            together = []
        together.append(sequence)
    if together:
        yield together
