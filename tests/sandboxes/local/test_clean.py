"""What a program could do to the agent of its sandbox is refused by the walls, and seen without."""

import asyncio
import os
import platform

import pytest

from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.local import seccomp
from sandboxes.local.backend import lease
from sandboxes.local.protections import NOTHING, Protection
from tests.sandboxes.attacks.attempt import python
from tests.sandboxes.on_host import body_of

pytestmark = pytest.mark.usefixtures("sandboxed")

SMALL = SandboxTemplate(limits=Limits(memory_mb=96, timeout_s=20))
NUMBERS = seccomp.MACHINES[platform.machine()].numbers

STEER = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
IDLE = 3 << 13
SLICE = struct.pack("=IIQiIQQQII", 56, 0, 0, 19, 0, 20_000_000, 0, 0, 0, 0)

def call(number, *arguments):
    if libc.syscall(number, *arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

try:
    exec(sys.argv[1])
except OSError as error:
    print("refused", error.errno)
else:
    print("done")
"""

STEERING = {
    "I/O class": (f"call({NUMBERS['ioprio_set']}, 1, 1, IDLE)", "scheduling"),
    "I/O class of all its user's": (f"call({NUMBERS['ioprio_set']}, 3, os.getuid(), IDLE)",
                                    "scheduling"),
    "length of its turns": (f"call({NUMBERS['sched_setattr']}, 1, SLICE, 0)", "scheduling"),
    "scheduling class": ("os.sched_setscheduler(1, os.SCHED_BATCH, os.sched_param(0))",
                         "processes"),
    "nice value": ("os.setpriority(os.PRIO_PROCESS, 1, 19)", "processes"),
    "nice value of all its user's": ("os.setpriority(os.PRIO_USER, os.getuid(), 19)", "processes"),
    "processors": ("os.sched_setaffinity(1, {max(os.sched_getaffinity(0))})", "cpus"),
}  # fmt: skip


async def steered(by: str, without: frozenset[Protection]) -> tuple[str, list[str]]:
    """(what the program said, what is not as it was before)."""
    async with lease(SMALL, without=without) as sandbox:
        await sandbox.remember()
        done = await sandbox.exec(python(STEER, by))
        assert done.exit_code == 0, done.stderr
        return done.stdout.decode().strip(), await body_of(sandbox).changes()


@pytest.mark.parametrize("what", STEERING)
def test_the_agent_cannot_be_steered_and_it_would_be_seen(what: str) -> None:
    if what == "processors" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU: its set cannot be made smaller")
    by, field = STEERING[what]
    # the agent's own user, where it has one, is a second wall before the filter's
    one_user = frozenset((Protection.APART,))
    assert asyncio.run(steered(by, one_user)) == ("refused 1", [])
    assert asyncio.run(steered(by, NOTHING)) == ("refused 1", [])
    said, changed = asyncio.run(steered(by, one_user | {Protection.CALLS}))
    assert said == "done", "the program does not do what it should"
    assert field in changed
