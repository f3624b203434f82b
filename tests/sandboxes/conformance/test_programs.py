"""Long-lived programs in a sandbox of any backend, reached through their standard streams."""

import asyncio
import hashlib

import pytest

from records.errors import ConfigError, TransientError
from sandboxes.core.agent.frames import WINDOW
from sandboxes.core.stdio import StdioProcess
from tests.sandboxes.conformance.subjects import Subject


async def whole(process: StdioProcess) -> bytes:
    """All of its output, to its end."""
    parts = []
    while data := await process.read():
        parts.append(data)
    return b"".join(parts)


async def exactly(process: StdioProcess, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        data = await process.read()
        assert data, bytes(found)
        found += data
    return bytes(found)


async def test_several_answer_line_by_line_and_end_as_they_say(subject: Subject) -> None:
    script = 'while read line; do echo "$0 $line"; test $line = end && break; done; exit $0'
    async with subject.sandbox() as sandbox:
        talks = [await sandbox.open_stdio(["sh", "-c", script, str(n)]) for n in range(1, 4)]
        for line in (b"one\n", b"two\n", b"end\n"):
            for number, talk in enumerate(talks, 1):
                await talk.write(line)
                said = b"%d %s" % (number, line)
                assert await exactly(talk, len(said)) == said
        for number, talk in enumerate(talks, 1):
            assert (await talk.wait()).exit_code == number
            assert await talk.read() == await talk.read() == b""  # the end stays readable
            await talk.write(b"too late\n")  # no error: it may end at any moment
        await sandbox.ping()


async def test_a_slow_reader_holds_the_program_up_and_gets_every_byte(subject: Subject) -> None:
    """50 MB come from a program whose reader stops again and again."""
    script = "import sys\nfor n in range(5000): sys.stdout.write(f'{n:09}\\n' * 1000)"
    got, wanted, reads = hashlib.sha256(), hashlib.sha256(), 0
    for number in range(5000):
        wanted.update(b"%09d\n" % number * 1000)
    async with subject.sandbox() as sandbox:
        flood = await sandbox.open_stdio([subject.python, "-c", script])
        while data := await flood.read():
            got.update(data)
            reads += 1
            if reads % 100 == 0:
                assert (await sandbox.exec(["echo", "beside it"])).stdout == b"beside it\n"
    assert got.digest() == wanted.digest()


async def test_what_is_not_read_waits_inside(subject: Subject) -> None:
    script = (
        "import os\nfor n in range(800):\n os.write(1, bytes(1 << 16))\n os.write(2, b'%d ' % n)"
    )
    async with subject.sandbox() as sandbox:
        flood = await sandbox.open_stdio([subject.python, "-c", script])
        await sandbox.exec(["sleep", "0.5"])
        read = await flood.read()
        await flood.kill()
        ended = await flood.wait()
        assert ended.exit_code == -9
        got = len(read) + len(await whole(flood))
        written = int(ended.stderr.split()[-1]) << 16
        # beyond the window a chunk that reached it, and what the pipe held
        assert got <= WINDOW + (2 << 16)
        assert written <= WINDOW + (4 << 16)


async def test_much_input_comes_back_whole(subject: Subject) -> None:
    data = bytes(range(256)) * 4096
    async with subject.sandbox() as sandbox:
        echo = await sandbox.open_stdio(["cat"])

        async def write() -> None:
            for _ in range(10):
                await echo.write(data)

        _, back = await asyncio.gather(write(), exactly(echo, 10 * len(data)))
        assert back == data * 10


async def test_one_that_is_killed_takes_along_what_it_started(subject: Subject) -> None:
    script = (
        "echo $$; (sleep 0.5; echo late > late) & setsid sh -c 'sleep 0.5; echo late > late' & "
    )
    async with subject.sandbox() as sandbox:
        server = await sandbox.open_stdio(["sh", "-c", script + "echo up; sleep 1000"])
        while b"up\n" not in await server.read():
            pass
        await server.kill()
        await server.kill()  # it is gone already
        assert (await server.wait()).exit_code == -9
        assert (await sandbox.exec(["sh", "-c", "sleep 0.7; test -e late"])).exit_code == 1


async def test_of_its_errors_the_end_is_kept(subject: Subject) -> None:
    async with subject.sandbox(limits={"output_bytes": 1000}) as sandbox:
        loud = await sandbox.open_stdio(["sh", "-c", "seq 100000 >&2; echo the end >&2; exit 7"])
        code, stderr = await loud.wait()
        assert (code, len(stderr), stderr[-9:]) == (7, 1000, b"\nthe end\n"[-9:])


async def test_what_cannot_be_started_says_why(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        for argv in ([], ["no-such-server"], ["/etc/passwd"], ["a\0b"], ["\ud800"]):
            with pytest.raises(ConfigError, match="cannot start"):
                await sandbox.open_stdio(argv)
        await sandbox.ping()


async def test_the_end_of_a_sandbox_is_the_end_of_its_programs(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        server = await sandbox.open_stdio(["cat"])
        waiting = asyncio.create_task(server.wait())
        reading = asyncio.create_task(whole(server))
        await sandbox.ping()
    with pytest.raises(TransientError, match="closed"):
        await waiting
    assert await reading == b""
