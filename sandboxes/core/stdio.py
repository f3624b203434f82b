"""A long-lived program in a sandbox, reached through its standard streams."""

import asyncio
import contextlib
from typing import NamedTuple

from records.errors import SynthError, TransientError
from sandboxes.core.agent.frames import WINDOW
from sandboxes.core.channel import FrameAnswer, FrameChannel


class Ended(NamedTuple):
    exit_code: int
    """Negative: the signal that killed it."""
    stderr: bytes
    """The end of what it wrote there."""


class StdioProcess:
    """Made by `Sandbox.open_stdio`. Its output waits in the sandbox until it is read here."""

    def __init__(self, channel: FrameChannel, ident: int, *, running: bool = False) -> None:
        """`running`: one that was started before its sandbox was adopted."""
        self._channel, self._id = channel, ident
        loop = asyncio.get_running_loop()
        self._started: asyncio.Future[str | None] = loop.create_future()
        self._ended: asyncio.Future[Ended | SynthError] = loop.create_future()
        self._output: asyncio.Queue[bytes] = asyncio.Queue()
        self._waiting = 0
        if running:
            self._started.set_result(None)
        channel.listen(ident, self._hear)

    def _hear(self, answer: FrameAnswer | SynthError) -> None:
        if isinstance(answer, SynthError):
            self._end(answer, str(answer))
            return
        event = answer.header.get("event")
        if event == "started" and not self._started.done():
            self._started.set_result(None)
        elif event == "stdout":
            self._waiting += len(answer.body)
            if self._waiting > 4 * WINDOW:  # no agent of ours sends so much unasked
                self._end(TransientError("its output came faster than it was read"), "too fast")
            else:
                self._output.put_nowait(answer.body)
        elif event == "exit":
            code = int(answer.header.get("exit_code", 0))
            kept = int(answer.header.get("stdout_bytes", 0))
            if stdout := answer.body[:kept]:  # of an adopted command, which tells all at its end
                self._waiting += len(stdout)
                self._output.put_nowait(stdout)
            self._end(Ended(code, answer.body[kept:]), f"it ended with exit code {code}")
        elif event == "error":
            reason = str(answer.header.get("reason"))
            self._end(TransientError(reason), reason)

    def _end(self, how: Ended | SynthError, reason: str) -> None:
        if not self._started.done():
            self._started.set_result(reason)
        if not self._ended.done():
            self._ended.set_result(how)
            self._output.put_nowait(b"")

    async def started(self) -> str | None:
        """None once the program runs, or why it could not be started."""
        return await self._started

    async def read(self) -> bytes:
        """Some bytes of its output, as they come; empty once it has ended and all is read."""
        data = await self._output.get()
        if data:
            self._waiting -= len(data)
            with contextlib.suppress(SynthError):
                # without waiting: who gives up reading meanwhile would lose what was read
                self._channel.put({"op": "ack", "id": self._id, "bytes": len(data)})
        else:
            self._output.put_nowait(b"")  # the end stays readable
        return data

    async def write(self, data: bytes) -> None:
        await self._channel.send({"op": "stdin", "id": self._id}, data)

    async def wait(self) -> Ended:
        """How it ended. TransientError if the sandbox was lost first, `ProgramEndedError` if the
        program ended it."""
        how = await asyncio.shield(self._ended)
        if isinstance(how, SynthError):
            raise how
        return how

    @property
    def ended(self) -> Ended | SynthError | None:
        """How it ended, None while it runs."""
        return self._ended.result() if self._ended.done() else None

    async def kill(self) -> None:
        """Kill it and what it started; returns once it is gone."""
        with contextlib.suppress(SynthError):
            await self._channel.send({"op": "kill", "id": self._id})
            await self.wait()

    def forget(self) -> None:
        self._channel.forget(self._id)
