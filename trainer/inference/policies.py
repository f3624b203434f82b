"""Who answers in an evaluation: a model, or the nearest example of the training data."""

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import torch
from torch import Tensor

from records.chat.k2 import END, ChatMessage
from records.errors import ConfigError
from trainer.data.chat import AssistantAnswer, encode_chat, prompt_for_answer
from trainer.data.chat_format import ChatFormat
from trainer.data.sources import CorpusConfig, TrainingConversation, is_learnt_from, samples_of
from trainer.inference.drawing import Sampling
from trainer.inference.enforcer import AnswerGrammar, Enforcer
from trainer.inference.episode_tokens import EpisodeTokens
from trainer.inference.loading import load_sampler
from trainer.inference.sampler import AnswerDraft
from trainer.inference.weights import checksum_of, load_weights
from trainer.training.devices import Device

log = logging.getLogger(__name__)


class PolicyRequest(NamedTuple):
    """A conversation that waits for the assistant."""

    messages: Sequence[ChatMessage]
    tools: Sequence[Mapping[str, Any]]
    """In OpenAI's form."""
    seed: int
    tokens: EpisodeTokens | None = None
    """Those of the same conversation's earlier requests, empty at its first one: a policy that has
    tokens writes into it what it read and drew. None: nothing is kept from turn to turn."""


class Policy(Protocol):
    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]: ...

    def prompt_tokens(self, asked: PolicyRequest) -> int:
        """Size of what the policy reads, in its own tokens; 0 where it has none."""
        ...


class ModelPolicy:
    """A model that was trained here, or anything `trainer.model.exchange` imports."""

    def __init__(
        self,
        folder: Path,
        sampling: Sampling = Sampling(),
        *,
        chat: ChatFormat = ChatFormat(),
        constrained: bool = False,
        slots: int = 32,
        slot_tokens: int | None = None,
        device: Device = "auto",
        routes: bool = False,
    ) -> None:
        """`chat`: how conversations are written, which must be as it was in training. `routes`:
        keep which experts each token was sent to. For ConfigError see
        `trainer.inference.loading`."""
        self._sampler, self.tokenizer = load_sampler(
            folder, device=device, slots=slots, tokens=slot_tokens, routes=routes
        )
        self._grammar = AnswerGrammar(self.tokenizer, where=str(folder)) if constrained else None
        self.sampling = sampling
        """Of the answers drawn from now on."""
        self._chat = chat

    @property
    def version(self) -> int:
        """Of the weights: 0 for those that it began with."""
        return self._sampler.version

    @property
    def slots(self) -> int:
        """Answers that are drawn beside each other."""
        return len(self._sampler.cache.lengths_B)

    def checksum(self) -> str:
        """Of the weights as they are here."""
        return checksum_of(self._sampler.model.state_dict().items())

    def forget(self) -> None:
        """Drop what is kept of earlier prompts: what is drawn from now on hangs on nothing that was
        drawn before, to the last bit."""
        self._sampler.forget()

    def load(
        self, weights: Path | Mapping[str, Tensor], version: int, *, checksum: str | None = None
    ) -> str:
        """Take other weights in place of those that are here: see
        `trainer.inference.weights.load_weights`."""
        return load_weights(self._sampler, weights, version, checksum=checksum)

    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        """Temperature 0 takes no seed's word. A prompt that fills a slot is answered by silence,
        and a warning."""
        made = self.draw(asked)
        assert all(answer is not None for answer in made)  # nothing said that they should pause
        return [answer for answer in made if answer is not None]

    def open(self, asked: PolicyRequest) -> None:
        """Read a request before it is drawn beside others, so that what is wrong with it is told of
        it alone. ConfigError for a request without tokens, for a conversation that cannot be
        written or is not that of its tokens, and for tools that a grammar cannot be made of."""
        if asked.tokens is None:
            raise ConfigError("a request that is opened needs tokens to keep it in")
        asked.tokens.open_answer(
            self.tokenizer, asked.messages, asked.tools, chat=self._chat, seed=asked.seed
        )
        if self._grammar is not None:
            self._guide(asked, asked.tokens.draft())

    def draw(
        self,
        asked: Sequence[PolicyRequest],
        *,
        budget: int | None = None,
        paused: Callable[[], bool] | None = None,
    ) -> list[AssistantAnswer | None]:
        """Answers that may pause: after `budget` more tokens of each, or when `paused`, which is
        asked before every pass, says so. None for one that is not at its end: the same request,
        with its tokens, goes on with it.

        ConfigError for a pause that could not be gone on from, since a request keeps no tokens, and
        for a conversation that is not that of its tokens (`ChangedConversationError`).
        """
        if (budget is not None or paused is not None) and any(one.tokens is None for one in asked):
            raise ConfigError("an answer that may pause needs a request with tokens to keep it in")
        tokens = [one.tokens if one.tokens is not None else EpisodeTokens() for one in asked]
        for one, kept in zip(asked, tokens, strict=True):
            kept.open_answer(
                self.tokenizer, one.messages, one.tools, chat=self._chat, seed=one.seed
            )
        drafts = {number: kept.draft() for number, kept in enumerate(tokens)}
        most = self._sampler.cache.capacity
        full = [number for number, draft in drafts.items() if len(draft.prompt) >= most]
        for number in full:
            drafts.pop(number)
            tokens[number].keep_silence(self.tokenizer)
        if full:
            log.warning("%d prompts fill the %d tokens of a slot: not answered", len(full), most)
        try:
            self._sampler.draw(
                list(drafts.values()),
                self.sampling,
                stop=self.tokenizer.special[END],
                guides=[self._guide(asked[n], d) for n, d in drafts.items()]
                if self._grammar
                else None,
                budget=budget,
                paused=paused,
            )
        finally:
            for number, draft in drafts.items():
                tokens[number].keep(draft, self.tokenizer)
        return [kept.answer(self.tokenizer) if kept.begun_at is None else None for kept in tokens]

    def prompt_tokens(self, asked: PolicyRequest) -> int:
        ids = encode_chat(self.tokenizer, asked.messages, asked.tools, chat=self._chat).ids
        return len(ids) + len(prompt_for_answer(self.tokenizer))

    def _guide(self, asked: PolicyRequest, draft: AnswerDraft) -> Enforcer:
        assert self._grammar is not None
        enforcer = self._grammar.enforcer(
            asked.tools,
            calls_before=num_calls(asked.messages),
            thinking=self._chat.thinking,
        )
        for token in draft.ids:
            enforcer.take(token)
        return enforcer


