"""What a sandboxed program cannot reach. Every refusal has its positive control outside."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Set
from pathlib import Path

import pytest

from records.processes import ProcessId
from sandboxes.core.python_env import base_python
from sandboxes.core.sandbox import ExecResult
from sandboxes.core.template import BASE_ENV, PROGRAM_ID, SandboxTemplate
from sandboxes.local import cgroups, users
from sandboxes.local.backend import lease
from sandboxes.local.protections import NOTHING, Protection
from sandboxes.local.reaper import reap
from sandboxes.mcp.launch import launch_of
from sandboxes.mcp.servers import builtin_servers
from tests.sandboxes.on_host import body_of

pytestmark = pytest.mark.usefixtures("sandboxed")

ROOT = Path(__file__).parents[3]
SECRET = "sk-the-callers-own-secret"


def inside(*argv: str, template: SandboxTemplate = SandboxTemplate()) -> ExecResult:
    async def go() -> ExecResult:
        async with lease(template) as sandbox:
            return await sandbox.exec(argv, timeout_s=20)

    return asyncio.run(go())


@pytest.fixture
def private(tmp_path: Path) -> list[Path]:
    """A 0600 file, a project's .env and a dataset, all of them the caller's."""
    files = [tmp_path / "key", tmp_path / "project/.env", tmp_path / "project/data/demo/part.bin"]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(SECRET)
        file.chmod(0o600)
    return files


def test_files_of_the_caller_are_not_there(private: list[Path]) -> None:
    assert all(file.read_text() == SECRET for file in private)  # the control
    own = [*private, ROOT / "pyproject.toml", ROOT / ".env", Path.home(), Path("/etc/shadow")]
    done = inside("sh", "-c", 'for f in "$@"; do cat "$f"; ls -ld "$f"; done', "sh", *map(str, own))
    assert done.stdout == b""
    assert done.stderr.count(b"No such file or directory") == 2 * len(own)


def test_a_python_server_sees_its_packages_alone_and_no_permission_is_touched(
    private: list[Path],
) -> None:
    homes = [Path(sys.base_prefix), *Path(sys.base_prefix).parents, Path(sys.prefix)]
    before = [(s.st_mode, s.st_uid, s.st_gid) for s in map(Path.stat, (*private, *homes))]
    template, argv = launch_of(builtin_servers()["time"])
    places = [str(ROOT), sys.prefix, str(private[0])]
    script = f"import mcp_types, os; print([os.path.exists(p) for p in {places!r}])"
    done = inside(argv[0], "-c", script, template=template)
    assert (done.stdout, done.stderr) == (b"[False, False, False]\n", b"")
    after = [(s.st_mode, s.st_uid, s.st_gid) for s in map(Path.stat, (*private, *homes))]
    assert after == before


@pytest.mark.usefixtures("private")
def test_the_secret_is_nowhere_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    script = f"""
        echo {SECRET} > /tmp/control
        grep -rslaF {SECRET} / --exclude-dir=usr --exclude-dir=proc --exclude-dir=python
        cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep {SECRET}
        env
    """
    first, *env = inside("sh", "-c", script).stdout.decode().splitlines()
    assert first == "/tmp/control"
    assert {line.split("=")[0] for line in env} - {"LD_LIBRARY_PATH", "PWD"} == set(BASE_ENV)


CONNECT = """
import socket, sys
family, kind, address = eval(sys.argv[1])
with socket.socket(family, kind) as s:
    s.settimeout(2)
    s.connect(address)
    s.send(b"hello")
print("sent")
"""


@contextlib.contextmanager
def listener(family: int, kind: int, address: object) -> Iterator[tuple[object, list[bytes]]]:
    """Its address, and what arrived there."""
    arrived: list[bytes] = []
    with socket.socket(family, kind) as server:
        server.settimeout(5)
        server.bind(address)  # type: ignore[arg-type]
        if kind == socket.SOCK_STREAM:
            server.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer = server.accept()[0] if kind == socket.SOCK_STREAM else server
                    arrived.append(peer.recv(5))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname(), arrived


@pytest.mark.parametrize(
    ("family", "kind", "address"),
    [
        (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        (socket.AF_UNIX, socket.SOCK_STREAM, f"\0agentic-synth-test-{os.getpid()}"),
    ],
    ids=["tcp", "udp", "abstract-unix"],
)
def test_no_socket_of_the_host_is_reached(family: int, kind: int, address: object) -> None:
    with listener(family, kind, address) as (bound, arrived):
        target = repr((int(family), int(kind), bound))
        control = subprocess.run([sys.executable, "-c", CONNECT, target], capture_output=True)
        assert control.stdout == b"sent\n", control.stderr
        done = inside(base_python(), "-c", CONNECT, target)
        if kind == socket.SOCK_STREAM:  # a datagram is sent before anyone could refuse it
            assert b"unreachable" in done.stderr or b"refused" in done.stderr
    assert arrived == [b"hello"]


def status_of(text: str) -> dict[str, str]:
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def test_no_rights_seen_from_both_sides() -> None:
    mark = f"{os.getpid()}.125"

    async def go() -> tuple[dict[str, str], dict[str, str], int]:
        async with lease(SandboxTemplate()) as sandbox:
            task = asyncio.create_task(sandbox.exec(["sleep", mark]))
            within = await sandbox.exec(["cat", "/proc/self/status"])
            while not (found := list(host_pids(mark))):  # its program may yet have to start
                assert not task.done()
                await asyncio.sleep(0.01)
            without = Path(f"/proc/{found[0]}/status").read_text()
            task.cancel()
            await asyncio.wait([task])
            taken = body_of(sandbox).users
            expected = os.geteuid() if taken is None else users.host_id(taken.program)
            return status_of(within.stdout.decode()), status_of(without), expected

    within, without, expected = asyncio.run(go())
    for status in (within, without):
        assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
        assert status["NoNewPrivs"] == "1"
    assert within["Uid"].split() == [str(PROGRAM_ID)] * 4
    (host_uid,) = set(map(int, without["Uid"].split()))
    assert host_uid == expected
    assert (users.apart() is None) == (host_uid != os.geteuid())
    assert within["Groups"].split() in ([], [str(PROGRAM_ID)])


def host_pids(mark: str) -> Iterator[int]:
    """Processes of this machine that have `mark` as an argument."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                yield int(folder.name)


