"""The host's end of the pipes to a sandbox's agent: many requests in flight, answers by id.

What comes back may have been forged by the sandboxed program, so nothing here trusts more than
the form: sizes are bounded, unknown ids are ignored, and a broken frame ends the sandbox.
"""

import asyncio
import itertools
import json
import marshal
from collections.abc import Callable
from typing import Any, NamedTuple

from records.errors import TransientError
from sandboxes.core.agent.frames import HEADER, frame, lengths

MAX_HEADER = 64 << 10
MAX_BODY = 64 << 20
"""Twice the largest output limit: stdout and stderr of one command travel together."""


class FrameAnswer(NamedTuple):
    header: dict[str, Any]
    body: bytes


class FrameChannel:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._ids = itertools.count(1)
        self._listeners: dict[int, Callable[[FrameAnswer | TransientError], None]] = {}
        self._lost: TransientError | None = None
        self.ready: asyncio.Future[FrameAnswer] = self._expect(0)
        self._task = asyncio.get_running_loop().create_task(self._read())

    def new_id(self) -> int:
        return next(self._ids)

    def listen(self, ident: int, listener: Callable[[FrameAnswer | TransientError], None]) -> None:
        """Call `listener` with every answer to `ident`, and with the error once that ends."""
        if self._lost is not None:
            raise self._lost
        self._listeners[ident] = listener

    def forget(self, ident: int) -> None:
        self._listeners.pop(ident, None)

    def _expect(self, ident: int) -> asyncio.Future[FrameAnswer]:
        future: asyncio.Future[FrameAnswer] = asyncio.get_running_loop().create_future()

        def resolve(answer: FrameAnswer | TransientError) -> None:
            if future.done():
                return
            if isinstance(answer, TransientError):
                future.set_exception(answer)
                future.exception()  # whoever waits still gets it; nobody may be waiting
            else:
                future.set_result(answer)

        self.listen(ident, resolve)
        return future

    async def request(
        self, header: dict[str, Any], body: bytes = b"", *, within_s: float
    ) -> FrameAnswer:
        """Send one request and wait for its one answer. TransientError if the sandbox is lost.

        Without an answer in time it is given up: what runs inside can stop its agent.
        """
        ident = self.new_id()
        future = self._expect(ident)
        try:
            async with asyncio.timeout(within_s):
                await self.send(header | {"id": ident}, body)
                return await future
        except TimeoutError:
            why = f"the sandbox's agent has not answered within {within_s:g} s"
            self.lose(why)
            raise TransientError(why) from None
        except asyncio.CancelledError:
            # nobody waits for the command any more, so it ends; a request that is no command
            # is not disturbed by this
            self._writer.write(frame(marshal.dumps({"op": "kill", "id": ident})))
            raise
        finally:
            self.forget(ident)

    async def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        if self._lost is not None:
            raise self._lost
        try:
            self._writer.write(frame(marshal.dumps(header), body))
            await self._writer.drain()
        except OSError as error:
            raise TransientError(f"the sandbox no longer reads: {error}") from error

    async def _read(self) -> None:
        try:
            while True:
                head, body = lengths(await self._reader.readexactly(HEADER))
                if head > MAX_HEADER or body > MAX_BODY:
                    raise ValueError(f"a frame of {head} + {body} bytes")
                header = json.loads(await self._reader.readexactly(head))
                answer = FrameAnswer(header, await self._reader.readexactly(body))
                if listener := self._listeners.get(header["id"]):
                    listener(answer)
        except (asyncio.IncompleteReadError, OSError):
            self.lose("the sandbox ended")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self.lose(f"the sandbox's agent sent rubbish: {error}")
        finally:
            self.lose("the sandbox was closed")  # cancelled: nobody may wait for it any longer

    def lose(self, why: str) -> None:
        """Fail what is waiting and everything asked from now on."""
        if self._lost is None:
            self._lost = TransientError(why)
        self.interrupt(self._lost)

    def interrupt(self, error: TransientError) -> None:
        """Fail what is waiting now."""
        listeners, self._listeners = self._listeners, {}
        for listener in listeners.values():
            listener(error)

    async def close(self) -> None:
        self.lose("the sandbox was closed")
        self._writer.close()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
