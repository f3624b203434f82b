"""The SDK's transport over a sandboxed process: one JSON-RPC message a line.

A server that takes back what it asked is not heard, which the protocol allows: it gets its answer,
and what is on record of a call does not hang on the moment.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from records.errors import SynthError, TransientError
from sandboxes.core.stdio import Ended, StdioProcess
from sandboxes.mcp.secret_values import NO_SECRETS, Redactor

if TYPE_CHECKING:  # the SDK has no public name for it
    from mcp.client._transport import TransportStreams

MAX_LINE = 16 << 20
MAX_RUBBISH = 1000
"""Lines on stdout without a message among them, before the server counts as broken: some greet,
some log."""

KILL_S = 5.0
"""For a killed server to be seen dead; the sandbox's own end takes what is left."""


class McpWire:
    """Messages over a sandboxed process's streams, one JSON-RPC message a line."""

    def __init__(self, process: StdioProcess, redactor: Redactor = NO_SECRETS) -> None:
        """Nothing that comes out of it, errors included, holds what `redactor` knows."""
        self._process, self._redactor = process, redactor
        self._rubbish: list[str] = []
        """Lines since the last message that are none."""
        self._broken: str | None = None

    def lost(self) -> str | None:
        """Why no more answers will come, None while they may."""
        if self._broken is not None:
            return self._broken
        ended = self._process.ended
        if isinstance(ended, Ended):
            said = self._redactor.text(ended.stderr.decode(errors="replace")).strip()[-500:]
            return f"exit code {ended.exit_code}, stderr: {said or 'empty'}"
        return None if ended is None else str(ended)

    def sandbox_lost(self) -> bool:
        """Whether the whole sandbox is gone, by nothing that the server did."""
        return isinstance(self._process.ended, TransientError)

    def heard(self) -> str:
        """What it printed instead of messages, for an error message."""
        if not self._rubbish:
            return ""
        return (
            f"{len(self._rubbish)} lines on stdout are no messages, "
            f"the first: {self._rubbish[0][:80]!r}"
        )

    @asynccontextmanager
    async def streams(self) -> "AsyncIterator[TransportStreams]":
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](16)
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage](16)

        async def receive() -> None:
            async with to_client:
                async for line in self._lines():
                    if (message := self._parsed(line)) is not None:
                        await to_client.send(message)

        async def send() -> None:
            async with from_client:
                async for message in from_client:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._process.write(text.encode() + b"\n")

        async def pump(run: Callable[[], Awaitable[None]]) -> None:
            closed = (anyio.ClosedResourceError, anyio.BrokenResourceError, SynthError)
            with contextlib.suppress(*closed):
                await run()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pump, receive)
            tasks.start_soon(pump, send)
            try:
                yield from_server, to_server
            finally:
                tasks.cancel_scope.cancel()
                for stream in (to_client, from_server, to_server, from_client):
                    stream.close()
                with anyio.move_on_after(KILL_S, shield=True):
                    await self._process.kill()

    async def _lines(self) -> AsyncIterator[bytes]:
        """Whole lines. What a line has so far is never looked at or moved again, so that a long one
        costs no more than its length."""
        begun = bytearray()
        while data := await self._process.read():
            first, *more = data.split(b"\n")
            begun += first
            for part in more:
                line, begun = bytes(begun), bytearray(part)
                yield self._redactor.line(line)
            if len(begun) > MAX_LINE or len(self._rubbish) > MAX_RUBBISH:
                self._broken = self.heard() or f"a line of more than {MAX_LINE} bytes"
                return

    def _parsed(self, line: bytes) -> SessionMessage | None:
        adapter = mcp_types.jsonrpc_message_adapter
        try:
            message = adapter.validate_json(line, by_name=False)
        except ValueError:
            try:
                message = adapter.validate_python(lenient(line), by_name=False)
            except (ValueError, RecursionError):
                if line.strip():
                    self._rubbish.append(line[:200].decode(errors="replace"))
                return None
        self._rubbish.clear()
        if getattr(message, "method", None) == "notifications/cancelled":
            return None
        return SessionMessage(message)


def lenient(line: bytes) -> Any:
    """The JSON of a line that is no Unicode, with a mark in the place of what is none: bytes, and
    half surrogate pairs, as Node writes a text that was cut in the middle of one. ValueError or
    RecursionError for what is no JSON."""
    found = json.loads(line.decode(errors="replace"))
    return json.loads(json.dumps(found, ensure_ascii=False).encode(errors="replace"))
