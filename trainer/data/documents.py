"""A row as the documents that are learnt from it: its tokens, and which of them are learnt.

A text is one document. So is a conversation whose answers have no reasoning: its tokens up to any
message are what is rendered there. Where answers do have reasoning, what is rendered for a turn has
none of the turns before (`trainer.data.chat`), so that each turn is a document: the conversation up
to its end, of which the turn alone is learnt. Turns without reasoning join the one behind them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from records.chat.k2 import END, reasoning_of
from trainer.data.chat import Encoded, encode_chat
from trainer.data.chat_format import ChatFormat
from trainer.data.conversations import TrainingConversation
from trainer.data.tokenizer import Tokenizer

ReasoningUse = Literal["learn", "keep", "cut"]
"""What becomes of an answer's reasoning: it is learnt, it stands in the context and is not learnt,
or it is left away."""

HEADERS = ("<|im_user|>", "<|im_assistant|>", "<|im_system|>")
"""Tokens that begin a message."""


@dataclass(frozen=True)
class RowEncoder:
    tokenizer: Tokenizer
    chat: ChatFormat
    reasoning: ReasoningUse

    def documents(self, body: TrainingConversation | str) -> list[Encoded]:
        """Those with something to learn; nothing leads to a document's first token."""
        if isinstance(body, str):
            ids = [*self.tokenizer.encode(body), self.tokenizer.end]
            made: Iterable[Encoded] = [Encoded(ids, [True] * len(ids))]
        else:
            made = self._of_conversation(body)
        return [document for document in made if any(document.learnt[1:])]

    def _of_conversation(self, body: TrainingConversation) -> Iterator[Encoded]:
        flags = body.train_turns or [True] * len(body.messages)
        begin = 0
        for end in _ends(body.messages) if self.chat.thinking else [len(body.messages)]:
            yield encode_chat(
                self.tokenizer,
                body.messages[:end],
                body.tools,
                train_turns=[False] * begin + list(flags[begin:end]),
                chat=self.chat,
                learn_reasoning=self.reasoning == "learn",
            )
            begin = end


def has_reasoning(body: TrainingConversation | str) -> bool:
    """Whether an answer of the row says how it was come by."""
    return isinstance(body, TrainingConversation) and any(map(_thinks, body.messages))


def _thinks(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "assistant" and bool(reasoning_of(message))


def _ends(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Where documents end: behind each turn with reasoning, and with the conversation."""
    ends: list[int] = []
    thought = False
    for number, message in enumerate(messages, 1):
        thought = thought or _thinks(message)
        over = message.get("role") == "assistant" and not message.get("tool_calls")
        if over and thought:
            ends.append(number)
            thought = False
    return ends if ends and ends[-1] == len(messages) else [*ends, len(messages)]


def end_of_answer(ids: np.ndarray, tokenizer: Tokenizer, most: int) -> int:
    """Tokens of a conversation's longest beginning that ends with an assistant's message and has at
    most so many; 0 where none has."""
    special = tokenizer.special
    headers = np.flatnonzero(np.isin(ids[:most], [special[name] for name in HEADERS]))
    for end in np.flatnonzero(ids[:most] == special[END])[::-1]:
        header = headers[np.searchsorted(headers, end) - 1]
        if ids[header] == special["<|im_assistant|>"]:
            return int(end) + 1
    return 0
