"""A conversation read as wishes: what the user wants, what was called for it, what came of it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.proof.slots_text import Fact, read, sentences, stems
from records.chat.k2 import ChatMessage, text_of

_MORE = re.compile(r"\b(?:else|help you)\b")
_NEXT = re.compile(
    r"(?<=[.?!])\s+(?=(?:second|third|fourth|finally|lastly|besides|also)\b)", re.IGNORECASE
)
_ID = re.compile(r"[a-z]+[-_]?\d+")


class Call(NamedTuple):
    tool: str
    arguments: Any
    result: Any

    @property
    def failed(self) -> bool:
        return not isinstance(self.result, dict | list) or "error" in self.result


class Wish(NamedTuple):
    """One thing that the user wants, and what was done since it was spoken."""

    words: frozenset[str]
    masked: str
    """The words, and those of the facts, without values."""
    facts: list[Fact]
    calls: list[Call]
    earlier: list[Call]
    """Calls from before."""
    said: list[str]
    """What the assistant said since."""
    heard: str
    """The user's last words."""


class Record(NamedTuple):
    """An object in a tool's result."""

    fields: Mapping[str, Any]
    known_by: frozenset[str]
    """All values of it, and of the arguments that brought it, as `alike` spells them."""


def wishes_of(messages: Sequence[ChatMessage]) -> list[list[Wish]]:
    """The wishes of a conversation, those of one message together, with all that followed. What
    answers a question of the assistant's, or only repeats a value, is no new wish."""
    heard = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    starts = heard[:1] + [
        at
        for at in heard[1:]
        if not _asks(messages[at - 1]) and len(stems(read(text_of(messages[at]))[0])) > 1
    ]
    ends = starts[1:] + [len(messages)] * bool(starts)
    return [_wishes(messages[:end], at) for at, end in zip(starts, ends, strict=True)]


def _asks(message: ChatMessage) -> bool:
    """Whether the assistant waits for a value. That it offers more help is no question."""
    return message.get("role") == "assistant" and any(
        text.endswith("?") and not _MORE.search(text) for text in sentences(text_of(message))
    )


def _wishes(messages: Sequence[ChatMessage], start: int) -> list[Wish]:
    since = messages[start:]
    heard = [text_of(m) for m in since if m.get("role") == "user"]
    answered = [fact for text in heard[1:] for fact in read(text)[1]]
    calls = list(_made(messages))
    before = sum(len(m.get("tool_calls") or ()) for m in messages[:start])
    said = [text_of(m) for m in since if m.get("role") == "assistant" and text_of(m)]
    wishes: list[Wish] = []
    for text in _NEXT.split(heard[0]):
        wished, facts = read(text)
        facts = list(dict.fromkeys([*facts, *answered]))
        words = stems(wished)
        masked = " ".join([*sorted(words), *sorted(w for f in facts for w in f.label)])
        wishes.append(Wish(words, masked, facts, calls[before:], calls[:before], said, heard[-1]))
    return wishes


def _made(messages: Sequence[ChatMessage]) -> Iterator[Call]:
    results = {m.get("tool_call_id"): text_of(m) for m in messages if m.get("role") == "tool"}
    for message in messages:
        for call in message.get("tool_calls") or ():
            function = call["function"]
            result = _parsed(results.get(call.get("id"), ""))
            yield Call(function["name"], _parsed(function["arguments"]), result)


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def records_of(calls: Sequence[Call]) -> list[Record]:
    """Of the newest call first. What an id in a call was known by, its result is known by, too."""
    found: list[Record] = []
    for call in calls:
        known = {alike(value) for value in _scalars(call.arguments)}
        ids = {value for value in known if _ID.fullmatch(value)}
        for record in found:
            if not ids.isdisjoint(alike(value) for value in record.fields.values()):
                known |= record.known_by
        new = [
            Record(fields, frozenset(known | {alike(value) for value in _scalars(fields)}))
            for fields in _objects(call.result)
        ]
        found = [*new, *found]
    return found


def alike(value: Any) -> str:
    """The same text for values that differ only in writing."""
    return str(value).lower().replace("_", " ")


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Inner ones first: what they hold is said of one thing."""
    if isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _objects(inner)
    if isinstance(value, dict) and "error" not in value:
        yield value


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _scalars(inner)
    elif value is not None:
        yield value
