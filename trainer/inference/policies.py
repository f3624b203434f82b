"""Who answers in an evaluation: a model, or the nearest example of the training data."""

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import torch
from torch import Tensor

from trainer.data.chat import (
    END,
    AssistantAnswer,
    ChatMessage,
    encode_chat,
    parse_answer,
    prompt_for_answer,
)
from trainer.data.chat_format import ChatFormat
from trainer.data.sources import CorpusConfig, TrainingConversation, is_learnt_from, samples_of
from trainer.inference.enforcer import Enforcer, check_spelling
from trainer.inference.loading import load_sampler
from trainer.inference.sampler import Sampling
from trainer.training.devices import Device

log = logging.getLogger(__name__)


class PolicyRequest(NamedTuple):
    """A conversation that waits for the assistant."""

    messages: Sequence[ChatMessage]
    tools: Sequence[Mapping[str, Any]]
    """In OpenAI's form."""
    seed: int


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
    ) -> None:
        """`chat`: how conversations are written, which must be as it was in training. For
        ConfigError see `trainer.inference.loading`."""
        self._sampler, self.tokenizer = load_sampler(
            folder, device=device, slots=slots, tokens=slot_tokens
        )
        if constrained:
            check_spelling(self.tokenizer, where=str(folder))
        self._sampling = sampling
        self._chat = chat
        self._constrained = constrained

    def answers(self, asked: Sequence[PolicyRequest]) -> list[AssistantAnswer]:
        """Temperature 0 takes no seed's word. A prompt that fills a slot is answered by silence,
        and a warning."""
        prompts = [self._prompt(a) for a in asked]
        fitting = [n for n, ids in enumerate(prompts) if len(ids) < self._sampler.cache.capacity]
        if silent := len(asked) - len(fitting):
            most = self._sampler.cache.capacity
            log.warning("%d prompts fill the %d tokens of a slot: not answered", silent, most)
        guides = [self._guide(asked[n]) for n in fitting] if self._constrained else None
        made = self._sampler.generate(
            [prompts[n] for n in fitting],
            self._sampling,
            stop=self.tokenizer.special[END],
            seeds=[asked[n].seed for n in fitting],
            guides=guides,
        )
        said = dict(zip(fitting, made, strict=True))
        return [
            parse_answer(self.tokenizer, said[n].ids)
            if n in said
            else AssistantAnswer(
                "", [], None
            )  # no room: nothing was written, so nothing is wrong in form
            for n in range(len(asked))
        ]

    def prompt_tokens(self, asked: PolicyRequest) -> int:
        return len(self._prompt(asked))

    def _prompt(self, asked: PolicyRequest) -> list[int]:
        ids = encode_chat(self.tokenizer, asked.messages, asked.tools, chat=self._chat).ids
        return ids + prompt_for_answer(self.tokenizer)

    def _guide(self, asked: PolicyRequest) -> Enforcer:
        return Enforcer(
            self.tokenizer,
            asked.tools,
            calls_before=num_calls(asked.messages),
            thinking=self._chat.thinking,
        )


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
