"""The tokens of a conversation as its policy read and drew them: tokens in, tokens out.

    prompt (all messages there are, the answer's header) | answer, as drawn | messages of others,
    the next answer's header | answer, as drawn | ...

What was drawn is never encoded again: a text that the tokenizer would cut otherwise, or a call that
another program would spell otherwise, stays as it was drawn. Messages of others are encoded once,
each by itself, which the template allows (`trainer.data.chat`). An answer that was cut by length,
or not answered for want of room, is closed with the end token, which then counts as not drawn;
nothing else is mended: an answer that breaks the template is followed by what answers it.

A model that thinks is not shown what it thought in turns before (`trainer.data.chat`): each of its
turns is a sequence of its own, and those before lie in `earlier`.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from records.chat.k2 import END, ChatMessage, text_of, turn_start
from records.digest import canonical_json, digest
from records.errors import ConfigError
from trainer.data.chat import AssistantAnswer, encode_chat, parse_answer, prompt_for_answer
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import Tokenizer
from trainer.inference.routes import ROUTE_DTYPE
from trainer.inference.sampler import AnswerDraft, FinishReason

FORMAT = 1
"""Of what `EpisodeTokens.to_json` writes."""


class ChangedConversationError(ConfigError):
    """The messages are not those that the tokens stand for, with more behind them."""


class AnswerSpan(NamedTuple):
    """One answer of the policy among the tokens."""

    begin: int
    end: int
    """Behind its last drawn token."""
    finish_reason: FinishReason | Literal["no_room"]
    """`stop`: by the end token, which it drew; `length`: cut; `guide`: cut where the grammar gave
    up; `no_room`: nothing was drawn."""


@dataclass
class EpisodeTokens:
    """One conversation of an episode. Empty at first; whoever plays the episode keeps it and hands
    it over with every request (`PolicyRequest.tokens`)."""

    ids: list[int] = field(default_factory=list)
    logprobs: list[float | None] = field(default_factory=list)
    """Of each drawn token under the distribution that it was drawn from; None for the others."""
    model_logprobs: list[float | None] = field(default_factory=list)
    """The same under the model: temperature 1, no top-p, no grammar."""
    versions: list[int | None] = field(default_factory=list)
    """Of the weights that drew the token."""
    routes: Tensor | None = None
    """Experts of the tokens that were fed, from the first on: (tokens, layers with experts, experts
    of a token). Of a conversation that went on under other weights all are of these: they read it
    all again, and to them every token is as likely as by these experts, whoever drew it. None where
    the policy keeps none."""
    answers: list[AnswerSpan] = field(default_factory=list)
    messages: list[ChatMessage] = field(default_factory=list)
    """Those that stand in the tokens as they were handed over, so without the last answer."""
    begun_at: int | None = None
    """Where an answer begins that is not yet drawn to its end; None between answers."""
    seed: int = 0
    """Of that answer."""
    earlier: list["EpisodeTokens"] = field(default_factory=list)
    """Of turns that are over, the first one first; of a model that does not think, none."""
    declared: str = ""
    """Digest of tokenizer and tools: the tokens mean nothing with others."""

    @property
    def drawn(self) -> list[bool]:
        """Of each token whether the policy drew it."""
        return [version is not None for version in self.versions]

    def open_answer(
        self,
        tokenizer: Tokenizer,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, Any]],
        *,
        chat: ChatFormat,
        seed: int,
    ) -> None:
        """Add what is new of `messages`, and the header of the next answer. Does nothing where an
        answer to these messages is begun.

        ChangedConversationError, and nothing is added, where `messages` do not begin with those
        that are here and the last answer, where one behind them is the assistant's, or where tools
        or tokenizer are others.
        """
        declared = digest(_fingerprint(tokenizer), list(tools), chat.model_dump())
        if not self.ids:
            new = encode_chat(tokenizer, messages, tools, chat=chat).ids
        elif declared != self.declared:
            raise ChangedConversationError(
                "the tools or the tokenizer are not those of the conversation's tokens; begin with "
                "new EpisodeTokens"
            )
        else:
            self._check(tokenizer, messages)
            if self.begun_at is not None:
                return
            if chat.thinking and turn_start(messages) > turn_start(self.messages):
                earlier = [*self.earlier, replace(self, earlier=[])]
                vars(self).update(vars(EpisodeTokens(earlier=earlier)))
                self.open_answer(tokenizer, messages, tools, chat=chat, seed=seed)
                return
            new = _encoded(tokenizer, messages, len(self.messages) + 1)
        self._add([*new, *prompt_for_answer(tokenizer)])
        self.messages = json.loads(json.dumps(list(messages)))  # the caller may go on writing to it
        self.begun_at, self.seed, self.declared = len(self.ids), seed, declared

    def draft(self) -> AnswerDraft:
        """The answer that is begun, to be drawn on. ValueError between answers."""
        at = self._begin()
        return AnswerDraft(
            prompt=self.ids[:at],
            seed=self.seed,
            ids=self.ids[at:],
            logprobs=[value for value in self.logprobs[at:] if value is not None],
            model_logprobs=[value for value in self.model_logprobs[at:] if value is not None],
            versions=[value for value in self.versions[at:] if value is not None],
            routes=self.routes,
        )

    def keep(self, draft: AnswerDraft, tokenizer: Tokenizer) -> None:
        """What was drawn of the answer that is begun, to its end or not."""
        at = self._begin()
        self.ids[at:] = draft.ids
        self.logprobs[at:] = draft.logprobs
        self.model_logprobs[at:] = draft.model_logprobs
        self.versions[at:] = draft.versions
        self.routes = draft.routes
        if draft.finish_reason is not None:
            self._close(tokenizer, draft.finish_reason)

    def keep_silence(self, tokenizer: Tokenizer) -> None:
        """There was no room to draw a token."""
        self._close(tokenizer, "no_room")

    def answer(self, tokenizer: Tokenizer) -> AssistantAnswer:
        """The last answer that was drawn to its end, or that there was no room for."""
        last = self.answers[-1]
        if last.finish_reason == "no_room":  # nothing was written, so nothing is wrong in form
            return AssistantAnswer("", [], None)
        return parse_answer(tokenizer, self.ids[last.begin : last.end])

    def to_json(self) -> str:
        """All of it, for `of_json` in this process or another."""
        routes = None
        if self.routes is not None:
            text = base64.b64encode(self.routes.contiguous().numpy().tobytes()).decode()
            routes = {"shape": list(self.routes.shape), "int16": text}
        told = {**vars(self), "routes": routes, "earlier": [e.to_json() for e in self.earlier]}
        return json.dumps({"format": FORMAT, **told}, ensure_ascii=False)

    @classmethod
    def of_json(cls, text: str) -> "EpisodeTokens":
        """ConfigError for a text that `to_json` did not write."""
        try:
            told = json.loads(text)
            if told.pop("format") != FORMAT:
                raise ValueError(f"format is not {FORMAT}")
            told["answers"] = [AnswerSpan(*answer) for answer in told["answers"]]
            told["earlier"] = [cls.of_json(own) for own in told["earlier"]]
            if (routes := told["routes"]) is not None:
                content = bytearray(base64.b64decode(routes["int16"], validate=True))
                # of a model without experts there are none, and no bytes are no buffer
                kept = torch.frombuffer(content, dtype=ROUTE_DTYPE) if content else torch.empty(0)
                told["routes"] = kept.to(ROUTE_DTYPE).reshape(routes["shape"])
            made = cls(**told)
            if {len(made.logprobs), len(made.model_logprobs), len(made.versions)} != {
                len(made.ids)
            }:
                raise ValueError("its columns are not of one length")
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            raise ConfigError(f"these are no stored tokens of an episode: {error}") from error
        return made

    def _begin(self) -> int:
        if self.begun_at is None:
            raise ValueError("no answer is begun: call open_answer first")
        return self.begun_at

    def _close(self, tokenizer: Tokenizer, reason: FinishReason | Literal["no_room"]) -> None:
        self.answers.append(AnswerSpan(self._begin(), len(self.ids), reason))
        self.begun_at = None
        if reason != "stop":
            self._add([tokenizer.special[END]])

    def _add(self, ids: Sequence[int]) -> None:
        """Tokens that the policy did not draw."""
        self.ids.extend(ids)
        for column in (self.logprobs, self.model_logprobs, self.versions):
            column.extend([None] * len(ids))

    def _check(self, tokenizer: Tokenizer, messages: Sequence[ChatMessage]) -> None:
        known = len(self.messages)
        for number, (then, now) in enumerate(zip(self.messages, messages, strict=False)):
            if canonical_json(then) != canonical_json(now):
                raise _changed(number, now, "is not what it was")
        if len(messages) < known:
            raise ChangedConversationError(
                f"the conversation has {len(messages)} messages and had {known}; begin with new "
                "EpisodeTokens"
            )
        if self.begun_at is not None:
            if len(messages) > known:
                raise _changed(known, messages[known], "came while an answer was being drawn")
            return
        if len(messages) == known or _said(messages[known]) != _spoken(self.answer(tokenizer)):
            place = messages[known] if len(messages) > known else {}
            raise _changed(known, place, "is not the answer that was drawn")
        for number, message in enumerate(messages[known + 1 :], known + 1):
            if message.get("role") == "assistant":
                raise _changed(number, message, "was not drawn")


@lru_cache(maxsize=8)
def _fingerprint(tokenizer: Tokenizer) -> str:
    """Kept, since all of a large tokenizer is written out for it."""
    return digest(tokenizer.fingerprint)


def _changed(number: int, message: ChatMessage, why: str) -> ChangedConversationError:
    return ChangedConversationError(
        f"message {number} of the conversation ({message.get('role', 'missing')}) {why}: the "
        "policy's tokens do not stand for it; begin with new EpisodeTokens"
    )


def _spoken(answer: AssistantAnswer) -> list[Any]:
    return ["assistant", answer.content, _calls(answer.tool_calls)]


def _said(message: ChatMessage) -> list[Any]:
    return [message.get("role"), text_of(message), _calls(message.get("tool_calls") or ())]


def _calls(calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Names and arguments, be these kept as text or read as JSON."""
    return [[call["function"]["name"], _read(call["function"]["arguments"])] for call in calls]


def _read(arguments: Any) -> Any:
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def _encoded(tokenizer: Tokenizer, messages: Sequence[ChatMessage], first: int) -> list[int]:
    """The tokens of the messages from `first` on, none of which is the assistant's. A result names
    its call by the place that the call has in the whole conversation."""
    names: dict[str, str] = {}
    count = 0
    for message in messages[:first]:
        for call in message.get("tool_calls") or ():
            name = f"functions.{call['function']['name']}:{count}"
            names[call.get("id") or name] = name
            count += 1
    own: list[ChatMessage] = []
    for message in messages[first:]:
        given = message.get("tool_call_id") or ""
        own.append({**message, "tool_call_id": names.get(given, given)})
    # behind a system message nothing is added that only the beginning of a conversation has
    opening: ChatMessage = {"role": "system", "content": ""}
    before = encode_chat(tokenizer, [opening]).ids
    return encode_chat(tokenizer, [opening, *own]).ids[len(before) :]
