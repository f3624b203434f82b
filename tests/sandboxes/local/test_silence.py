"""Who is to blame for an agent that does not answer."""

import asyncio

import pytest

from sandboxes.core import sandbox as sandbox_module
from sandboxes.core.body import ProgramEndedError
from sandboxes.core.python_env import base_python
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.lending.leases import lease

SMALL = SandboxTemplate(limits=Limits(memory_mb=96, processes=24, disk_mb=8))

STOPPER = """
import os
print("up", flush=True)
while True:
    try:
        os.kill(-1, 19)
    except OSError:
        pass
"""
"""Stops whatever begins here, also what has not become its own program yet: until then the agent
waits for it."""


async def asked_for_ever(sandbox: Sandbox) -> None:
    while True:  # each command is hit before or after its start
        await sandbox.exec(["true"], timeout_s=0.2)


@pytest.mark.usefixtures("sandboxed")
def test_a_command_that_is_stopped_at_its_start_is_the_programs_doing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox_module, "ANSWER_S", 3.0)

    async def go() -> None:
        async with lease(SMALL) as sandbox:
            stopper = await sandbox.open_stdio([base_python(), "-I", "-S", "-c", STOPPER])
            assert await stopper.read() == b"up\n"
            with pytest.raises(ProgramEndedError, match="stopped a command at its start"):
                await asked_for_ever(sandbox)

    asyncio.run(go())
