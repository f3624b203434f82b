"""Files of a sandbox of any backend, written and read from inside."""

import pytest

from records.errors import ItemError
from tests.sandboxes.conformance.subjects import Subject

BYTES = bytes(range(256))

ODD_NAMES = (
    "with space", " ", "-rf", "*", "é", "a\nb", "'\"$x`", "\\", "\udcff", "n" * 255, "\x01", "...",
)  # fmt: skip


async def test_files_come_back_as_they_were_written(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        home = sandbox.template.workdir
        for path, data in {
            "empty": b"",
            "bytes": BYTES,
            "deep/er/and/deeper/file": BYTES,
            f"{home}/absolute": BYTES,
            "/tmp/conformance/elsewhere": BYTES,
            "large": BYTES * 20_000,
        }.items():
            await sandbox.write_file(path, BYTES * 30_000 if path == "large" else b"before")
            await sandbox.write_file(path, data)
            assert await sandbox.read_file(path) == data
        seen = await sandbox.exec(["sh", "-c", "cat deep/er/and/deeper/file"])
        assert seen.stdout == BYTES
        assert (await sandbox.exec(["rm", "-r", "/tmp/conformance"])).exit_code == 0


async def test_odd_names_are_names(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        for name in ODD_NAMES:
            await sandbox.write_file(name, name.encode(errors="surrogateescape"))
        listed = (await sandbox.exec(["ls", "-1Ab", "--quoting-style=literal", "--zero"])).stdout
        names = {name.encode(errors="surrogateescape") for name in ODD_NAMES}
        assert {part for part in listed.split(b"\0") if part} >= names
        for name in ODD_NAMES:
            assert await sandbox.read_file(name) == name.encode(errors="surrogateescape")


async def test_modes_are_those_that_were_asked_for(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        await sandbox.write_file("run.sh", b"#!/bin/sh\necho ran\n", mode=0o755)
        assert (await sandbox.exec(["./run.sh"])).stdout == b"ran\n"
        await sandbox.write_file("plain.sh", b"#!/bin/sh\necho ran\n")
        assert (await sandbox.exec(["./plain.sh"])).exit_code == 126
        modes = await sandbox.exec(["stat", "-c", "%a", "run.sh", "plain.sh"])
        assert modes.stdout == b"755\n644\n"
        mine = await sandbox.exec(["sh", "-c", "test -O run.sh && echo x >> run.sh"])
        assert mine.exit_code == 0


async def test_a_limit_is_the_largest_file_that_is_read(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        await sandbox.write_file("file", BYTES)
        assert await sandbox.read_file("file", limit=256) == BYTES
        with pytest.raises(ItemError, match="larger than 255 bytes"):
            await sandbox.read_file("file", limit=255)
        await sandbox.write_file("empty", b"")
        assert await sandbox.read_file("empty", limit=0) == b""


MAKE = """
mkfifo fifo read-fifo
(exec 3<>read-fifo; echo $$ >ready; sleep 100) &
mkdir folder; echo inside >file
ln -s file link; ln -s folder to-folder; ln -s nowhere dangling; ln -s loop loop
while ! test -e ready; do sleep 0.01; done; echo ready; wait
"""

UNREADABLE = (
    "missing", "folder", "to-folder", "fifo", "read-fifo", "dangling", "loop", "file/x",
    "/dev/null", "", ".", "a\0b", "\ud800", "n" * 256, "x/" * 3000 + "x",
)  # fmt: skip
"""Some tell after a wait whether anything is in them, or never; none may hold the sandbox up."""

UNWRITABLE = (
    "folder", "to-folder", "fifo", "read-fifo", "loop", "file/x", "/dev/null", "", ".", "a\0b",
    "\ud800", "n" * 256, "x/" * 3000 + "x", "/proc/no/such",
)  # fmt: skip


async def test_what_is_no_file_is_refused_by_name(subject: Subject) -> None:
    async with subject.sandbox() as sandbox:
        maker = await sandbox.open_stdio(["sh", "-c", MAKE])
        while b"ready\n" not in await maker.read():
            pass
        for path in UNREADABLE:
            with pytest.raises(ItemError) as caught:
                await sandbox.read_file(path)
            assert caught.value.reason == "sandbox_file"
            assert repr(path) in caught.value.detail
        for path in UNWRITABLE:
            with pytest.raises(ItemError, match="sandbox_file"):
                await sandbox.write_file(path, b"data")
        assert await sandbox.read_file("link") == b"inside\n"
        await sandbox.write_file("dangling", b"through a link")
        assert await sandbox.read_file("nowhere") == b"through a link"


async def test_refusals_use_nothing_up(subject: Subject) -> None:
    """More of each kind than the sandbox may have open files."""
    async with subject.sandbox(limits={"open_files": 48}) as sandbox:
        await sandbox.exec(["sh", "-c", "mkfifo fifo; mkdir folder; ln -s folder link"])
        for path in ("folder", "link", "fifo", "missing", "/dev/null") * 60:
            with pytest.raises(ItemError):
                await sandbox.read_file(path)
            with pytest.raises(ItemError):
                await sandbox.write_file(f"{path}/x" if path == "missing/x" else "folder", b"")
            assert (await sandbox.exec(["no-such-command"])).exit_code == 127
        assert (await sandbox.exec(["echo", "alive"])).stdout == b"alive\n"
