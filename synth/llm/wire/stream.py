"""A streamed answer put together: server-sent events in, the body of one completion out. Pure."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from pydantic_core import from_json, to_json

_DONE = b"[DONE]"


class StreamError(Exception):
    """The server ended the stream with an error, which this holds as the server wrote it."""

    def __init__(self, error: Any) -> None:
        super().__init__(to_json(error).decode())
        self.error = error


class StreamedAnswer:
    """Fed with bytes as they arrive, in pieces of any size."""

    def __init__(self) -> None:
        self._rest = b""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[Any, dict[str, Any]] = {}
        self._arguments: dict[Any, list[str]] = {}
        self._reason: str | None = None
        self._usage: Any = None
        self._ended = False

    @property
    def is_complete(self) -> bool:
        """Whether the server has said how the answer ends."""
        return self._ended or self._reason is not None

    def feed(self, piece: bytes) -> None:
        """Raises StreamError where the server reports one, ValueError for what is no stream."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        data = [line[5:].strip() for line in lines if line.startswith(b"data:")]
        for event in self._parsed(data):
            self._event(event)

    def body(self) -> bytes:
        """The answer as an unstreamed response would have it."""
        if self._rest.startswith(b"data:"):
            rest, self._rest = self._rest, b""
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
        return to_json({"choices": [choice], "usage": self._usage})

    def _parsed(self, data: list[bytes]) -> Iterable[Any]:
        """The events of some lines. They are parsed together, which takes half the time."""
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
                yield from_json(line)

    def _event(self, event: Any) -> None:
        if not isinstance(event, dict):
            raise ValueError(f"an event of the stream is no object: {str(event)[:60]!r}")
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
        if content := delta.get("content"):
            self._text.append(content if isinstance(content, str) else _joined(content))
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str):
            self._reasoning.append(reasoning)
        if isinstance(refusal := delta.get("refusal"), str):
            self._refusal.append(refusal)
        for number, call in enumerate(delta.get("tool_calls") or ()):
            self._call(number, call)

    def _call(self, number: int, call: dict[str, Any]) -> None:
        """Pieces of a call are told by its index; servers that leave it out send whole calls, each
        with an id, or name it once and go on with the last."""
        function = call.get("function") or {}
        key = call.get("index")
        if key is None:
            key = call.get("id") or (next(reversed(self._calls), number))
        elif key in self._calls and call.get("id") and function.get("name"):
            known = self._calls[key]
            if known.get("id") and known["id"] != call["id"]:  # every call under index 0
                key = call["id"]
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


def _joined(parts: Any) -> str:
    if not isinstance(parts, list):
        return ""
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))
