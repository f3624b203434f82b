"""What attempts are aimed at: listeners, files and processes of the host, and other sandboxes.

All of it is harmless and made for one play; nothing here attacks anything.
"""

import contextlib
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Set
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sandboxes.local.protections import Protection
from tests.sandboxes.attacks.attempt import Scene, Scenery

PLACE = "/var/tmp"
"""Not /tmp, over which every sandbox has its own."""


def nonce() -> str:
    return f"nonce-{secrets.token_hex(8)}"


def words(*args: str) -> Scenery:
    """Arguments alone."""
    return of(lambda: args)


def of(find: Callable[[], str | tuple[str, ...]]) -> Scenery:
    """Arguments that are found on this machine when the attempt is played."""

    @asynccontextmanager
    async def scene(_without: Set[Protection]) -> AsyncIterator[Scene]:
        found = find()
        yield Scene((found,) if isinstance(found, str) else found)

    return scene


def host_address() -> str:
    """An address of this machine that is not loopback's. Nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback's")
        return probe.getsockname()[0]


@contextlib.contextmanager
def serving(server: socket.socket) -> Iterator[list[bytes]]:
    """Answer whatever comes with its own words; the list is what came."""
    arrived: list[bytes] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                if server.type == socket.SOCK_STREAM:
                    peer = server.accept()[0]
                    with peer:
                        arrived.append(peer.recv(500))
                        peer.sendall(arrived[-1])
                else:
                    data, sender = server.recvfrom(500)
                    if sender is None:  # shut down
                        return
                    arrived.append(data)
                    server.sendto(data, sender)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield arrived
    finally:
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)  # wakes the thread
        server.close()


def listener(family: int, kind: int, address: str = "") -> Scenery:
    """A service of the host. Its arguments: family, kind, address, port, and what to send."""

    @asynccontextmanager
    async def scene(_without: Set[Protection]) -> AsyncIterator[Scene]:
        word, where = nonce(), address or host_address()
        with socket.socket(family, kind) as server:
            server.bind((where, 0))
            if kind == socket.SOCK_STREAM:
                server.listen()
            port = str(server.getsockname()[1])
            with serving(server) as arrived:
                args = (str(int(family)), str(int(kind)), where, port, word)
                yield Scene(args, reached=lambda: any(word.encode() in x for x in arrived))

    return scene


@asynccontextmanager
async def abstract_socket(_without: Set[Protection]) -> AsyncIterator[Scene]:
    word = nonce()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{word}")
        server.listen()
        with serving(server) as arrived:
            yield Scene((word,), reached=lambda: word.encode() in arrived)


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder of the host that everybody may enter."""
    with tempfile.TemporaryDirectory(prefix="agentic-synth-", dir=PLACE) as name:
        Path(name).chmod(0o777)
        yield Path(name)


@asynccontextmanager
async def socket_file(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """Like a container engine's socket: whoever reaches it commands the service behind it."""
    word = nonce()
    with open_folder() as folder, socket.socket(socket.AF_UNIX) as server:
        path = folder / "service.sock"
        server.bind(str(path))
        path.chmod(0o666)
        server.listen()
        with serving(server) as arrived:
            reached: Callable[[], bool] = lambda: word.encode() in arrived  # noqa: E731
            yield Scene((str(path), word), str(folder), reached=reached)


def secret_file(mode: int = 0o644, name: str = "secret") -> Scenery:
    @asynccontextmanager
    async def scene(_without: Set[Protection]) -> AsyncIterator[Scene]:
        word = nonce()
        with open_folder() as folder:
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(word)
            file.chmod(mode)
            yield Scene((str(file),), str(folder), proof=word)

    return scene


@asynccontextmanager
async def target_file(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """A file of the host that everybody may write; whether somebody did is what counts."""
    word = nonce()
    with open_folder() as folder:
        file = folder / "target"
        file.write_text("untouched")
        file.chmod(0o666)
        reached: Callable[[], bool] = lambda: word in file.read_text()  # noqa: E731
        yield Scene((str(file), word), str(folder), reached=reached)


VICTIM = """
import os, sys
secret = os.open(sys.argv[1], os.O_RDONLY)
print("ready", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def bystander() -> Iterator[tuple[int, Path, str]]:
    """A process of the caller's: its pid, a file that it has open, and what is secret in that, in
    its environment and in its arguments. It has nothing else open that can be read: of the
    caller it would be given the descriptor that logs are written to."""
    word, system = nonce(), shutil.which("python3", path="/usr/bin")
    command = [system or sys.executable, "-I", "-S", "-c", VICTIM]
    with open_folder() as folder:
        file = folder / "secret"
        file.write_text(word)
        process = subprocess.Popen(
            [*command, str(file), word], env={"API_KEY": word}, cwd=folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with process:
            assert process.stdin
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            try:
                yield process.pid, file, word
            finally:
                process.kill()


@asynccontextmanager
async def victim(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """Arguments: its process id, the secret's path."""
    with bystander() as (pid, file, word):
        yield Scene((str(pid), str(file)), str(file.parent), proof=word)


@asynccontextmanager
async def stranger(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """The same, where to reach it at all is to win."""
    with bystander() as (pid, file, _):
        yield Scene((str(pid), str(file)))


@asynccontextmanager
async def doomed(_without: Set[Protection]) -> AsyncIterator[Scene]:
    """The same, of which only its death counts."""
    with bystander() as (pid, file, _):
        yield Scene((str(pid), str(file)), reached=lambda: state_of(pid) == "Z")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
