"""What the kernel keeps for a program beside its own memory is bounded too."""

import asyncio
from pathlib import Path

import pytest

from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.local import cgroups, doctor
from sandboxes.local.backend import lease
from sandboxes.local.cgroups import SOCKET_BYTES, SOCKET_LIMIT, Controller
from tests.sandboxes.attacks.attempt import python
from tests.sandboxes.on_host import body_of

SMALL = SandboxTemplate(limits=Limits(memory_mb=64, timeout_s=60))

HOLD = """
import socket, sys
held = []
def full(send):
    try:
        for _ in range(200):
            send()
    except OSError:
        pass

for _ in range(40):
    if sys.argv[1] == "datagrams":
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        one.bind(("127.0.0.1", 0))
        full(lambda: one.sendto(bytes(60_000), socket.MSG_DONTWAIT, one.getsockname()))
        held.append(one)
    else:
        server = socket.create_server(("127.0.0.1", 0))
        one = socket.create_connection(server.getsockname())
        held += [one, server.accept()[0]]
        one.setblocking(False)
        full(lambda: one.send(bytes(1 << 20)))
print("holds them", flush=True)
sys.stdin.read()
"""


async def held(kind: str, limit: int) -> int:
    """Bytes in network sockets, as the kernel counts them for a sandbox with this limit."""
    async with lease(SMALL) as sandbox:
        folders = body_of(sandbox).group.folders
        (folder,) = (folder for folder in folders if (folder / SOCKET_LIMIT).exists())
        assert int((folder / SOCKET_LIMIT).read_text()) == SOCKET_BYTES
        (folder / SOCKET_LIMIT).write_text(str(limit))
        program = await sandbox.open_stdio(python(HOLD, kind))
        assert await program.read() == b"holds them\n"
        return int((folder / "memory.kmem.tcp.usage_in_bytes").read_text())


@pytest.mark.usefixtures("sandboxed")
@pytest.mark.parametrize("kind", ["datagrams", "streams"])
def test_what_waits_in_network_sockets_is_bounded(kind: str) -> None:
    memory = cgroups.controllers().get("memory")
    if memory is None or not (memory.parent / SOCKET_LIMIT).exists():
        pytest.skip("version 1 of control groups does not count sockets here")
    assert asyncio.run(held(kind, 8 * SOCKET_BYTES)) > 2 * SOCKET_BYTES  # the control
    # a stream that has nothing is always given a little
    assert asyncio.run(held(kind, SOCKET_BYTES)) < 1.5 * SOCKET_BYTES


def test_each_version_of_control_groups_is_told_what_to_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 2 counts sockets as memory by itself. Its files stand as they are documented: where
    this runs there may be none of them."""
    limits = Limits(memory_mb=64)
    second = {"memory.max": str(64 << 20), "memory.swap.max": "0"}
    assert cgroups.settings("memory", 2, limits) == second
    assert cgroups.settings("memory", 1, limits)[SOCKET_LIMIT] == str(SOCKET_BYTES)

    def said(controller: Controller) -> str:
        monkeypatch.setattr(cgroups, "controllers", lambda: {"memory": controller})
        return doctor.kernel_memory().holds

    assert said(Controller(2, tmp_path)) == "yes"
    assert said(Controller(1, tmp_path)) == "partly"
    (tmp_path / SOCKET_LIMIT).touch()
    assert said(Controller(1, tmp_path)) == "yes"
    assert "16 MB more for network sockets" in doctor.kernel_memory().how
    monkeypatch.setattr(cgroups, "controllers", dict)
    assert doctor.kernel_memory().holds == "no"
