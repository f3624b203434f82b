"""Commands in a sandbox: what comes back, and that every limit holds against the real thing."""

import asyncio
import time

import pytest

from records.errors import ItemError
from sandboxes.core.python_env import base_python
from sandboxes.core.sandbox import ExecResult
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.local.backend import lease

pytestmark = pytest.mark.usefixtures("sandboxed")

SMALL = SandboxTemplate(limits=Limits(memory_mb=96, processes=24, output_bytes=10_000, disk_mb=8))


def one(*argv: str, stdin: bytes = b"", timeout_s: float = 10, template=SMALL) -> ExecResult:
    async def go() -> ExecResult:
        async with lease(template) as sandbox:
            return await sandbox.exec(argv, stdin=stdin, timeout_s=timeout_s)

    return asyncio.run(go())


def test_output_error_input_and_code_come_through() -> None:
    done = one("sh", "-c", "cat; echo problem >&2; exit 3", stdin=b"\x00\xffhello")
    assert done == ExecResult(3, b"\x00\xffhello", b"problem\n", False, False, False)


def test_a_command_that_is_not_there_fails_as_in_a_shell() -> None:
    done = one("no-such-command")
    assert done.exit_code == 127
    assert done.stderr == b"no-such-command: No such file or directory\n"


def test_commands_share_one_workspace_and_run_at_once() -> None:
    async def go() -> tuple[ExecResult, ExecResult]:
        async with lease(SMALL) as sandbox:
            await sandbox.exec(["mkfifo", "pipe"])
            # neither side of a FIFO opens without the other
            return await asyncio.gather(
                sandbox.exec(["sh", "-c", "echo met > pipe"]), sandbox.exec(["cat", "pipe"])
            )

    assert [r.stdout for r in asyncio.run(go())] == [b"", b"met\n"]


def test_files_round_trip_and_refusals_name_the_path() -> None:
    async def go() -> None:
        async with lease(SMALL) as sandbox:
            await sandbox.write_file("deep/er/file.bin", bytes(range(256)))
            assert await sandbox.read_file("deep/er/file.bin") == bytes(range(256))
            await sandbox.exec(["sh", "-c", "ln -s /etc/shadow link; mkfifo fifo"])
            for path in ("link", "fifo", "missing", "/etc/passwd/x"):
                with pytest.raises(ItemError, match=path):
                    await sandbox.read_file(path)
            with pytest.raises(ItemError, match="larger than 100 bytes"):
                await sandbox.read_file("deep/er/file.bin", limit=100)
            with pytest.raises(ItemError, match="Read-only file system"):
                await sandbox.write_file("/usr/bin/sh", b"")
            with pytest.raises(ItemError, match="No space left"):
                await sandbox.write_file("big", bytes(9 << 20))

    asyncio.run(go())


def test_output_flood_is_capped_and_its_beginning_kept() -> None:
    done = one("sh", "-c", "yes | head -c 50000000; echo also >&2")
    assert (len(done.stdout), done.truncated, done.stderr) == (10_000, True, b"also\n")
    assert done.exit_code == 0


def test_timeout_ends_children_and_daemons_and_keeps_the_output() -> None:
    script = """
        echo before
        (setsid sh -c 'sleep 1000' &)
        sh -c 'sleep 1000 & sleep 1000' &
        sleep 1000
    """

    async def go() -> tuple[ExecResult, ExecResult]:
        async with lease(SMALL) as sandbox:
            cut = await sandbox.exec(["sh", "-c", script], timeout_s=0.3)
            return cut, await sandbox.exec(["ps", "-eo", "comm="])

    cut, after = asyncio.run(go())
    assert (cut.timed_out, cut.exit_code, cut.stdout) == (True, 137, b"before\n")
    assert after.stdout.split() == [b"python3.11", b"ps"]


def test_memory_bomb_is_killed_and_the_sandbox_lives_on() -> None:
    async def go() -> tuple[ExecResult, ExecResult]:
        async with lease(SMALL) as sandbox:
            bomb = await sandbox.exec(
                ["sh", "-c", "head -c 300000000 /dev/zero | tail -c 299999999"]
            )
            return bomb, await sandbox.exec(["echo", "alive"])

    bomb, after = asyncio.run(go())
    assert bomb.exit_code != 0
    assert bomb.out_of_memory
    assert after.stdout == b"alive\n"


FORKS = """
import os, time
try:
    for count in range(100):
        if os.fork() == 0:
            time.sleep(100)
except BlockingIOError:
    print("stopped after", count, flush=True)
time.sleep(100)
"""


COUNT = "ls -d /proc/[0-9]* | wc -l"
"""How many processes there are: two of the sandbox, the shell and what it forked for this."""


@pytest.mark.slow
def test_fork_bomb_is_bounded_and_gone_afterwards() -> None:
    async def go() -> tuple[ExecResult, ExecResult]:
        async with lease(SMALL) as sandbox:
            bomb = await sandbox.exec([base_python(), "-c", FORKS], timeout_s=1)
            return bomb, await sandbox.exec(["sh", "-c", COUNT])

    bomb, after = asyncio.run(go())
    assert bomb.timed_out
    assert 10 < int(bomb.stdout.split()[-1]) < SMALL.limits.processes
    assert int(after.stdout) <= 5


def test_closing_takes_what_still_runs_with_it() -> None:
    async def go() -> None:
        async with lease(SMALL) as sandbox:
            task = asyncio.create_task(sandbox.exec(["sleep", "1000"]))
            await sandbox.ping()
        with pytest.raises(Exception, match="sandbox was closed"):
            await task

    started = time.monotonic()
    asyncio.run(go())
    assert time.monotonic() - started < 30


def test_a_server_that_is_not_read_from_waits_and_loses_nothing() -> None:
    async def go() -> None:
        async with lease(SMALL) as sandbox:
            server = await sandbox.open_stdio(
                ["sh", "-c", "yes | head -c 5000000; head -c 7; exit 4"]
            )
            assert (await sandbox.exec(["echo", "beside it"])).stdout == b"beside it\n"
            await server.write(b"the end")
            read = bytearray()
            while data := await server.read():
                read += data
            assert bytes(read) == b"y\n" * 2_500_000 + b"the end"
            assert (await server.wait()).exit_code == 4
            assert await server.read() == b""

    asyncio.run(go())


def test_no_signal_from_inside_reaches_the_agent() -> None:
    numbers = " ".join(map(str, range(1, 65)))
    script = f"for n in {numbers}; do kill -$n 1; done; kill -9 -1; kill -STOP -1; echo here"

    async def go() -> tuple[ExecResult, ExecResult]:
        async with lease(SMALL) as sandbox:
            return await sandbox.exec(["sh", "-c", script]), await sandbox.exec(["echo", "alive"])

    killed, after = asyncio.run(go())
    assert killed.exit_code in (0, 137)  # `kill -9 -1` takes its shell with it
    assert after.stdout == b"alive\n"


def test_many_leases_at_once_in_one_process() -> None:
    async def each(number: int) -> bytes:
        async with lease(SMALL) as sandbox:
            return (await sandbox.exec(["echo", str(number)])).stdout

    async def go() -> list[bytes]:
        return await asyncio.gather(*(each(number) for number in range(12)))

    assert asyncio.run(go()) == [f"{number}\n".encode() for number in range(12)]
