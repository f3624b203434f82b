"""Conversations as tokens: Kimi K2's chat template as released, and which tokens are learnt.

    <|im_system|>tool_declare<|im_middle|>{declarations}<|im_end|>
    <|im_system|>{name or system}<|im_middle|>...<|im_end|>
    <|im_user|>{name or user}<|im_middle|>...<|im_end|>
    <|im_assistant|>{name or assistant}<|im_middle|>{thought}...{calls}<|im_end|>
    <|im_system|>{tool}<|im_middle|>## Return of functions.{tool}:{n}\\n...<|im_end|>

with n counting every call of the conversation from 0. A conversation that does not begin with a
system message is given that of its format. Learnt are the assistant's own tokens, from behind its
header to the end token, calls included; tool results and the user's words never are. Every piece of
text is tokenised by itself, so the tokens of a conversation's beginning are the beginning of its
tokens.

A model that thinks (`ChatFormat.thinking`) begins each answer with `<think>...</think>`. As Kimi
K2-Thinking's template has it, an answer keeps its reasoning while its calls are carried out, and
loses it (`<think></think>`) once an answer without calls has ended the turn and another message
follows. So the tokens of a beginning are the beginning of the tokens within a turn only, and
`trainer.data.documents` makes a document of each turn, which is what a server renders for it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from records.errors import ConfigError
from trainer.data.chat_format import ChatFormat
from trainer.data.declarations import declare
from trainer.data.tokenizer import Tokenizer

ChatMessage = Mapping[str, Any]

END = "<|im_end|>"
ASSISTANT = ("<|im_assistant|>", "assistant", "<|im_middle|>")
"""What comes before each answer: the prompt for the next one."""

THINK, THINK_END = "<think>", "</think>"

ROLES = ("system", "developer", "user", "assistant", "tool")


class Encoded(NamedTuple):
    ids: list[int]
    learnt: list[bool]
    """For each token, whether the model is to write it."""


class _Writer:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.encoded = Encoded([], [])

    def write(self, *parts: str, learnt: bool = False) -> None:
        """Special tokens by name; every other part is text, whatever it spells."""
        for part in parts:
            number = self._tokenizer.special.get(part)
            self._add([number] if number is not None else self._tokenizer.encode(part), learnt)

    def header(self, opening: str, name: str) -> None:
        """Whose message begins; a name is text of others."""
        self.write(opening)
        self.text(name)
        self.write("<|im_middle|>")

    def text(self, text: str, *, learnt: bool = False) -> None:
        """Text of others: never a special token, even where it spells nothing but one."""
        self._add(self._tokenizer.encode(text), learnt)

    def _add(self, ids: Sequence[int], learnt: bool) -> None:
        self.encoded.ids.extend(ids)
        self.encoded.learnt.extend([learnt] * len(ids))


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


def encode_chat(
    tokenizer: Tokenizer,
    messages: Sequence[ChatMessage],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    train_turns: Sequence[bool] | None = None,
    chat: ChatFormat = ChatFormat(),
    learn_reasoning: bool = True,
) -> Encoded:
    """`messages` in OpenAI's form; `train_turns` says for each whether it may be learnt, and
    `learn_reasoning` whether what stands in `<think>` may.

    A message's own `train` or `weight` (false, or 0) takes it out of the loss, too. ConfigError for
    a role that the template does not have.
    """
    writer, names = _Writer(tokenizer), _Names()
    if tools:
        writer.write("<|im_system|>", "tool_declare", "<|im_middle|>")
        writer.text(declare(tools, chat.declarations))
        writer.write(END)
    if chat.system and messages and messages[0].get("role") not in ("system", "developer"):
        writer.header("<|im_system|>", "system")
        writer.text(chat.system)
        writer.write(END)
    thinks_from = turn_start(messages) if chat.thinking else None
    for number, message in enumerate(messages):
        learnt = (train_turns is None or train_turns[number]) and _is_learnt(message)
        thought = None
        if thinks_from is not None:
            thought = reasoning_of(message) if number >= thinks_from else ""
        _write(writer, names, message, thought, learnt=learnt, learn_thought=learn_reasoning)
    return writer.encoded


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


def prompt_for_answer(tokenizer: Tokenizer) -> list[int]:
    """The tokens after which the model is to write the assistant's next message."""
    writer = _Writer(tokenizer)
    writer.write(*ASSISTANT)
    return writer.encoded.ids


def _is_learnt(message: ChatMessage) -> bool:
    return bool(message.get("train", True)) and message.get("weight", 1) != 0


def _write(
    writer: _Writer,
    names: _Names,
    message: ChatMessage,
    thought: str | None,
    *,
    learnt: bool,
    learn_thought: bool,
) -> None:
    content, name = text_of(message), message.get("name")
    match message.get("role"):
        case "system" | "developer":
            writer.header("<|im_system|>", name or "system")
            writer.text(content)
        case "user":
            writer.header("<|im_user|>", name or "user")
            writer.text(content)
        case "assistant":
            writer.header("<|im_assistant|>", name or "assistant")
            if thought is not None:
                writer.write(THINK, learnt=learnt and learn_thought)
                writer.text(thought, learnt=learnt and learn_thought)
                writer.write(THINK_END, learnt=learnt and learn_thought)
            writer.text(content, learnt=learnt)
            _write_calls(writer, names, message.get("tool_calls") or (), learnt=learnt)
        case "tool":
            writer.header("<|im_system|>", name or "tool")
            writer.text(f"## Return of {names.of(message)}\n{content}")
        case role:
            raise ConfigError(f"a message has role {role!r}; allowed: {', '.join(ROLES)}")
    writer.write(END, learnt=learnt and message["role"] == "assistant")


def _write_calls(
    writer: _Writer, names: _Names, calls: Sequence[Mapping[str, Any]], *, learnt: bool
) -> None:
    if not calls:
        return
    writer.write("<|tool_calls_section_begin|>", learnt=learnt)
    for call in calls:
        arguments = call["function"]["arguments"]
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        writer.write("<|tool_call_begin|>", learnt=learnt)
        writer.text(names.next(call), learnt=learnt)
        writer.write("<|tool_call_argument_begin|>", learnt=learnt)
        writer.text(arguments, learnt=learnt)
        writer.write("<|tool_call_end|>", learnt=learnt)
    writer.write("<|tool_calls_section_end|>", learnt=learnt)


def text_of(message: ChatMessage) -> str:
    """Content as text; of a list of parts the text parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, Mapping))
    return content or ""


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
        elif mark == "<|tool_calls_section_begin|>" and not (inside or thinks or calls):
            inside = True
        elif mark == "<|tool_call_begin|>" and inside and name is None:
            name = text.strip()
        elif mark == "<|tool_call_argument_begin|>" and name is not None:
            function, _, counted = name.removeprefix("functions.").rpartition(":")
            if not function or not counted.isdigit():
                broken = broken or f"a call named {name!r}, not functions.<tool>:<number>"
                function = function or name
            made = {"name": function, "arguments": text.strip()}
            calls.append({"id": name, "type": "function", "function": made})
        elif mark == "<|tool_call_end|>" and name is not None:
            name = None
        elif mark == "<|tool_calls_section_end|>" and inside and name is None:
            inside = False
        else:
            broken = broken or f"{mark} out of place"
    if thinks:
        broken = broken or "the reasoning has no end"
    if inside or name is not None:
        broken = broken or "the section of calls has no end"
    return AssistantAnswer(content, calls, broken, reasoning)
