"""Lines of a server's output: whole whatever they hold, and read at a cost of their length."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from mcp_types import JSONRPCResponse

from sandboxes.core.stdio import StdioProcess
from sandboxes.mcp import wire
from sandboxes.mcp.wire import McpWire

CHUNK = 1 << 16


class Printed:
    """A process whose output arrives in these pieces."""

    ended = None

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = iter([*pieces, b""])

    async def read(self) -> bytes:
        return next(self._pieces)


def wire_of(pieces: Sequence[bytes]) -> McpWire:
    return McpWire(cast(StdioProcess, Printed(pieces)))


def lines_of(pieces: Sequence[bytes]) -> list[bytes]:
    async def go() -> list[bytes]:
        return [line async for line in wire_of(pieces)._lines()]

    return asyncio.run(go())


class Counted(bytearray):
    """Counts the bytes that are moved to make it or to make something of it."""

    moved = 0

    def __init__(self, data: bytes = b"") -> None:
        super().__init__(data)
        Counted.moved += len(data)

    def __iadd__(self, data: Any) -> "Counted":
        Counted.moved += len(data)
        super().__iadd__(data)
        return self

    def __add__(self, data: Any) -> bytearray:
        Counted.moved += len(self) + len(data)
        return super().__add__(data)

    def __bytes__(self) -> bytes:
        Counted.moved += len(self)
        return memoryview(self).tobytes()


def test_a_long_line_is_read_at_a_cost_of_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "bytearray", Counted, raising=False)
    monkeypatch.setattr(Counted, "moved", 0)
    line = b"x" * (128 * CHUNK)
    pieces = [line[i : i + CHUNK] for i in range(0, len(line), CHUNK)]
    assert lines_of([*pieces, b"\n"]) == [line]
    assert len(line) <= Counted.moved <= 3 * len(line)


def test_lines_are_the_same_however_they_arrive() -> None:
    text = b"one\n\ntwo\nthree \xff\x00\n" + b"y" * 100 + b"\nfour"
    whole = text.split(b"\n")[:-1]
    for size in (1, 2, 3, 7, len(text)):
        assert lines_of([text[i : i + size] for i in range(0, len(text), size)]) == whole


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (rb'"whole \ud83d\ude00"', "whole \U0001f600"),
        (rb'"cut \ud83d"', "cut ?"),
        (b'"bytes \xff"', "bytes \ufffd"),
    ],
)
def test_an_answer_that_is_no_unicode_is_an_answer(answer: bytes, text: str) -> None:
    message = wire_of([])._parsed(b'{"jsonrpc":"2.0","id":1,"result":{"text":%s}}' % answer)
    assert message is not None
    assert isinstance(message.message, JSONRPCResponse)
    assert message.message.result == {"text": text}


@pytest.mark.parametrize("line", [b"hello", b"5", b"[" * 100_000, b'{"jsonrpc":"1"}', b"\xff"])
def test_what_is_no_message_is_noted_and_skipped(line: bytes) -> None:
    server = wire_of([])
    assert server._parsed(line) is None
    assert server.heard().startswith("1 lines on stdout are no messages")
