"""Conversations as tokens: Kimi K2's chat template as released, and which tokens are learnt.

`records.chat.k2` says how a conversation is written. Every piece of text is tokenised by itself, so
the tokens of a conversation's beginning are the beginning of its tokens.

A model that thinks (`ChatFormat.thinking`) begins each answer with `<think>...</think>`. As Kimi
K2-Thinking's template has it, an answer keeps its reasoning while its calls are carried out, and
loses it (`<think></think>`) once an answer without calls has ended the turn and another message
follows. So the tokens of a beginning are the beginning of the tokens within a turn only, and
`trainer.data.documents` makes a document of each turn, which is what a server renders for it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from records.chat.k2 import (
    ARGUMENTS,
    ASSISTANT_HEADER,
    CALL,
    CALL_END,
    CALLS,
    CALLS_END,
    END,
    MIDDLE,
    THINK,
    THINK_END,
    ChatMessage,
    k2_pieces,
)
from trainer.data.chat_format import ChatFormat
from trainer.data.tokenizer import Tokenizer

ASSISTANT = (ASSISTANT_HEADER, "assistant", MIDDLE)
"""What comes before each answer: the prompt for the next one."""


class Encoded(NamedTuple):
    ids: list[int]
    learnt: list[bool]
    """For each token, whether the model is to write it."""


def encode_chat(
    tokenizer: Tokenizer,
    messages: Sequence[ChatMessage],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    train_turns: Sequence[bool] | None = None,
    chat: ChatFormat = ChatFormat(),
    learn_reasoning: bool = True,
) -> Encoded:
    """The pieces of `k2_pieces` as tokens; text of others is never a special token."""
    encoded = Encoded([], [])
    for text, special, learnt in k2_pieces(
        messages,
        tools,
        train_turns=train_turns,
        declarations=chat.declarations,
        system=chat.system,
        thinking=chat.thinking,
        learn_reasoning=learn_reasoning,
    ):
        ids = _special_ids(tokenizer, text) if special else tokenizer.encode(text)
        encoded.ids.extend(ids)
        encoded.learnt.extend([learnt] * len(ids))
    return encoded


def prompt_for_answer(tokenizer: Tokenizer) -> list[int]:
    """The tokens after which the model is to write the assistant's next message."""
    header, name, middle = ASSISTANT
    return [
        *_special_ids(tokenizer, header),
        *tokenizer.encode(name),
        *_special_ids(tokenizer, middle),
    ]


def _special_ids(tokenizer: Tokenizer, token: str) -> list[int]:
    """One id; a tokenizer without the token writes its name."""
    number = tokenizer.special.get(token)
    return tokenizer.encode(token) if number is None else [number]


class AssistantAnswer(NamedTuple):
    """An assistant message as the model wrote it."""

    content: str
    tool_calls: list[dict[str, Any]]
    """In OpenAI's form; arguments are the model's own text."""
    broken: str | None
    """What of the template was not kept; None where all was."""
    reasoning_content: str | None = None
    """What stands in `<think>`; None where the model did not think."""

    def message(self, *, calls_before: int) -> dict[str, Any]:
        """As it stands in the conversation. Calls are numbered over all of it, as the template has
        them: `calls_before` were made so far. Reasoning stays with its answer: a turn that goes on
        with results of calls is shown it."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning_content:
            message["reasoning_content"] = self.reasoning_content
        if self.tool_calls:
            message["tool_calls"] = [
                {"id": f"call_{n}", "type": "function", "function": call["function"]}
                for n, call in enumerate(self.tool_calls, calls_before)
            ]
        return message


def parse_answer(tokenizer: Tokenizer, ids: Sequence[int]) -> AssistantAnswer:
    """The message behind generated tokens, with or without the end token."""
    special = tokenizer.special
    if special[END] in ids:
        ids = ids[: list(ids).index(special[END])]
    marks = {number: token for token, number in special.items()}
    pieces: list[tuple[str, str]] = [("", "")]  # (special token before it, text)
    start = 0
    for at, number in enumerate(ids):
        if number in marks:
            pieces[-1] = (pieces[-1][0], tokenizer.decode(ids[start:at]))
            pieces.append((marks[number], ""))
            start = at + 1
    pieces[-1] = (pieces[-1][0], tokenizer.decode(ids[start:]))
    return _answer_of(pieces)


def _answer_of(pieces: Sequence[tuple[str, str]]) -> AssistantAnswer:
    content, calls, broken = pieces[0][1], [], None
    reasoning: str | None = None
    name: str | None = None
    inside, thinks = False, False
    for number, (mark, text) in enumerate(pieces[1:]):
        if mark == THINK and number == 0 and not content.strip():
            thinks, reasoning = True, text
        elif mark == THINK_END and thinks:
            thinks, content = False, text
        elif mark == CALLS and not (inside or thinks or calls):
            inside = True
        elif mark == CALL and inside and name is None:
            name = text.strip()
        elif mark == ARGUMENTS and name is not None:
            function, _, counted = name.removeprefix("functions.").rpartition(":")
            if not function or not counted.isdigit():
                broken = broken or f"a call named {name!r}, not functions.<tool>:<number>"
                function = function or name
            made = {"name": function, "arguments": text.strip()}
            calls.append({"id": name, "type": "function", "function": made})
        elif mark == CALL_END and name is not None:
            name = None
        elif mark == CALLS_END and inside and name is None:
            inside = False
        else:
            broken = broken or f"{mark} out of place"
    if thinks:
        broken = broken or "the reasoning has no end"
    if inside or name is not None:
        broken = broken or "the section of calls has no end"
    return AssistantAnswer(content, calls, broken, reasoning)
