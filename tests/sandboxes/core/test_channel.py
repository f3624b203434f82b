"""The host's end of the stream against an agent that somebody has taken over: whatever it sends,
the sandbox is lost and nothing else happens."""

import asyncio
import contextlib
import json
import tempfile
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest

from records.errors import SynthError, TransientError
from sandboxes.core import sandbox as sandbox_module
from sandboxes.core.agent.frames import CHUNK, VERSION, WINDOW, frame
from sandboxes.core.body import Snapshot, Streams
from sandboxes.core.channel import MAX_UNCLAIMED, FrameChannel, read_frame
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.stdio import StdioProcess
from sandboxes.core.template import SandboxTemplate
from tests.sandboxes.rubbish import NO_ANSWERS, NO_FRAMES, exits

HELLO: dict[str, Any] = {"event": "hello", "version": VERSION, "seen": 0, "jobs": []}

Says = Callable[[dict[str, Any]], Iterable[bytes]]


def framed(header: dict[str, Any], body: bytes = b"") -> bytes:
    return frame(json.dumps(header).encode(), body)


def always(data: bytes) -> Says:
    return lambda _: [data]


class TakenOver:
    """An agent on a socket that says what a test wants it to: for a greeting, and for each request.
    It is its own body, too."""

    name = "taken-over"

    def __init__(self, says: Says = always(b""), hello: bytes = framed(HELLO)) -> None:
        self.says, self.hello = says, hello
        self.breaks = False
        """Whether it ends every stream before a greeting."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            await read_frame(reader)
            writer.write(self.hello)
            while not self.breaks:
                request, _ = await read_frame(reader)
                for data in self.says(request):
                    writer.write(data)
                    await writer.drain()
        writer.close()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        with tempfile.TemporaryDirectory() as folder:
            self.path = f"{folder}/socket"
            async with await asyncio.start_unix_server(self.serve, self.path):
                yield

    async def connect(self) -> Streams:
        return await asyncio.open_unix_connection(self.path, limit=1 << 20)

    async def cause(self) -> SynthError:
        return TransientError("the sandbox ended")

    async def silence(self, why: str) -> SynthError:
        return TransientError(why)

    def channel(self, linger_s: float = 0) -> FrameChannel:
        return FrameChannel(self.connect, self.cause, self.silence, token="0", linger_s=linger_s)

    def memory_kills(self) -> int:
        return 0

    def end(self) -> None: ...

    async def close(self) -> None: ...

    async def snapshot(self, template: SandboxTemplate) -> Snapshot:
        raise NotImplementedError

    async def remember(self) -> None: ...

    async def changes(self) -> list[str]:
        return []


@contextlib.asynccontextmanager
async def sandbox_of(
    agent: TakenOver, linger_s: float = 0, *, adopted: bool = False
) -> AsyncIterator[Sandbox]:
    """Nothing may be left to the event loop: no error that nobody looks at."""
    unseen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    async with agent.listening():
        channel = agent.channel(linger_s)
        await channel.open(adopted=adopted)
        sandbox = Sandbox(SandboxTemplate(linger_s=linger_s), agent, channel)
        yield sandbox
        await sandbox.close()
    assert not unseen


RUBBISH = NO_FRAMES | NO_ANSWERS


@pytest.mark.parametrize("name", RUBBISH)
def test_rubbish_costs_the_sandbox_and_nothing_else(name: str) -> None:
    async def go() -> None:
        async with sandbox_of(TakenOver(always(RUBBISH[name])), linger_s=60) as sandbox:
            with pytest.raises(TransientError, match="rubbish"):
                await sandbox.exec(["true"])
            if name in NO_FRAMES:  # what only answers wrongly costs who asked
                with pytest.raises(TransientError, match="rubbish"):
                    await sandbox.ping()

    asyncio.run(go())


@pytest.mark.parametrize("name", RUBBISH)
def test_rubbish_for_a_greeting_is_no_sandbox(name: str) -> None:
    async def go() -> None:
        agent = TakenOver(hello=RUBBISH[name])
        async with agent.listening():
            for adopted in (False, True):
                with pytest.raises(TransientError, match=r"rubbish|refused"):
                    await agent.channel().open(adopted=adopted)

    asyncio.run(go())


HELLOS = {
    "another event": HELLO | {"event": "hi"},
    "no jobs": {key: value for key, value in HELLO.items() if key != "jobs"},
    "jobs in words": HELLO | {"jobs": ["all"]},
    "endless jobs": HELLO | {"jobs": [float("inf")]},
    "a job for all": HELLO | {"jobs": 1},
    "words for what it has seen": HELLO | {"seen": "everything"},
}


@pytest.mark.parametrize("name", HELLOS)
def test_a_greeting_is_looked_at_before_it_is_believed(name: str) -> None:
    async def go() -> None:
        agent = TakenOver(hello=framed(HELLOS[name]))
        async with agent.listening():
            with pytest.raises(TransientError, match=r"rubbish|refused"):
                await agent.channel().open(adopted=True)

    asyncio.run(go())


UNASKED = {
    "an answer to what nobody asked": exits(id=77),
    "an answer to a word": exits(id="1"),
    "an answer to nothing": exits(id=None),
    "an old number": exits(n=0),
    "a confirmation alone": framed({"seen": 1}),
    "a confirmation of what was never sent": framed({"seen": 10**9}),
}


@pytest.mark.parametrize("name", UNASKED)
def test_what_nobody_asked_for_is_ignored(name: str) -> None:
    def says(request: dict[str, Any]) -> list[bytes]:
        answer = {"n": 1 + request["n"], "seen": request["n"], "id": request["id"], "event": "ok"}
        return [UNASKED[name], framed(answer)]

    async def go() -> None:
        async with sandbox_of(TakenOver(says)) as sandbox:
            await sandbox.ping()
            await sandbox.ping()

    asyncio.run(go())


def test_a_silent_agent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module, "ANSWER_S", 0.05)

    async def go() -> None:
        async with sandbox_of(TakenOver(), linger_s=60) as sandbox:
            with pytest.raises(TransientError, match="not answered within"):
                await sandbox.exec(["true"], timeout_s=0.05)
            with pytest.raises(TransientError, match="not answered within"):
                await sandbox.ping()  # it stays lost

    asyncio.run(go())


@pytest.mark.parametrize("hello", [b"", framed(HELLO)[:12]], ids=["silent", "half a greeting"])
def test_one_that_does_not_greet_again_is_given_up_once_it_has_lingered(hello: bytes) -> None:
    """As one that was stopped: its socket still takes streams."""

    async def go() -> None:
        agent = TakenOver()
        async with sandbox_of(agent, linger_s=0.3) as sandbox:
            agent.hello = hello
            sandbox.drop_stream()
            with pytest.raises(TransientError, match="the sandbox ended"):
                await sandbox.ping()

    asyncio.run(go())


def test_one_that_breaks_each_stream_is_given_up_by_who_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox_module, "ANSWER_S", 0.5)

    async def go() -> None:
        agent = TakenOver()
        async with sandbox_of(agent, linger_s=60) as sandbox:
            agent.breaks = True
            sandbox.drop_stream()
            with pytest.raises(TransientError, match="not answered within"):
                await sandbox.ping()

    asyncio.run(go())


def test_who_writes_waits_while_the_stream_is_down() -> None:
    def says(request: dict[str, Any]) -> list[bytes]:
        answer = {"n": 1, "seen": 1, "id": request.get("id"), "event": "started"}
        return [framed(answer)] if request.get("op") == "open" else []

    async def go() -> None:
        agent, written = TakenOver(says), list[int]()
        async with sandbox_of(agent, linger_s=60) as sandbox:
            process = await sandbox.open_stdio(["cat"])
            agent.breaks = True
            sandbox.drop_stream()

            async def write() -> None:
                for number in range(40):
                    await process.write(bytes(1000))
                    written.append(number)

            writing = asyncio.create_task(write())
            await asyncio.sleep(0.3)
            assert len(written) < 5  # the first may have found a stream that was about to end
            agent.breaks = False
            await writing

    asyncio.run(go())


def flood(ident: int, size: int) -> Says:
    """So many bytes of output of one command before the first answer to another."""

    def says(request: dict[str, Any]) -> Iterable[bytes]:
        header = {"n": 1, "seen": 1, "id": ident, "event": "stdout"}
        if request.get("op") == "open":
            yield framed(header | {"id": request["id"], "event": "started"})
        elif request.get("op") == "ping":
            for number in range(2, 2 + size // CHUNK):
                yield framed(header | {"n": number}, bytes(CHUNK))
            yield framed(header | {"n": size, "id": request["id"], "event": "ok"})

    return says


NOTHING = contextlib.nullcontext()


def most_memory(agent: TakenOver, *, adopted: bool = False) -> tuple[int, StdioProcess | None]:
    """Bytes that the host held at once while it was flooded, and the program if one was asked
    for."""

    async def go() -> tuple[int, StdioProcess | None]:
        async with sandbox_of(agent, adopted=adopted) as sandbox:
            tracemalloc.start()
            process = None if adopted else await sandbox.open_stdio(["cat"])
            with pytest.raises(TransientError, match="unasked") if adopted else NOTHING:
                await sandbox.ping()
            return tracemalloc.get_traced_memory()[1], process

    try:
        return asyncio.run(go())
    finally:
        tracemalloc.stop()


BESIDE = 6 << 20
"""For buffers of the streams of both ends, which are in this process."""


def test_output_that_comes_unasked_for_is_not_kept() -> None:
    held, process = most_memory(TakenOver(flood(1, 20 << 20)))
    assert held < 4 * WINDOW + BESIDE
    assert process is not None
    assert "faster than it was read" in str(process.ended)
    held, _ = most_memory(TakenOver(flood(77, 20 << 20)))
    assert held < BESIDE


def test_output_that_nobody_claims_after_an_adoption_is_bounded() -> None:
    held, _ = most_memory(
        TakenOver(flood(7, 80 << 20), framed(HELLO | {"jobs": [7]})), adopted=True
    )
    assert MAX_UNCLAIMED < held < MAX_UNCLAIMED + BESIDE
