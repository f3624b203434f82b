"""Drawn tokens as answers of the protocol: whole, or in pieces while they are drawn.

An answer that breaks the model's template, as one that was cut within a call does, is all words:
its tokens as they are spelt, marks included, and no call. Whoever plays it sees what was written,
and nothing is carried out that was not asked for in form.
"""

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from offline_llm.server.response import event_of
from records.chat.k2 import END
from trainer.data.chat import parse_answer
from trainer.data.tokenizer import Tokenizer
from trainer.inference.sampler import AnswerDraft
from trainer.serving.asked import ChatAsked

_HALF = "\ufffd"
"""What a decoder makes of a letter's first bytes without its last."""

_FINISH = {"stop": "stop", "length": "length", "guide": "length"}
"""An answer whose grammar gave up is cut like one that met its limit."""


class SaidAnswer(NamedTuple):
    content: str
    reasoning: str | None
    calls: tuple[tuple[str, str], ...]
    """Tool and arguments, which are the model's own text."""


def said_in(tokenizer: Tokenizer, ids: Sequence[int], stop: Sequence[str]) -> SaidAnswer:
    """What an answer that is over says. Words end before a text of `stop`, and with them all."""
    answer = parse_answer(tokenizer, ids)
    content, cut = _before(answer.content, stop)
    if cut:
        return SaidAnswer(content, answer.reasoning_content, ())
    if answer.broken is not None:
        return SaidAnswer(_before(_spelt(tokenizer, ids), stop)[0], None, ())
    functions = [call["function"] for call in answer.tool_calls]
    calls = tuple((function["name"], function["arguments"]) for function in functions)
    return SaidAnswer(content, answer.reasoning_content, calls)


def meets_stop(tokenizer: Tokenizer, ids: Sequence[int], stop: Sequence[str]) -> bool:
    """Whether the words so far hold a text to stop at."""
    return bool(stop) and _before(parse_answer(tokenizer, ids).content, stop)[1]


def _before(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """(the text before the first of the texts to stop at, whether there is one)."""
    places = [place for one in stop if (place := text.find(one)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def _spelt(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    whole = list(ids)
    end = tokenizer.special[END]
    return tokenizer.decode(whole[: whole.index(end)] if end in whole else whole)


class Answering:
    """The answer to one request, in the protocol's forms."""

    def __init__(self, tokenizer: Tokenizer, asked: ChatAsked, draft: AnswerDraft) -> None:
        self._tokenizer, self._asked, self._draft = tokenizer, asked, draft
        self._head: dict[str, Any] = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": asked.request.model,
        }
        self._sent = SaidAnswer("", None, ())
        """Of a stream: what has gone out."""

    def whole(self) -> dict[str, Any]:
        """Of an answer that is over."""
        said = said_in(self._tokenizer, self._draft.ids, self._asked.stop)
        message: dict[str, Any] = {"role": "assistant", "content": said.content}
        if said.reasoning:
            message["reasoning_content"] = said.reasoning
        if said.calls:
            message["content"] = said.content or None
            message["tool_calls"] = self._calls(said)
        choice: dict[str, Any] = {
            "index": 0,
            "message": message,
            "logprobs": {"content": self._logprobs()} if self._asked.logprobs else None,
            "finish_reason": self._finish_reason(said),
        }
        told: dict[str, Any] = {}
        if self._asked.token_ids:
            choice["token_ids"] = list(self._draft.ids)
            told["prompt_token_ids"] = list(self._draft.prompt)
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": self._usage(),
            **told,
        }

    def opening(self) -> bytes:
        """The first event of a stream."""
        return self._chunk({"role": "assistant", "content": ""})

    def news(self) -> Iterator[bytes]:
        """Words that were written since the last event and that nothing to come can change: no
        part of a letter, nor what a text to stop at may begin with. Calls come at the end."""
        answer = parse_answer(self._tokenizer, list(self._draft.ids))
        yield from self._new_words(answer.reasoning_content or "", answer.content, held=True)

    def ending(self) -> Iterator[bytes]:
        """What is left of an answer that is over: words, calls, reason, and usage where asked."""
        said = said_in(self._tokenizer, self._draft.ids, self._asked.stop)
        if not said.content.startswith(self._sent.content):  # it broke the template later on
            self._sent = SaidAnswer("", self._sent.reasoning, ())
        yield from self._new_words(said.reasoning or "", said.content, held=False)
        for index, call in enumerate(self._calls(said)):
            yield self._chunk({"tool_calls": [{"index": index, **call}]})
        yield self._chunk({}, self._finish_reason(said))
        if self._asked.request.include_usage:
            yield event_of(self._chunk_of([]) | {"usage": self._usage()})
        yield b"data: [DONE]\n\n"

    def _new_words(self, reasoning: str, content: str, *, held: bool) -> Iterator[bytes]:
        if held:
            reasoning, content = reasoning.rstrip(_HALF), self._certain(content)
        thought, words = self._sent.reasoning or "", self._sent.content
        if reasoning.startswith(thought) and len(reasoning) > len(thought):
            yield self._chunk({"reasoning_content": reasoning[len(thought) :]})
            thought = reasoning
        if content.startswith(words) and len(content) > len(words):
            yield self._chunk({"content": content[len(words) :]})
            words = content
        self._sent = SaidAnswer(words, thought or None, ())

    def _certain(self, content: str) -> str:
        """Without its last letters, where these may become others or the beginning of a stop."""
        content = _before(content, self._asked.stop)[0].rstrip(_HALF)
        if not content.strip():
            return ""  # a thought may follow it, and then it is no answer's beginning
        for size in range(max(map(len, self._asked.stop), default=1) - 1, 0, -1):
            if any(stop.startswith(content[-size:]) for stop in self._asked.stop):
                return content[:-size]
        return content

    def _calls(self, said: SaidAnswer) -> list[dict[str, Any]]:
        """The same request and answer have the same ids, so that rows made of them are the same."""
        return [
            {
                "id": f"call_{self._asked.request.key[:16]}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for number, (name, arguments) in enumerate(said.calls)
        ]

    def _finish_reason(self, said: SaidAnswer) -> str:
        reason = _FINISH[self._draft.finish_reason or "length"]
        return "tool_calls" if said.calls and reason == "stop" else reason

    def _usage(self) -> dict[str, int]:
        prompt, written = len(self._draft.prompt), len(self._draft.ids)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
        }

    def _logprobs(self) -> list[dict[str, Any]]:
        """Of each drawn token under the model itself, whatever it was drawn from."""
        return [
            {
                "token": (text := self._tokenizer.decode([token])),
                "logprob": logprob,
                "bytes": list(self._tokenizer.bytes_of(token) or text.encode()),
                "top_logprobs": [],
            }
            for token, logprob in zip(self._draft.ids, self._draft.model_logprobs, strict=True)
        ]

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return event_of(self._chunk_of([choice]))

    def _chunk_of(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._head, "object": "chat.completion.chunk", "choices": choices}


def as_body(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
