"""A program that prints frames has printed them, and no flood of a program's reaches the host."""

import asyncio
import struct

import pytest

from sandboxes.core.template import SandboxTemplate
from sandboxes.local.backend import lease
from tests.sandboxes.attacks.attempt import CAPS, python

pytestmark = pytest.mark.usefixtures("sandboxed")


def test_frames_that_a_command_prints_are_its_output() -> None:
    head = b'{"n":9,"seen":9,"id":1,"event":"exit","exit_code":0,"stdout_bytes":0}'
    forged = struct.pack(">II", len(head), 0) + head
    script = (
        "import os, sys\nfor fd in (1, 2): os.write(fd, bytes.fromhex(sys.argv[1]))\nsys.exit(3)"
    )

    async def go() -> None:
        async with lease(SandboxTemplate(limits=CAPS)) as sandbox:
            done = await sandbox.exec(python(script, forged.hex()))
            assert (done.exit_code, done.stdout, done.stderr) == (3, forged, forged)
            served = await sandbox.open_stdio(python(script, forged.hex()))
            assert await served.read() == forged

    asyncio.run(go())


FLOODS = {
    "processes that end": "while True:\n    os.fork() or os._exit(0)\n    os.waitpid(-1, 0)",
    "orphans that end": "while True:\n    pid = os.fork()\n"
    "    if pid == 0:\n        os.fork() or time.sleep(0.01)\n        os._exit(0)\n"
    "    os.waitpid(pid, 0)",
    "output that nobody reads": "while True: os.write(1, bytes(65536))",
    "errors that nobody reads": "while True: os.write(2, bytes(65536))",
    "signals to the agent": "while True:\n    try: os.kill(1, 17)\n    except OSError: pass",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_does_not_keep_the_agent_from_answering(name: str) -> None:
    """Others are served meanwhile: ten commands to their end, long before any patience ends."""
    script = f'import os, sys, time\nprint("up", flush=True)\n{FLOODS[name]}'

    async def go() -> None:
        async with lease(SandboxTemplate(limits=CAPS)) as sandbox:
            flood = await sandbox.open_stdio(python(script))
            assert (await flood.read()).startswith(b"up\n")
            for number in range(10):
                done = await sandbox.exec(["echo", str(number)])
                assert done.stdout == f"{number}\n".encode()
            await sandbox.ping()
            assert flood.ended is None

    asyncio.run(go())
