"""What a program can do to its own sandbox, and that the host loses no more than that."""

import asyncio
import json

import pytest

from records.errors import TransientError
from sandboxes.core import sandbox as sandbox_module
from sandboxes.core.agent.frames import frame
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import SandboxTemplate
from sandboxes.local.backend import lease
from tests.sandboxes.attacks.attempt import CAPS, python, walls

pytestmark = pytest.mark.usefixtures("sandboxed")

SEND = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
pipe = libc.syscall(438, os.pidfd_open(2), 1, 0)
os.write(pipe, bytes.fromhex(sys.argv[1]))
time.sleep(30)
"""
"""With the agent's stdout in its hands: what the walls of the channel leave no program."""

EXIT = {"id": 1, "event": "exit", "exit_code": 0, "stdout_bytes": 0, "truncated": False}

RUBBISH = {
    "not JSON": frame(b"{not JSON"),
    "no object": frame(b"[1, 2]"),
    "no text": frame(b"\xff\xfe"),
    "no id": frame(b"{}"),
    "a deep object": frame(b'{"id":' * 9_000),
    "an id that is no number": frame(b'{"id": {"a": 1}}'),
    "a number of 5000 digits": frame(b'{"id": ' + b"9" * 5000 + b"}"),
    "a header of 4 GiB": b"\xff\xff\xff\xff\0\0\0\0",
    "a body of 4 GiB": b"\0\0\0\2\xff\xff\xff\xff{}",
    "a result that lacks a part": frame(json.dumps(EXIT).encode()),
    "a result with words for a number": frame(
        json.dumps(EXIT | {"timed_out": False, "exit_code": "ten"}).encode()
    ),
}


@pytest.mark.parametrize("name", RUBBISH)
def test_a_taken_over_agent_costs_its_sandbox_and_nothing_else(name: str) -> None:
    async def go() -> None:
        without = walls("HIDDEN_AGENT", "CALLS")
        async with lease(SandboxTemplate(limits=CAPS), without=without) as sandbox:
            with pytest.raises(TransientError, match=r"rubbish|lost|ended"):
                await sandbox.exec(python(SEND, RUBBISH[name].hex()))

    asyncio.run(go())


async def lost(sandbox: Sandbox, *argv: str) -> str:
    with pytest.raises(TransientError) as caught:
        await sandbox.exec(argv, timeout_s=1)
    return str(caught.value)


def test_killing_the_agent_is_a_lost_sandbox_and_no_result() -> None:
    async def go() -> None:
        async with lease(SandboxTemplate(limits=CAPS)) as sandbox:
            assert "ended" in await lost(sandbox, "sh", "-c", "kill -9 2; sleep 5")

    asyncio.run(go())


@pytest.mark.slow
def test_stopping_the_agent_does_not_hold_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module, "ANSWER_S", 0.5)

    async def go() -> None:
        async with lease(SandboxTemplate(limits=CAPS)) as sandbox:
            assert "not answered" in await lost(sandbox, "sh", "-c", "kill -STOP 2; sleep 30")
            with pytest.raises(TransientError, match="not answered"):
                await sandbox.read_file("/etc/passwd")  # it stays lost

    asyncio.run(go())
