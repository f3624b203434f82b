"""Snapshots and forks: the files of the moment, nothing shared, the disk limit held, by overlayfs
and by copying alike."""

import asyncio
from pathlib import Path

import pytest

from records.errors import ItemError, TransientError
from sandboxes.core import owners
from sandboxes.core.body import Snapshot
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.lending.capacity import PoolSettings
from sandboxes.lending.pool import Pool
from sandboxes.local import backend as local
from sandboxes.local import snapshots
from sandboxes.local.backend import lease
from tests.sandboxes.forks import fork
from tests.sandboxes.on_host import kill_agent

pytestmark = pytest.mark.usefixtures("sandboxed")

SMALL = SandboxTemplate(limits=Limits(memory_mb=96, processes=24, disk_mb=4, timeout_s=10))

FILL = """
mkdir -p src/deep empty; echo one > src/one; printf '\\0\\377' > src/deep/bytes; chmod 750 src
ln -s ../one src/deep/up; ln -s /etc/passwd out; ln src/one src/hard; touch -d @1000000000 src/one
chmod 4755 src/hard; echo closed > closed; chmod 200 closed; mkfifo fifo; : > 'a name'
"""

LIST = """
find . ! -type p -printf '%P %y %m %U %G %l %T@\\n' | grep -v '^ d' | sort
find . -type f ! -perm 200 | sort | xargs -d '\\n' od -c
"""


@pytest.fixture(params=["overlay", "copy"])
def means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "copy":
        monkeypatch.setattr(snapshots, "overlay_works", lambda: False)
    elif not snapshots.overlay_works():
        pytest.skip("overlayfs cannot be mounted here")
    return request.param


def folder_of(snapshot: Snapshot) -> Path:
    assert isinstance(snapshot, snapshots.WorkspaceSnapshot)
    return snapshot.folder


async def said(sandbox: Sandbox, script: str) -> str:
    done = await sandbox.exec(["sh", "-c", script])
    return (done.stdout + done.stderr).decode()


def test_forks_hold_the_files_of_the_moment_and_do_not_see_each_other(means: str) -> None:
    async def go() -> None:
        async with lease(SMALL) as sandbox:
            assert await said(sandbox, FILL) == ""
            before = await said(sandbox, LIST)
            snapshot = await sandbox.snapshot()
            await said(sandbox, "rm -rf src; echo later > later")
            assert snapshot.left_out == ("fifo",)
            async with fork(snapshot) as one, fork(snapshot) as two:
                expected = before.replace("src/hard f 4755", "src/hard f 755")
                expected = expected.replace("src/one f 4755", "src/one f 755")
                assert await said(one, LIST) == expected
                changes = "rm src/one; echo changed > src/deep/bytes; echo new > new; rmdir empty"
                assert await said(one, changes) == ""
                assert await said(two, LIST) == expected
                assert "new" in await said(one, "ls")
            async with fork(snapshot) as three:
                assert await said(three, LIST) == expected
            snapshot.remove()
            assert not folder_of(snapshot).exists()

    asyncio.run(go())


def test_a_fork_can_be_forked(means: str) -> None:
    async def go() -> None:
        async with lease(SMALL) as sandbox:
            await said(sandbox, "echo 1 > a; echo 1 > b")
            first = await sandbox.snapshot()
        async with fork(first) as child:
            await said(child, "rm a; echo 2 > b; echo 2 > c")
            second = await child.snapshot()
        async with fork(second) as grandchild:
            assert await said(grandchild, "ls; cat b c") == "b\nc\n2\n2\n"
        for snapshot in (first, second):
            snapshot.remove()

    asyncio.run(go())


def test_the_disk_limit_holds_in_a_fork(means: str) -> None:
    async def go() -> None:
        async with lease(SMALL) as sandbox:
            await sandbox.write_file("base", bytes(1 << 20))
            snapshot = await sandbox.snapshot()
            async with fork(snapshot) as child:
                report = await said(child, "head -c 3000000 /dev/zero | tee a > b; du -sk .")
                assert "No space left" in report
                assert int(report.split()[0]) <= 5 << 10
            snapshot.remove()

    asyncio.run(go())


def test_more_than_a_disk_is_no_snapshot_and_leaves_nothing() -> None:
    async def go() -> None:
        before = set(owners.own_folder().glob("snapshot-*"))
        async with lease(SMALL) as sandbox:
            await sandbox.write_file("base", bytes(3 << 20))
            snapshot = await sandbox.snapshot()
        async with fork(snapshot) as child:
            if snapshots.overlay_works():
                await child.write_file("more", bytes(3 << 20))
                with pytest.raises(ItemError, match="the limit of a disk"):
                    await child.snapshot()
            found = set(owners.own_folder().glob("snapshot-*"))
            assert found == {*before, folder_of(snapshot)}
        snapshot.remove()

    asyncio.run(go())


def test_a_snapshot_of_a_lost_sandbox_is_transient() -> None:
    async def go() -> None:
        async with lease(SMALL) as sandbox:
            kill_agent(sandbox)
            with pytest.raises(TransientError):
                await sandbox.snapshot()

    asyncio.run(go())


def test_a_pool_lends_forks_and_never_twice(means: str) -> None:
    async def go() -> None:
        async with Pool(PoolSettings(live=2)) as pool:
            async with pool.lease(SMALL) as sandbox:
                await said(sandbox, "echo shared > file")
                snapshot = await sandbox.snapshot()
            for _ in range(2):
                async with pool.lease(SMALL, snapshot=snapshot) as child:
                    assert await said(child, "cat file; rm file") == "shared\n"
            async with pool.lease(SMALL) as sandbox:
                assert await said(sandbox, "ls") == ""
            snapshot.remove()
        assert pool.accounts.endings["replaced"] == 2

    asyncio.run(go())


def test_mounts_of_a_fork_are_not_seen_outside_and_end_with_it() -> None:
    if not snapshots.overlay_works():
        pytest.skip("overlayfs cannot be mounted here")

    async def go() -> None:
        async with local.lease(SMALL) as sandbox:
            snapshot = await sandbox.snapshot()
        async with fork(snapshot) as child:
            await said(child, "echo new > new")
            assert list((folder_of(snapshot) / "files").iterdir()) == []
            assert str(folder_of(snapshot)) not in Path("/proc/self/mountinfo").read_text()
        snapshot.remove()
        assert not folder_of(snapshot).exists()

    asyncio.run(go())
