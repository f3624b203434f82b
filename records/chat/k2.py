"""A conversation as Kimi K2's released chat template writes it: pieces of text, some learnt.

    <|im_system|>tool_declare<|im_middle|>{declarations}<|im_end|>
    <|im_system|>{name or system}<|im_middle|>...<|im_end|>
    <|im_user|>{name or user}<|im_middle|>...<|im_end|>
    <|im_assistant|>{name or assistant}<|im_middle|>{thought}...{calls}<|im_end|>
    <|im_system|>{tool}<|im_middle|>## Return of functions.{tool}:{n}\\n...<|im_end|>

with n counting every call of the conversation from 0. The trainer makes tokens of the pieces, an
export joins them. Learnt are the assistant's own, from behind its header to the end token, calls
included; tool results and the user's words never are.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from records.chat.declarations import Style, declare
from records.errors import ConfigError

ChatMessage = Mapping[str, Any]

KIMI = "You are Kimi, an AI assistant created by Moonshot AI."
"""The system message of Kimi K2's released template where a conversation has none."""

SYSTEM_HEADER, USER_HEADER, ASSISTANT_HEADER = "<|im_system|>", "<|im_user|>", "<|im_assistant|>"
MIDDLE, END = "<|im_middle|>", "<|im_end|>"
CALLS, CALLS_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, ARGUMENTS, CALL_END = (
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
)
THINK, THINK_END = "<think>", "</think>"

TEMPLATE_TOKENS = (
    *(SYSTEM_HEADER, USER_HEADER, ASSISTANT_HEADER, MIDDLE, END),
    *(CALLS, CALLS_END, CALL, ARGUMENTS, CALL_END),
)
"""The special tokens of a conversation without thoughts."""

ROLES = ("system", "developer", "user", "assistant", "tool")


class ChatPiece(NamedTuple):
    """Some text that is tokenised by itself."""

    text: str
    special: bool
    """Whether it is a special token. Other text never is one, whatever it spells."""
    learnt: bool
    """Whether the model is to write it."""


def k2_pieces(
    messages: Sequence[ChatMessage],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    train_turns: Sequence[bool] | None = None,
    declarations: Style = "json",
    system: str = KIMI,
    thinking: bool = False,
    learn_reasoning: bool = True,
) -> Iterator[ChatPiece]:
    """`messages` in OpenAI's form; `train_turns` says for each whether it may be learnt, and
    `learn_reasoning` whether what stands in `<think>` may.

    A conversation that does not begin with a system message is given `system`, where that is not
    empty. A message's own `train` or `weight` (false, or 0) takes it out of the loss, too. With
    `thinking` every answer begins with `<think>...</think>`, empty before `turn_start`. ConfigError
    for a role that the template does not have.
    """
    if tools:
        yield from _message(SYSTEM_HEADER, "tool_declare", declare(tools, declarations))
    if system and messages and messages[0].get("role") not in ("system", "developer"):
        yield from _message(SYSTEM_HEADER, "system", system)
    names = _Names()
    thinks_from = turn_start(messages) if thinking else None
    for number, message in enumerate(messages):
        learnt = (train_turns is None or train_turns[number]) and _may_be_learnt(message)
        thought = None
        if thinks_from is not None:
            thought = reasoning_of(message) if number >= thinks_from else ""
        content, name = text_of(message), message.get("name")
        match message.get("role"):
            case "system" | "developer":
                yield from _message(SYSTEM_HEADER, name or "system", content)
            case "user":
                yield from _message(USER_HEADER, name or "user", content)
            case "tool":
                told = f"## Return of {names.of(message)}\n{content}"
                yield from _message(SYSTEM_HEADER, name or "tool", told)
            case "assistant":
                yield from _header(ASSISTANT_HEADER, name or "assistant")
                if thought is not None:
                    for text, special in ((THINK, True), (thought, False), (THINK_END, True)):
                        yield ChatPiece(text, special, learnt and learn_reasoning)
                yield ChatPiece(content, False, learnt)
                for text, special in _calls(message.get("tool_calls") or (), names):
                    yield ChatPiece(text, special, learnt)
                yield ChatPiece(END, True, learnt)
            case role:
                raise ConfigError(f"a message has role {role!r}; allowed: {', '.join(ROLES)}")


def turn_start(messages: Sequence[ChatMessage]) -> int:
    """The first message whose reasoning is kept: the one behind the last answer without calls that
    another message follows."""
    for number in range(len(messages) - 2, -1, -1):
        if messages[number].get("role") == "assistant" and not messages[number].get("tool_calls"):
            return number + 1
    return 0


def reasoning_of(message: ChatMessage) -> str:
    """What an assistant's message says of its thoughts, under either of the usual names."""
    return message.get("reasoning_content") or message.get("reasoning") or ""


def text_of(message: ChatMessage) -> str:
    """Content as text; of a list of parts the text parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, Mapping))
    return content or ""


class _Names:
    """Call ids of a conversation -> `functions.name:n`."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._count = 0

    def next(self, call: Mapping[str, Any]) -> str:
        name = f"functions.{call['function']['name']}:{self._count}"
        self._count += 1
        self._given[call.get("id") or name] = name
        return name

    def of(self, message: ChatMessage) -> str:
        given = message.get("tool_call_id") or ""
        return self._given.get(given, given)


def _may_be_learnt(message: ChatMessage) -> bool:
    return bool(message.get("train", True)) and message.get("weight", 1) != 0


def _message(header: str, name: str, content: str) -> Iterator[ChatPiece]:
    """One that nobody learns."""
    yield from _header(header, name)
    yield ChatPiece(content, False, False)
    yield ChatPiece(END, True, False)


def _header(header: str, name: str) -> Iterator[ChatPiece]:
    yield ChatPiece(header, True, False)
    yield ChatPiece(name, False, False)
    yield ChatPiece(MIDDLE, True, False)


def _calls(calls: Sequence[Mapping[str, Any]], names: _Names) -> Iterator[tuple[str, bool]]:
    """(text, whether it is a special token) of an answer's calls."""
    if not calls:
        return
    yield CALLS, True
    for call in calls:
        arguments = call["function"]["arguments"]
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        yield from ((CALL, True), (names.next(call), False), (ARGUMENTS, True))
        yield from ((arguments, False), (CALL_END, True))
    yield CALLS_END, True
