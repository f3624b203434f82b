"""A caller with a range in /etc/subuid gives each sandbox two users of it, as root does.

Root runs this file once more as such a user; what only that user can show is skipped for others.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from records.errors import TransientError
from sandboxes.bench import callers
from sandboxes.core.owners import root_folder
from sandboxes.core.python_env import base_python
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import BASE_ENV, Limits, SandboxTemplate
from sandboxes.local import subordinates, users
from sandboxes.local.backend import LOCAL, lease
from sandboxes.local.protections import Protection
from sandboxes.local.reaper import reap
from sandboxes.local.snapshots import WorkspaceSnapshot
from tests.sandboxes.attacks.attempt import PRELUDE
from tests.sandboxes.forks import fork
from tests.sandboxes.on_host import body_of

ranged = pytest.mark.skipif(
    os.geteuid() == 0 or users.apart() is not None, reason="this caller has no range of users"
)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.usefixtures("sandboxed")
def test_what_follows_holds_for_a_user_with_a_range() -> None:
    if (reason := callers.no_ranges()) is not None:
        pytest.skip(f"no user has a range here: {reason}")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = callers.by_user([*command, "-k", "ranged", "-rs"], ranges=True)
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, said
    assert "passed" in said
    assert "skipped" not in said


def ids_of(sandbox: Sandbox) -> tuple[int, int]:
    """The host's ids of the program, as a process of it has them, and of the agent."""
    body = body_of(sandbox)
    assert body.agent is not None
    (program,) = Path(f"/proc/{body.agent.pid}/task/{body.agent.pid}/children").read_text().split()
    return owner_of(int(program)), owner_of(body.agent.pid)


def owner_of(pid: int) -> int:
    """Effective user."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("\nUid:")[2].split()[1])


def of_range() -> list[int]:
    """Processes of the range's users that live."""
    first, size = subordinates.namespace().users
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if first <= owner_of(int(folder.name)) < first + size and state != "Z":
                found.append(int(folder.name))
        except (OSError, IndexError):
            continue
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


