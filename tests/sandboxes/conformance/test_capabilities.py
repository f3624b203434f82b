"""What a backend says that it can do it does, and what it does not say it refuses by name."""

import asyncio
from pathlib import Path

import pytest

from records.errors import ConfigError, ItemError
from sandboxes.core.backend import Capability
from sandboxes.core.body import ProgramEndedError
from sandboxes.core.template import Bind
from tests.sandboxes.conformance.subjects import Subject, small


def refused(capability: Capability) -> "pytest.RaisesExc[ConfigError]":
    return pytest.raises(ConfigError, match=rf"\b{capability}\b")


async def test_binds(subject: Subject, tmp_path: Path) -> None:
    (tmp_path / "shown").write_text("of this machine")
    tmp_path.chmod(0o755)
    template = small(
        binds=[Bind(source=str(tmp_path), target="/shown")],
        files={"/etc/written": "text"},
        links={"/link": "/etc/written"},
    )
    if Capability.BINDS not in subject.backend.capabilities:
        with refused(Capability.BINDS):
            await subject.backend.create(template)
        return
    async with subject.sandbox(**template.model_dump()) as sandbox:
        assert await sandbox.read_file("/shown/shown") == b"of this machine"
        assert await sandbox.read_file("/link") == b"text"
        for path in ("/shown/shown", "/shown/new", "/etc/written"):
            with pytest.raises(ItemError):
                await sandbox.write_file(path, b"changed")


async def test_egress(subject: Subject) -> None:
    if Capability.EGRESS not in subject.backend.capabilities:
        with refused(Capability.EGRESS):
            await subject.backend.create(small(egress=True))


CALL = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=10) as stream:
    sys.stdout.write(stream.recv(5).decode())
"""


async def test_network(subject: Subject) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1")
    port = str(server.sockets[0].getsockname()[1])
    if Capability.NETWORK not in subject.backend.capabilities:
        with refused(Capability.NETWORK):
            await subject.backend.create(small(network=True))
    else:
        async with subject.sandbox(network=True) as sandbox:
            done = await sandbox.exec([subject.python, "-c", CALL, port])
            assert done.stdout == b"hello"
    if Capability.CONTAINED in subject.backend.capabilities:
        async with subject.sandbox() as sandbox:
            done = await sandbox.exec([subject.python, "-c", CALL, port])
            assert b"Error" in done.stderr
    server.close()


async def test_snapshots(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        await sandbox.write_file("folder/run.sh", b"echo ran", mode=0o755)
        await sandbox.exec(["ln", "-s", "folder", "link"])
        if Capability.SNAPSHOTS not in subject.backend.capabilities:
            with refused(Capability.SNAPSHOTS):
                await sandbox.snapshot()
            await sandbox.ping()
            return
        snapshot = await sandbox.snapshot()
        await sandbox.write_file("folder/run.sh", b"echo other")
    async with subject.sandbox(snapshot) as first, subject.sandbox(snapshot) as second:
        await first.write_file("folder/run.sh", b"echo of the first")
        done = await second.exec(["sh", "-c", "./link/run.sh"])
        assert done.stdout == b"ran\n"
    snapshot.remove()


async def test_recycling(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        if Capability.RECYCLING not in subject.backend.capabilities:
            with refused(Capability.RECYCLING):
                await sandbox.remember()
            await sandbox.ping()
            return
        await sandbox.remember()
        server = await sandbox.open_stdio(["sh", "-c", "setsid sleep 1000 & echo > left; cat"])
        await sandbox.write_file("deep/er/file", b"data")
        await sandbox.exec(["sh", "-c", "echo > /tmp/left; echo > /dev/shm/left"])
        assert await sandbox.recycle() == []
        assert await server.read() == b""
        found = await sandbox.exec(["find", sandbox.template.workdir, "/tmp", "/dev/shm"])
        assert len(found.stdout.split()) == 3


async def test_limits(subject: Subject) -> None:
    if Capability.CONTAINED not in subject.backend.capabilities:
        with refused(Capability.CONTAINED):
            await subject.backend.create(small(limits={"strict": True}))
        return
    async with subject.sandbox(limits={"memory_mb": 64, "disk_mb": 4, "processes": 16}) as sandbox:
        bomb = await sandbox.exec([subject.python, "-c", "bytearray(1 << 28)"])
        assert bomb.exit_code != 0
        await sandbox.write_file("large", bytes(3 << 20))
        with pytest.raises(ItemError, match="No space left"):
            await sandbox.write_file("another", bytes(2 << 20))
        forks = await sandbox.exec(["sh", "-c", "for i in $(seq 30); do sleep 1000 & done"])
        assert b"fork" in forks.stderr
        assert (await sandbox.exec(["echo", "alive"])).stdout == b"alive\n"


FILL = "for i in 1 2 3 4 5 6; do head -c 16000000 /dev/zero > /tmp/$i; done"


async def test_a_program_that_ends_its_sandbox_by_its_memory_is_told_so(subject: Subject) -> None:
    """Files in memory stay when the program that wrote them has been killed."""
    if not subject.bounds_memory:
        pytest.skip(f"no limit of memory for all together in {subject.name}")
    async with subject.sandbox(limits={"memory_mb": 48, "disk_mb": 400}) as sandbox:
        filled = await sandbox.exec(["sh", "-c", FILL])
        assert filled.out_of_memory
        with pytest.raises(ProgramEndedError, match="took all memory"):  # none for the agent
            await sandbox.write_file("more", bytes(8 << 20))
        with pytest.raises(ProgramEndedError):
            await sandbox.ping()
