"""The stream to an agent of any backend: it breaks, is taken over, and strangers try theirs."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.errors import TransientError
from sandboxes.core.agent.frames import VERSION, frame
from sandboxes.core.channel import read_frame
from sandboxes.core.sandbox import Sandbox
from tests.sandboxes.conformance import elsewhere
from tests.sandboxes.conformance.cutting import cut
from tests.sandboxes.conformance.subjects import Subject, small
from tests.sandboxes.conformance.test_programs import exactly, whole
from tests.sandboxes.rubbish import NO_ANSWERS, NO_FRAMES

COUNT = "import sys\nfor n in range(400):\n  print(n, flush=True)\nsys.exit(sys.stdin.readline())"

LINES = [b"%d\n" % n for n in range(400)]

PARTS = st.tuples(st.integers(0, 6000), st.integers(0, 6000))


async def worked(subject: Subject, sandbox: Sandbox) -> None:
    """Numbers come exactly once in their order, both ways, and what a command does is done once."""
    counter = await sandbox.open_stdio([subject.python, "-c", COUNT])
    echo = await sandbox.open_stdio(["cat"])

    async def written() -> None:
        for line in LINES:
            await echo.write(line)

    async def commands() -> None:
        for number in range(4):
            done = await sandbox.exec(
                ["sh", "-c", f"echo {number} >> log; cat"], stdin=LINES[-1] * 99
            )
            assert done.stdout == LINES[-1] * 99
            await sandbox.write_file("file", LINES[number] * 999)
            assert await sandbox.read_file("file") == LINES[number] * 999

    expected = b"".join(LINES)
    _, _, echoed, counted = await asyncio.gather(
        written(), commands(), exactly(echo, len(expected)), exactly(counter, len(expected))
    )
    assert echoed == counted == expected
    await counter.write(b"end\n")
    assert await whole(counter) == b""
    assert await counter.wait() == (1, b"end\n\n")
    await echo.kill()
    assert await sandbox.read_file("log") == b"0\n1\n2\n3\n"
    await sandbox.exec(["rm", "log"])


def test_a_stream_that_breaks_anywhere_loses_and_doubles_nothing(subject: Subject) -> None:
    with asyncio.Runner() as runner:
        sandbox = runner.run(subject.backend.create(small(linger_s=60)))

        @settings(max_examples=8, deadline=None, derandomize=True)
        @given(st.lists(PARTS, min_size=1, max_size=6), st.integers(0, 30))
        def broken(parts: list[tuple[int, int]], late: int) -> None:
            async def go() -> None:
                work = asyncio.create_task(worked(subject, sandbox))
                for _ in range(late):
                    await asyncio.sleep(0)
                streams = cut(sandbox, iter(parts))
                await work
                assert streams, "no stream was cut"

            runner.run(go())

        try:
            broken()
        finally:
            runner.run(sandbox.close())


async def test_who_adopts_gets_what_runs_and_the_first_holder_nothing(subject: Subject) -> None:
    async with subject.sandbox(linger_s=60) as sandbox:
        counter = await sandbox.open_stdio([subject.python, "-c", COUNT.replace("sys.exit", "#")])
        work = asyncio.create_task(sandbox.exec(["sh", "-c", elsewhere.WORK]))
        await sandbox.ping()
        told = await elsewhere.output(subject, "adopt", sandbox.name)
        found = {code: text for text, code in json.loads(told)}
        assert found.keys() == {0, 5}
        assert found[5] == "begun\ndid it\n"
        with pytest.raises(TransientError, match="adopted by somebody else"):
            await work
        with pytest.raises(TransientError, match="adopted by somebody else"):
            await sandbox.ping()
        # what the first holder got and had confirmed is its own; the rest goes on from there
        first, rest = await whole(counter), found[0].encode()
        assert b"".join(LINES).startswith(first)
        assert b"".join(LINES).endswith(rest)
        assert len(first) + len(rest) >= len(b"".join(LINES))
        again = await subject.backend.adopt(sandbox.name)
        assert again.running() == []
        assert await again.read_file("adopted") == b"adopted\n"
        assert await again.read_file("done") == b"did it\n"
        await again.leave()


async def test_what_ended_while_nobody_held_it_is_told_to_who_adopts(subject: Subject) -> None:
    async with subject.sandbox(linger_s=60) as sandbox:
        large = "head -c 6000000 /dev/zero; echo the end >&2; exit 4"
        work = asyncio.create_task(sandbox.exec(["sh", "-c", f"sleep 0.3; {large}"]))
        await sandbox.ping()
        await sandbox.leave()
        with pytest.raises(TransientError, match="closed"):
            await work
        await asyncio.sleep(1)  # it ends in that time, which changes nothing
        again = await subject.backend.adopt(sandbox.name)
        (process,) = again.running()
        assert len(await whole(process)) == 6_000_000
        assert await process.wait() == (4, b"the end\n")
        await again.leave()


def greeting(**changes: object) -> bytes:
    hello = {"op": "hello", "version": VERSION, "token": "0" * 32, "holder": "x", "adopt": True}
    return frame(json.dumps(hello | {"seen": 0} | changes).encode())


STRANGERS = NO_FRAMES | NO_ANSWERS | {
    "another token": greeting(),
    "no token": greeting(token=None),
    "a token that is a list": greeting(token=["0"]),
    "another version": greeting(version=VERSION + 1),
    "a version in words": greeting(version="one"),
    "an operation": frame(b'{"op": "exec", "id": 1, "n": 1, "seen": 0, "argv": ["id"]}'),
    "a greeting longer than any": greeting(holder="x" * 100_000),
}  # fmt: skip


async def test_strangers_are_refused_and_do_no_harm(subject: Subject) -> None:
    async with subject.sandbox(linger_s=60) as sandbox:
        server = await sandbox.open_stdio(["cat"])
        for name, data in STRANGERS.items():
            reader, writer = await sandbox.body.connect()
            writer.write(data)
            try:
                answer, _ = await read_frame(reader)
                assert answer["event"] == "refused", name
                assert not await reader.read(), name
            except (asyncio.IncompleteReadError, ConnectionResetError):
                pass  # closed without a word
            writer.close()
            await server.write(b"still here\n")
            assert await exactly(server, 11) == b"still here\n", name


async def test_silent_strangers_keep_nobody_out(subject: Subject) -> None:
    async with subject.sandbox(linger_s=60) as sandbox:
        server = await sandbox.open_stdio(["cat"])
        silent = [await sandbox.body.connect() for _ in range(12)]
        for _, writer in silent:
            writer.write(b"\0\0")
        sandbox.drop_stream()
        await server.write(b"still here\n")
        assert await exactly(server, 11) == b"still here\n"
        for _, writer in silent:
            writer.close()
        await sandbox.ping()


async def test_without_lingering_a_broken_stream_is_the_end(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        await sandbox.ping()
        sandbox.drop_stream()
        with pytest.raises(TransientError, match="ended"):
            await sandbox.exec(["sleep", "1000"])
        with pytest.raises(TransientError, match="ended"):
            await sandbox.ping()
