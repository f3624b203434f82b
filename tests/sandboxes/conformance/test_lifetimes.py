"""How long a sandbox of any backend lives, and who else may end or take it."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

import pytest

from records.errors import TransientError
from sandboxes.core.stdio import Ended
from tests.sandboxes.conformance import elsewhere
from tests.sandboxes.conformance.subjects import Subject
from tests.sandboxes.conformance.test_programs import whole


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """As long as it takes: what never comes true is stopped by whoever runs the tests."""
    for _ in range(3000):
        if await true():
            return
        await asyncio.sleep(0.02)
    pytest.fail("it never came true")


async def gone(subject: Subject, name: str) -> None:
    async def is_gone() -> bool:
        return name not in await subject.names()

    await until(is_gone)


async def left_nothing(subject: Subject, name: str) -> None:
    async def nothing() -> bool:
        return name not in await subject.names() and not subject.remains(name)

    await until(nothing)


async def owner(subject: Subject, linger_s: str) -> tuple[asyncio.subprocess.Process, str]:
    """Another process, and the name of the sandbox that it holds."""
    process = await elsewhere.start(subject, "own", linger_s)
    assert process.stdout is not None
    name = (await process.stdout.readline()).decode().strip()
    assert name in await subject.names()
    return process, name


async def test_many_live_at_once_and_closing_takes_each_away(subject: Subject) -> None:
    async def one(number: int) -> str:
        async with subject.sandbox() as sandbox:
            done = await sandbox.exec(["echo", str(number)])
            assert done.stdout == b"%d\n" % number
            running = asyncio.create_task(sandbox.exec(["sleep", "1000"]))
            await sandbox.ping()
            assert sandbox.name in await subject.names()
        with pytest.raises(TransientError, match="closed"):
            await running
        with pytest.raises(TransientError, match="closed"):
            await sandbox.ping()
        return sandbox.name

    names = await asyncio.gather(*map(one, range(6)))
    assert len(set(names)) == 6
    assert not set(names) & await subject.names()


async def test_who_has_lost_a_sandbox_to_another_does_not_end_it(subject: Subject) -> None:
    async with subject.sandbox(linger_s=60) as former:
        running = asyncio.create_task(former.exec(["sleep", "1000"]))
        await former.ping()
        present = await subject.backend.adopt(former.name)
        with pytest.raises(TransientError, match="adopted by somebody else"):
            await running
    try:
        assert (await present.exec(["echo", "here"])).stdout == b"here\n"
    finally:
        await present.close()
    await gone(subject, former.name)


async def test_other_processes_list_and_end_them(subject: Subject) -> None:
    async with subject.sandbox() as sandbox, subject.sandbox(linger_s=60) as other:
        listed = (await elsewhere.output(subject, "names")).splitlines()
        assert f"{sandbox.name} True False" in listed
        assert f"{other.name} True True" in listed
        running = asyncio.create_task(other.exec(["sleep", "1000"]))
        await other.ping()
        await elsewhere.output(subject, "destroy", other.name)
        with pytest.raises(TransientError, match="ended"):
            await running
        assert other.name not in await subject.names()
        await subject.backend.destroy(other.name)  # it is gone already
        await sandbox.ping()


async def test_names_of_none_are_neither_found_nor_ended(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        for name in ("", "no-such", "../../etc.0", f"{sandbox.name}9", "...0", "a\0b"):
            with pytest.raises(TransientError):
                await subject.backend.adopt(name)
            await subject.backend.destroy(name)
        await sandbox.ping()


async def test_a_killed_owner_takes_its_sandbox_along(subject: Subject) -> None:
    process, name = await owner(subject, "0")
    process.kill()
    await process.wait()
    await left_nothing(subject, name)


async def test_one_that_lingers_outlives_its_owner_and_is_taken_over(subject: Subject) -> None:
    process, name = await owner(subject, "60")
    os.killpg(process.pid, signal.SIGKILL)  # and whatever is of its process group
    await process.wait()
    (found,) = [each for each in await subject.backend.list() if each.name == name]
    assert (found.owner_alive, found.adoptable) == (False, True)
    sandbox = await subject.backend.adopt(name)
    assert [each.name for each in await subject.backend.list() if each.name == name] == [name]
    (work,) = sandbox.running()
    await sandbox.write_file("go", b"")
    assert await whole(work) == b"begun\ndid it\n"
    assert await work.wait() == Ended(5, b"")
    await sandbox.close()
    await left_nothing(subject, name)


async def test_its_time_over_it_is_gone_by_itself(subject: Subject) -> None:
    process, name = await owner(subject, str(subject.soon_s))
    process.kill()
    await process.wait()
    await left_nothing(subject, name)
    with pytest.raises(TransientError):
        await subject.backend.adopt(name)
    async with subject.sandbox(linger_s=subject.soon_s) as sandbox:
        await sandbox.leave()
        await gone(subject, sandbox.name)


async def test_with_a_living_holder_it_lingers_for_as_long_as_it_is_used(subject: Subject) -> None:
    async with subject.sandbox(linger_s=subject.soon_s) as sandbox:
        for _ in range(3):
            await asyncio.sleep(subject.soon_s)
            sandbox.drop_stream()
            script = f"sleep {subject.soon_s}; echo alive"
            assert (await sandbox.exec(["sh", "-c", script])).stdout == b"alive\n"


async def test_what_kills_it_from_outside_is_not_the_programs_doing(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        if subject.bounds_memory:
            # what a program did before is not why its sandbox ends now
            hungry = await sandbox.exec([subject.python, "-c", "bytearray(1 << 29)"])
            assert hungry.out_of_memory
        server = await sandbox.open_stdio(["cat"])
        work = asyncio.create_task(sandbox.exec(["sleep", "1000"]))
        await sandbox.ping()
        sandbox.body.end()
        for waits in (work, server.wait(), sandbox.ping(), sandbox.read_file("x")):
            with pytest.raises(TransientError, match="the sandbox ended"):
                await waits
        assert await server.read() == b""


async def test_no_program_ends_or_stops_its_sandbox_by_a_signal(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        server = await sandbox.open_stdio(["cat"])
        for number in range(1, 65):
            await sandbox.exec(["sh", "-c", f"kill -{number} 1"])
        await sandbox.ping()
        everyone = await sandbox.exec(["sh", "-c", "kill -9 -1"])
        assert everyone.exit_code in (0, 137)
        assert (await server.wait()).exit_code == -9  # a program of the same user
        assert (await sandbox.exec(["echo", "alive"])).stdout == b"alive\n"
