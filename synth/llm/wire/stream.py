"""A streamed answer put together: server-sent events in, the body of one completion out. Pure."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json

from synth.llm.wire.answer import text_of, thought_in

FRAME_WITHIN = 4
"""Events at the beginning of which one shows the frame; the first often holds the role."""

_DONE = b"[DONE]"
_ENDS = (b"[DONE]\n\n", b"[DONE]\r\n\r\n", b"[DONE]\n", b"[DONE]")


class StreamError(Exception):
    """The server ended the stream with an error, which this holds as the server wrote it."""

    def __init__(self, error: Any) -> None:
        super().__init__(to_json(error).decode())
        self.error = error


class StreamedAnswer:
    """Fed with bytes as they arrive, in pieces of any size."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        """Not parsed yet: events are parsed together, which takes half the time."""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[Any, dict[str, Any]] = {}
        self._arguments: dict[Any, list[str]] = {}
        self._call_at: dict[Any, Any] = {}
        """Index -> key of the call that its pieces belong to now."""
        self._reason: str | None = None
        self._usage: Any = None
        self._ended = False
        self.says_done = False
        """Whether the last piece ends as streams end."""

    @property
    def is_complete(self) -> bool:
        """Whether the server has said how the answer ends; known after `body`."""
        return self._ended or self._reason is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said, called or counted; known after `body`."""
        said = self._text or self._reasoning or self._refusal or self._calls
        return not said and self._usage is None

    def feed(self, piece: bytes) -> None:
        """Raises StreamError where the server reports one."""
        self._pieces.append(piece)
        self.says_done = piece.endswith(_ENDS)
        if b'"error"' in piece:  # the server may keep the connection, and say no more
            self._parse()

    def body(self) -> bytes:
        """The answer as an unstreamed response would have it. Raises StreamError where the server
        reports one, ValueError for what is no stream."""
        self._parse()
        rest = b"".join(self._pieces)
        if rest.startswith(b"data:"):
            with suppress(ValueError):  # half an event: the stream was cut in its middle
                for event in self._parsed([rest[5:].strip()]):
                    self._event(event)
        for key, pieces in self._arguments.items():
            self._calls[key]["function"]["arguments"] = "".join(pieces)
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text) or None}
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        if self._refusal:
            message["refusal"] = "".join(self._refusal)
        if self._calls:
            message["tool_calls"] = list(self._calls.values())
        choice = {"index": 0, "message": message, "finish_reason": self._reason}
        answer = {"choices": [choice], "usage": self._usage}
        try:
            return to_json(answer)
        except ValueError:
            return json.dumps(answer).encode()  # halves of surrogate pairs meet in it

    def _parse(self) -> None:
        """What has arrived up to its last line end."""
        *lines, rest = b"".join(self._pieces).split(b"\n")
        self._pieces = [rest]
        data = [line[5:].strip() for line in lines if line.startswith(b"data:")]
        frame = next(filter(None, map(_frame_of, data[:FRAME_WITHIN])), None)
        if frame is None:
            self._take_events(data)
            return
        for is_framed, run in groupby(data, frame.holds):
            some = list(run)
            if not (is_framed and self._take_words(frame, some)):
                self._take_events(some)

    def _take_words(self, frame: "_Frame", data: Sequence[bytes]) -> bool:
        """Of events that differ in their words alone, the words; False: there is more to them."""
        try:
            words = from_json(b"[%b]" % b",".join(map(frame.inside, data)))
        except ValueError:
            return False
        if len(words) != len(data) or not all(type(word) is str for word in words):
            return False
        self._text += words
        return True

    def _take_events(self, data: list[bytes]) -> None:
        for event in self._parsed(data):
            self._event(event)

    def _parsed(self, data: list[bytes]) -> Iterable[Any]:
        """The events of some lines."""
        if data and data[-1] == _DONE:
            self._ended = True
            data.pop()
        if len(data) > 1:
            with suppress(ValueError):
                events = from_json(b"[%b]" % b",".join(data))
                if len(events) == len(data):
                    return events
        return self._one_by_one(data)  # an empty line, or one that is no JSON, is among them

    def _one_by_one(self, data: list[bytes]) -> Iterator[Any]:
        for line in data:
            if line == _DONE:
                self._ended = True
            elif line:
                yield _decoded(line)

    def _event(self, event: Any) -> None:
        if not isinstance(event, dict):
            raise ValueError(f"an event of the stream is no object: {str(event)[:60]!r}")
        try:
            self._take(event)
        except (AttributeError, LookupError, TypeError) as error:
            told = f"an event of the stream is no piece of an answer ({error!r})"
            raise ValueError(f"{told}: {str(event)[:60]!r}") from None

    def _take(self, event: dict[str, Any]) -> None:
        if error := event.get("error"):
            raise StreamError(error)
        if usage := event.get("usage"):
            self._usage = usage
        choices = event.get("choices")
        if not choices:
            return
        choice = choices[0]
        delta = choice.get("delta") or choice.get("message")
        if delta:
            content = delta.get("content")
            if len(delta) == 1 and type(content) is str:  # as most are
                self._text.append(content)
            else:
                self._delta(delta)
        if reason := choice.get("finish_reason"):
            self._reason = reason

    def _delta(self, delta: dict[str, Any]) -> None:
        content = delta.get("content")
        if isinstance(content, str):
            self._text.append(content)
        elif content:
            self._text.append(text_of(content))
            self._reasoning.extend(filter(None, [thought_in(content)]))
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str):
            self._reasoning.append(reasoning)
        if isinstance(refusal := delta.get("refusal"), str):
            self._refusal.append(refusal)
        for call in delta.get("tool_calls") or ():
            self._call(call)

    def _call(self, call: dict[str, Any]) -> None:
        """Pieces of a call are told by its index; servers that leave it out send whole calls, each
        with an id or a name, or name it once and go on with the last."""
        function = call.get("function") or {}
        key = self._key_of(call, function.get("name"))
        known = self._calls.setdefault(
            key, {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
        )
        if call.get("id"):
            known["id"] = call["id"]
        if name := function.get("name"):
            known["function"]["name"] = name
        arguments = function.get("arguments")
        pieces = self._arguments.setdefault(key, [])
        if isinstance(arguments, str):
            pieces.append(arguments)
        elif isinstance(arguments, dict | list):
            pieces.append(to_json(arguments).decode())

    def _key_of(self, call: dict[str, Any], name: Any) -> Any:
        index, new = call.get("index"), ("call", len(self._calls))
        if index is None:
            if call.get("id"):
                return call["id"]
            return new if name or not self._calls else next(reversed(self._calls))
        key = self._call_at.get(index)
        if key is None or (name and _differ(self._calls[key]["id"], call.get("id"))):
            key = self._call_at[index] = new  # some servers have every call under index 0
        return key


class _Frame(NamedTuple):
    """What stands around the words of an event: servers repeat it with every piece of a text."""

    before: bytes
    after: bytes

    def holds(self, event: bytes) -> bool:
        return event.startswith(self.before) and event.endswith(self.after)

    def inside(self, event: bytes) -> bytes:
        return event[len(self.before) : -len(self.after)]


def _frame_of(data: bytes) -> _Frame | None:
    """Of an event that says some words and nothing else."""
    start = data.rfind(b'"content"')
    try:
        event = from_json(data)
        choice = event["choices"][0]
        words = choice["delta"]["content"]
        is_plain = choice["delta"].keys() == {"content"} and type(words) is str
        says_more = choice.get("finish_reason") or event.get("usage") or event.get("error")
        if start < 0 or not is_plain or says_more:
            return None
        start = data.index(b'"', data.index(b":", start))
        tail = data[start:].decode()
        _, end = json.JSONDecoder().raw_decode(tail)
        frame = _Frame(data[:start], tail[end:].encode())
        choice["delta"]["content"] = "x"
        return frame if from_json(b'%b"x"%b' % frame) == event else None
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _differ(known: Any, given: Any) -> bool:
    return bool(known and given and known != given)


def _decoded(data: bytes) -> Any:
    try:
        return from_json(data)
    except ValueError:
        pass
    try:
        return json.loads(data)  # takes half a surrogate pair: its other half may come next
    except RecursionError:
        raise ValueError(f"an event of the stream is nested too deep: {data[:60]!r}") from None
