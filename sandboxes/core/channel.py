"""The host's end of the stream to a sandbox's agent: many requests in flight, answers by id.

A stream that breaks is followed by another while the sandbox lives, and neither requests nor
answers are lost or doubled (`sandboxes.core.agent.frames` says how). What comes back may have been
forged by the sandboxed program, so nothing here trusts more than the form: sizes are bounded,
unknown ids are ignored, and a broken frame ends the sandbox.
"""

import asyncio
import contextlib
import itertools
import json
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from records.errors import SynthError, TransientError
from sandboxes.core.agent.frames import (
    HEADER,
    UNSEEN_BYTES,
    UNSEEN_FRAMES,
    VERSION,
    WINDOW,
    frame,
    lengths,
)
from sandboxes.core.body import Streams

MAX_HEADER = 64 << 10
MAX_BODY = 64 << 20
"""Twice the largest output limit: stdout and stderr of one command travel together."""

MAX_UNCLAIMED = MAX_BODY + 4 * WINDOW
"""Bytes of one command's answers that are kept for whoever will ask, after an adoption."""

RUBBISH = (ValueError, KeyError, TypeError, OverflowError, RecursionError)
"""What reading raises that does not look as an agent of ours writes it."""

AGAIN_S = 0.05
"""Between two tries to reach an agent whose stream broke."""


class FrameAnswer(NamedTuple):
    header: dict[str, Any]
    body: bytes


Listener = Callable[[FrameAnswer | SynthError], None]