SEEN = """
for name in keys key-users locks interrupts diskstats partitions cmdline kallsyms
do cat /proc/$name > /dev/null && echo $name; done
ls -d /proc/bus/* /proc/fs/* /proc/irq/* /proc/tty/*
find /proc/sys -type f -writable
exit 0
"""


def test_the_machine_and_its_other_users_are_masked_in_proc() -> None:
    async def seen(without: Set[Protection]) -> list[bytes]:
        async with lease(SandboxTemplate(), without=without) as sandbox:
            return (await sandbox.exec(["sh", "-c", SEEN])).stdout.split()

    control, contained = (asyncio.run(seen(walls)) for walls in ({Protection.MASKS}, NOTHING))
    assert {b"key-users", b"interrupts", b"cmdline", b"/proc/tty/drivers"} <= set(control)
    assert contained == []


WINNING = [
    "unshare -U true", "unshare -m true", "mount -t tmpfs none /tmp", "chroot / true",
    "setpriv --reuid 0 true", "su -c id", "mknod /tmp/disk b 8 0",
    "cat /proc/1/environ", "cat /proc/1/mem", "ls /proc/1/fd", "hostname evil",
    "echo 1 > /proc/sys/kernel/panic", "echo x > /etc/passwd", "touch /usr/x", "touch /x",
]  # fmt: skip


@pytest.mark.slow
def test_rights_cannot_be_won_back() -> None:
    tries = [f"({line}) 2>&1 && echo GOT '{line}'" for line in WINNING]
    done = inside("sh", "-c", "\n".join(tries))
    assert b"GOT" not in done.stdout, done.stdout.decode()
    assert len(done.stdout.splitlines()) >= len(WINNING)  # each says why


def test_two_sandboxes_do_not_see_each_other() -> None:
    async def go() -> tuple[bytes, bytes]:
        async with lease(SandboxTemplate()) as one, lease(SandboxTemplate()) as two:
            await one.write_file("/tmp/mine", b"mine")
            running = asyncio.create_task(one.exec(["sleep", "77.5"]))
            await one.ping()
            seen = await two.exec(["sh", "-c", "ls /tmp /workspace; ps -eo args"])
            ours = await one.exec(["sh", "-c", "ls /tmp; ps -eo args"])
            running.cancel()
            return seen.stdout, ours.stdout

    seen, ours = asyncio.run(go())
    assert b"sleep 77.5" in ours
    assert b"mine" in ours
    assert b"sleep" not in seen
    assert b"mine" not in seen


OWNER = """
import asyncio, sys
from sandboxes.local import users
from sandboxes.local.backend import lease
from sandboxes.core.template import SandboxTemplate

async def main():
    async with lease(SandboxTemplate()) as sandbox:
        script = "(setsid sleep $0 &) ; sleep $0 & sleep $0"
        server = await sandbox.open_stdio(["sh", "-c", script, sys.argv[1]])
        count = "until [ $(pgrep -fc 'sleep [0-9]') -ge 3 ]; do sleep .01; done"
        await sandbox.exec(["sh", "-c", count])
        print("started", flush=True)
        await asyncio.sleep(100)

asyncio.run(main())
"""


def test_a_killed_owner_leaves_nothing_and_its_groups_are_swept() -> None:
    mark = f"{os.getpid()}.375"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, mark], cwd=ROOT, stdout=subprocess.PIPE, env={}
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"started\n"
    left = [ProcessId.of(pid) for pid in host_pids(mark)]
    assert len(left) >= 3
    folders = [
        folder
        for _, parent in cgroups.controllers().values()
        for folder in parent.glob(f"{cgroups.PREFIX}.{owner.pid}.*")
    ]
    owner.kill()
    owner.wait()
    owner.stdout.close()
    wait_until(lambda: not list(host_pids(mark)))
    wait_until(lambda: swept(folders))


def swept(folders: list[Path]) -> bool:
    """A group stays busy for as long as its dead are not reaped."""
    reap()
    return not any(folder.exists() for folder in folders)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