def num_calls(messages: Iterable[ChatMessage]) -> int:
    return sum(len(message.get("tool_calls") or ()) for message in messages)


BUCKETS = 1024
"""Size of a bag of hashed words."""

MOST_EXAMPLES = 50_000
"""Answers that are compared with, at most."""

_WORD = re.compile(r"[A-Za-z_]+|\d+")


class NearestExample:
    """Says what the assistant said at the most similar point of a training conversation: what
    copying alone reaches. An example whose calls name tools that are not there is passed over."""

    def __init__(self, source: CorpusConfig) -> None:
        self._said: list[ChatMessage] = []
        bags: list[Tensor] = []
        for sample in samples_of(source, "sft"):
            if isinstance(sample.body, TrainingConversation) and is_learnt_from(sample, source):
                for at, message in enumerate(sample.body.messages):
                    if message.get("role") == "assistant" and len(bags) < MOST_EXAMPLES:
                        bags.append(_bag(sample.body.messages[:at], sample.body.tools))
                        self._said.append(message)
        self._bags_EV = torch.stack(bags) if bags else torch.zeros(0, BUCKETS)

    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        return [self._answer(one) for one in asked]

    def prompt_tokens(self, asked: PolicyRequest) -> int:
        return 0

    def _answer(self, asked: PolicyRequest) -> AssistantAnswer:
        names = {tool["function"]["name"] for tool in asked.tools}
        likeness = self._bags_EV @ _bag(asked.messages, asked.tools)
        for place in likeness.argsort(descending=True, stable=True).tolist():
            message = self._said[place]
            calls = message.get("tool_calls") or ()
            if all(call["function"]["name"] in names for call in calls):
                return AssistantAnswer(
                    message.get("content") or "", [_plain(call) for call in calls], None
                )
        return AssistantAnswer("", [], None)


def _plain(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = function["arguments"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"type": "function", "function": {"name": function["name"], "arguments": text}}


def _bag(messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]) -> Tensor:
    """Words of the last two messages, the tools' names and the place in the conversation, hashed
    and scaled to length 1. Shape [BUCKETS]."""
    recent = " ".join(_text(message) for message in messages[-2:])
    words = [word.lower() for word in _WORD.findall(recent)]
    words += [f"tool:{tool['function']['name']}" for tool in tools]
    words += [f"message:{len(messages)}"] * 5
    bag = torch.zeros(BUCKETS)
    bag.index_add_(0, torch.tensor([_bucket(w) for w in words]), torch.ones(len(words)))
    return bag / bag.norm()


def _text(message: ChatMessage) -> str:
    calls = message.get("tool_calls") or ()
    return f"{message.get('content') or ''} " + " ".join(c["function"]["name"] for c in calls)


def _bucket(word: str) -> int:
    # Python's own hash differs from process to process
    return crc32(word.encode()) % BUCKETS