class FrameChannel:
    """`connect` gives a stream to the agent, and raises a SynthError where it is known to be gone;
    `cause` says why one that cannot be reached is gone, `silence` why one does not answer. Nothing
    is sent before `open`."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Streams]],
        cause: Callable[[], Awaitable[SynthError]],
        silence: Callable[[str], Awaitable[SynthError]],
        *,
        token: str,
        linger_s: float,
    ) -> None:
        self._connect, self._cause, self._silence = connect, cause, silence
        self._token, self._linger_s = token, linger_s
        self._holder = secrets.token_hex(8)
        self.refused = False
        """Whether the agent is another's by now: whoever adopted it, for one that was ours."""
        self._writer: asyncio.StreamWriter | None = None
        self._up = asyncio.Event()
        """Whether there is a stream, or never will be."""
        self._ids = itertools.count(1)
        self._listeners: dict[int, Listener] = {}
        self._lost: SynthError | None = None
        self._sent = self._seen = self._told = 0
        """Our last number, the agent's last that we got, and the last that we told it so."""
        self._unread = 0
        self._kept: deque[tuple[int, bytes]] = deque()
        """Frames that the agent has not confirmed."""
        self._unclaimed: dict[int, list[FrameAnswer]] | None = None
        self.running: tuple[int, ...] = ()
        """Ids of the commands that ran when the sandbox was adopted, or whose end nobody had
        confirmed."""
        self._task: asyncio.Task[None] | None = None

    async def open(self, *, adopted: bool = False) -> None:
        """Reach the agent. OSError, EOFError or TransientError where it does not greet."""
        reader = await self._greet(adopted=adopted)
        if adopted:
            self._unclaimed = {}
            self._ids = itertools.count(secrets.randbits(48))  # nobody before asked with these
        self._task = asyncio.get_running_loop().create_task(self._serve(reader))

    async def _greet(self, *, adopted: bool = False) -> asyncio.StreamReader:
        reader, writer = await self._connect()
        try:
            hello = {
                "op": "hello",
                "version": VERSION,
                "token": self._token,
                "holder": self._holder,
                "adopt": adopted,
                "seen": self._seen,
            }
            writer.write(frame(json.dumps(hello).encode()))
            answer, _ = await read_frame(reader)
            if answer.get("event") != "hello":
                self.refused = True
                raise TransientError(f"the sandbox's agent refused: {answer.get('reason')}")
            seen, running = int(answer["seen"]), tuple(map(int, answer["jobs"]))
        except RUBBISH as error:
            writer.close()
            raise TransientError(f"the sandbox's agent sent rubbish: {error!r:.200}") from error
        except BaseException:
            writer.close()
            raise
        if adopted:
            self._sent, self.running = seen, running
        self._told, self._unread = self._seen, 0
        self._confirmed(seen)
        for _, whole in self._kept:
            writer.write(whole)
        self._writer = writer
        self._up.set()
        return reader

    def new_id(self) -> int:
        return next(self._ids)

    def listen(self, ident: int, listener: Listener) -> None:
        """Call `listener` with every answer to `ident`, and with the error once that ends."""
        if self._lost is not None:
            raise self._lost
        self._listeners[ident] = listener
        for answer in (self._unclaimed or {}).pop(ident, ()):
            listener(answer)

    def forget(self, ident: int) -> None:
        self._listeners.pop(ident, None)

    def _expect(self, ident: int) -> asyncio.Future[FrameAnswer]:
        future: asyncio.Future[FrameAnswer] = asyncio.get_running_loop().create_future()

        def resolve(answer: FrameAnswer | SynthError) -> None:
            if future.done():
                return
            if isinstance(answer, SynthError):
                future.set_exception(answer)
                future.exception()  # whoever waits still gets it; nobody may be waiting
            else:
                future.set_result(answer)

        self.listen(ident, resolve)
        return future

    async def request(
        self, header: dict[str, Any], body: bytes = b"", *, within_s: float
    ) -> FrameAnswer:
        """Send one request and wait for its one answer. TransientError if the sandbox is lost, or
        `ProgramEndedError` if the program in it did that.

        Without an answer in time it is given up.
        """
        ident = self.new_id()
        future = self._expect(ident)
        try:
            async with asyncio.timeout(within_s):
                await self.send(header | {"id": ident}, body)
                return await future
        except TimeoutError:
            raise await self.unanswered(within_s) from None
        except asyncio.CancelledError:
            self.give_up(ident)
            raise
        finally:
            self.forget(ident)

    async def unanswered(self, within_s: float) -> SynthError:
        """Give up an agent that has not answered, and say why."""
        why = f"the sandbox's agent has not answered within {within_s:g} s"
        self.lose(error := await self._silence(why))
        return error

    def give_up(self, ident: int) -> None:
        """Nobody waits for the command any more, so it ends; a request that is no command is not
        disturbed by this."""
        self.forget(ident)
        with contextlib.suppress(SynthError):
            self.put({"op": "kill", "id": ident})

    async def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Returns once the stream takes more, so that what waits for a broken one is bounded."""
        self.put(header, body)
        while True:
            await self._up.wait()
            if (writer := self._writer) is None or self._lost is not None:
                return
            try:
                await writer.drain()
                return
            except OSError:  # it is repeated on the next stream, if there is one
                if writer is self._writer and self._lost is None:
                    self._up.clear()

    def put(self, header: dict[str, Any], body: bytes = b"") -> None:
        """As `send`, without waiting: for what is small and rare."""
        if self._lost is not None:
            raise self._lost
        self._sent += 1
        self._told, self._unread = self._seen, 0
        header = header | {"n": self._sent, "seen": self._seen}
        whole = frame(json.dumps(header).encode(), body)
        self._kept.append((self._sent, whole))
        if self._writer is not None:
            self._writer.write(whole)

    def _confirmed(self, seen: int) -> None:
        while self._kept and self._kept[0][0] <= seen:
            self._kept.popleft()

    async def _serve(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                try:
                    await self._read(reader)
                except (asyncio.IncompleteReadError, OSError):
                    reader = await self._again()
        except SynthError as error:
            self.lose(error)
        except RUBBISH as error:
            self.lose(TransientError(f"the sandbox's agent sent rubbish: {error!r:.200}"))
        finally:
            # cancelled: nobody may wait for it any longer
            self.lose(TransientError("the sandbox was closed"))

    async def _again(self) -> asyncio.StreamReader:
        """A new stream after one that broke. Raises the cause where the agent is gone."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._up.clear()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._linger_s
        while loop.time() < end:
            with contextlib.suppress(OSError, EOFError):
                async with asyncio.timeout_at(end):  # one that was stopped accepts and is silent
                    return await self._greet()
            await asyncio.sleep(AGAIN_S)
        raise await self._cause()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            header, body = await read_frame(reader)
            self._confirmed(int(header["seen"]))
            number = header.get("n")
            if number is None or int(number) <= self._seen:
                continue
            self._seen = int(number)
            self._unread += len(body)
            if self._seen - self._told >= UNSEEN_FRAMES or self._unread >= UNSEEN_BYTES:
                self._confirm()
            self._hear(FrameAnswer(header, body))

    def _confirm(self) -> None:
        self._told, self._unread = self._seen, 0
        if self._writer is not None:
            self._writer.write(frame(json.dumps({"seen": self._seen}).encode()))

    def _hear(self, answer: FrameAnswer) -> None:
        ident = answer.header["id"]
        if listener := self._listeners.get(ident):
            listener(answer)
        elif self._unclaimed is not None and ident in self.running:
            kept = self._unclaimed.setdefault(ident, [])
            kept.append(answer)
            if sum(len(each.body) for each in kept) > MAX_UNCLAIMED:
                raise ValueError("more than an agent of ours sends unasked")

    def lose(self, why: SynthError) -> None:
        """Fail what is waiting and everything asked from now on."""
        if self._lost is None:
            self._lost = why
            self._up.set()
        self.interrupt(self._lost)

    def interrupt(self, error: SynthError) -> None:
        """Fail what is waiting now."""
        listeners, self._listeners = self._listeners, {}
        for listener in listeners.values():
            listener(error)

    def drop_stream(self) -> None:
        """Break the present stream, as a network does. What is going on goes on over the next."""
        if self._writer is not None:
            self._writer.transport.abort()

    async def close(self) -> None:
        self.lose(TransientError("the sandbox was closed"))
        if self._writer is not None:
            self._confirm()
            self._writer.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def read_frame(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes]:
    """IncompleteReadError at the stream's end, ValueError for a frame that is none."""
    head, body = lengths(await reader.readexactly(HEADER))
    if head > MAX_HEADER or body > MAX_BODY:
        raise ValueError(f"a frame of {head} + {body} bytes")
    header = json.loads(await reader.readexactly(head))
    if not isinstance(header, dict):
        raise TypeError(f"a header that is no object: {header!r:.40}")
    return header, await reader.readexactly(body)