OWNER = """
import asyncio, sys
from pathlib import Path
from sandboxes.core.template import SandboxTemplate
from sandboxes.local.backend import LOCAL
from tests.sandboxes.local.test_subordinates import ids_of

async def main():
    sandbox = await LOCAL.create(SandboxTemplate(linger_s=float(sys.argv[1])))
    await sandbox.open_stdio(["sleep", "1000"])
    await sandbox.exec(["sh", "-c", "mkdir shut; echo text > shut/file; chmod 0 shut/* shut"])
    await sandbox.snapshot()
    print(sandbox.body.name, *ids_of(sandbox), flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


def owner(linger_s: int) -> tuple[subprocess.Popen[str], str, set[int]]:
    """Another process that holds a sandbox and a snapshot; the sandbox's name and its ids."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(linger_s)], stdout=subprocess.PIPE, text=True,
        env=BASE_ENV | {"PYTHONPATH": str(callers.ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    name, *ids = process.stdout.readline().split()
    return process, name, set(map(int, ids))


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


@ranged
def test_ranged_each_sandbox_has_two_users_of_the_range_and_no_two_share_one() -> None:
    async def go() -> list[int]:
        found = []
        async with lease(SandboxTemplate()) as one, lease(SandboxTemplate()) as two:
            for sandbox in (one, two):
                await sandbox.open_stdio(["sleep", "1000"])
                found += ids_of(sandbox)
        return found

    other, _, taken = owner(0)
    found = asyncio.run(go())
    killed(other)
    first, size = subordinates.namespace().users
    assert len({*found, *taken}) == 6
    assert all(first <= user < first + size for user in (*found, *taken))


BY_USER = """
def won(attempt):
    try:
        attempt()
    except OSError:
        return False
    return True

def called(name, *arguments):
    return lambda: syscall(NUMBERS[name], *arguments)

here = struct.pack("=QQ", ctypes.addressof(ctypes.create_string_buffer(8)), 8)
print({
    "trace": won(called("ptrace", 0x4206, AGENT, 0, 0)),
    "memory": won(lambda: open(f"/proc/{AGENT}/mem", "rb").close()),
    "descriptors": won(lambda: os.listdir(f"/proc/{AGENT}/fd")),
    "a descriptor": won(called("pidfd_getfd", os.pidfd_open(AGENT), 0, 0)),
    "limits": won(called("prlimit64", AGENT, 7, None, ctypes.create_string_buffer(16))),
})
"""


@ranged
def test_ranged_the_agent_is_kept_apart_by_its_user_alone() -> None:
    """Without the filter, and not hidden. In the controls it is the program's user, as which it is
    still not dumpable, and the caller itself. Signals are no matter of its user: its real one is
    the program's, and the kernel keeps them from process 1."""

    async def tried(without: set[Protection]) -> dict[str, bool]:
        async with lease(SandboxTemplate(), without=without) as sandbox:
            done = await sandbox.exec([base_python(), "-I", "-S", "-c", PRELUDE + BY_USER])
            return eval(done.stdout.splitlines()[-1])

    open_agent = {Protection.CALLS, Protection.HIDDEN_AGENT}
    steered = asyncio.run(tried(open_agent | {Protection.APART}))
    read = asyncio.run(tried(open_agent | {Protection.USER}))
    assert [name for name in read if not (steered[name] or read[name])] == []
    contained = asyncio.run(tried(open_agent))
    assert contained == dict.fromkeys(read, False)


FILL = """
mkdir -p shut/deep; echo one > shut/deep/file; echo two > closed; ln -s shut link
chmod 640 shut/deep/file; chmod 500 shut/deep; chmod 300 shut; chmod 0 closed
"""
TELL = """
chmod 700 shut; find . ! -name . -printf '%P %y %U %G %m\\n' | sort; cat shut/deep/file
chmod 600 closed; cat closed; echo more >> shut/deep/file; cat shut/deep/file
"""
TOLD = """closed f 1000 1000 0
link l 1000 1000 777
shut d 1000 1000 700
shut/deep d 1000 1000 500
shut/deep/file f 1000 1000 640
one
two
one
more
"""


@ranged
def test_ranged_snapshots_are_the_callers_and_forks_their_own_users() -> None:
    async def go() -> None:
        async with lease(SandboxTemplate()) as sandbox:
            await sandbox.exec(["sh", "-c", FILL])
            snapshot = await sandbox.snapshot()
        assert isinstance(snapshot, WorkspaceSnapshot)
        assert {path.lstat().st_uid for path in snapshot.files.iterdir()} == {os.geteuid()}
        for _ in range(2):  # the second sees nothing of what the first has changed
            async with fork(snapshot) as child:
                done = await child.exec(["sh", "-c", TELL])
                assert done.stdout.decode() == TOLD
                again = await child.snapshot()
                again.remove()
        snapshot.remove()
        assert not snapshot.folder.exists()

    asyncio.run(go())
    wait_until(lambda: not of_range())


@ranged
def test_ranged_a_fork_holds_the_limit_of_its_disk() -> None:
    small = SandboxTemplate(limits=Limits(disk_mb=4))

    async def go() -> tuple[int, int]:
        async with lease(small) as sandbox:
            await sandbox.exec(["head", "-c", "3000000", "/dev/zero"], timeout_s=5)
            await sandbox.exec(["sh", "-c", "head -c 3000000 /dev/zero > three"])
            snapshot = await sandbox.snapshot()
        async with fork(snapshot) as child:
            more = await child.exec(["sh", "-c", "head -c 3000000 /dev/zero > more"])
            less = await child.exec(["sh", "-c", "rm more; head -c 900000 /dev/zero > less"])
        snapshot.remove()
        return more.exit_code, less.exit_code

    more, less = asyncio.run(go())
    assert more != 0
    assert less == 0


@ranged
def test_ranged_the_same_users_serve_one_sandbox_after_the_other() -> None:
    """None of the dead counts for the next in the same namespace, which may have few processes."""
    few = SandboxTemplate(limits=Limits(processes=8))

    async def go() -> tuple[set[int], list[int]]:
        seen, codes = set[int](), []
        for _ in range(12):
            async with lease(few) as sandbox:
                taken = body_of(sandbox).users
                assert taken is not None
                seen.add(taken.program)
                codes.append((await sandbox.exec(["true"])).exit_code)
        return seen, codes

    seen, codes = asyncio.run(go())
    assert len(seen) == 1
    assert codes == [0] * 12


@ranged
def test_ranged_a_killed_owner_leaves_nothing_once_it_is_reaped() -> None:
    process, name, ids = owner(0)
    folder = root_folder() / name.rpartition(".")[0]
    assert {owner_of(pid) for pid in of_range()} >= ids
    assert folder.is_dir()
    killed(process)
    wait_until(lambda: not of_range())
    reap()
    assert not folder.exists()


@ranged
def test_ranged_who_adopts_a_sandbox_has_all_rights_over_it_and_nobody_gets_its_users() -> None:
    process, name, ids = owner(60)
    killed(process)
    assert len(of_range()) >= 2
    taken = users.UserIds().take()
    assert not {users.host_id(taken.program), users.host_id(taken.own)} & ids

    async def go() -> tuple[int, bytes]:
        sandbox = await LOCAL.adopt(name)
        snapshot = await sandbox.snapshot()
        read = await sandbox.exec(["sh", "-c", "chmod 700 shut; chmod 600 shut/file; cat shut/*"])
        snapshot.remove()
        await LOCAL.destroy(name)
        return snapshot.entries, read.stdout

    assert asyncio.run(go()) == (2, b"text\n")
    wait_until(lambda: not of_range())


@ranged
def test_ranged_where_all_users_are_taken_no_sandbox_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = users.IdBlocks(first=4_000, number=8, pairs=1)
    monkeypatch.setattr(users, "block_range", lambda: few)
    ids, taken = users.UserIds(), list[users.Users]()

    def take_all() -> None:
        while True:
            taken.append(ids.take())

    with pytest.raises(TransientError, match="all 8 blocks of sandbox users are taken"):
        take_all()
    assert taken
    assert len({user for each in taken for user in each[:2]}) == 2 * len(taken)
    ids.give_back(taken[0])
    assert ids.take() == taken[0]


def test_the_largest_range_of_a_user_is_found_by_name_or_id(tmp_path: Path) -> None:
    file = tmp_path / "subuid"
    lines = [
        "other:1:999999",
        "me:100000:500",
        f"{os.getuid()}:700:1000",
        "me:x:9",
        "me:5",
        "",
        "#",
    ]
    file.write_text("\n".join(lines))
    assert subordinates.range_of(file, "me") == (700, 1000)
    assert subordinates.range_of(file, "nobody-here") == (700, 1000)
    file.write_text("other:1:999999\nme:100000:500")
    assert subordinates.range_of(file, "me") == (100_000, 500)
    assert subordinates.range_of(file, "you") == (0, 0)
    assert subordinates.range_of(tmp_path / "none", "me") == (0, 0)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subordinates, "TOOLS", {"sh": "dash"})
    for name in ("SUBUID", "SUBGID"):
        monkeypatch.setattr(subordinates, name, tmp_path / name)
    own = f"{os.getuid()}:100000"
    (tmp_path / "SUBUID").write_text(f"{own}:{2 * subordinates.PAIRS}")
    assert "SUBGID has no range for" in str(subordinates.missing())
    (tmp_path / "SUBGID").write_text(f"{own}:{2 * subordinates.PAIRS - 1}")
    assert "127 ids: it takes at least 128" in str(subordinates.missing())
    (tmp_path / "SUBGID").write_text(f"{own}:{2 * subordinates.PAIRS}")
    assert subordinates.missing() in (None, f"{subordinates.closed()} is closed to other users,"
                                      " and programs inside would be one")  # fmt: skip
    shut = tmp_path / "bin/python"
    shut.parent.mkdir()
    shut.touch(mode=0o700)
    monkeypatch.setattr(subordinates, "host_python", lambda: str(shut))
    assert f"{shut} is closed to other users" in str(subordinates.missing())
    monkeypatch.setattr(subordinates, "TOOLS", {"newnothingmap": "uidmap"})
    assert subordinates.missing() == "newnothingmap is not installed: apt install uidmap"


def test_what_refuses_is_told_in_its_own_words() -> None:
    refuses = ("sh", "-c", "exec <&-; echo namespaces are closed here >&2; exit 1")
    with (
        pytest.raises(TransientError, match="for a sandbox: namespaces are closed here"),
        subordinates.held(refuses),
    ):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_caller_that_may_win_no_rights_has_no_range_and_is_told_why() -> None:
    if (reason := callers.no_ranges()) is not None:
        pytest.skip(f"no user has a range here: {reason}")
    ask = "from sandboxes.local.users import apart; print(apart())"
    command = ["setpriv", "--no-new-privs", sys.executable, "-c", ask]
    said = callers.by_user(command, ranges=True).stdout.decode()
    assert said.startswith("no users of a range for a sandbox: newuidmap: write to uid_map failed")
