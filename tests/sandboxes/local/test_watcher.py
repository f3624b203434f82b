"""What no limit of the kernel bounds is seen from outside, and ended."""

import asyncio

import pytest

from sandboxes.core.sandbox import ExecResult
from sandboxes.core.template import Limits, SandboxTemplate
from sandboxes.local import watcher
from sandboxes.local.backend import lease
from sandboxes.local.protections import Protection
from tests.sandboxes.attacks.attempt import python

pytestmark = pytest.mark.usefixtures("sandboxed")

ROOMY = SandboxTemplate(limits=Limits(timeout_s=60))

LOCKS = """
import fcntl, os, struct, sys, time
for name in range(6):
    fd = os.open(f"/workspace/{name}", os.O_CREAT | os.O_RDWR)
    for place in range(2000):
        fcntl.fcntl(fd, fcntl.F_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 2 * place, 1, 0))
print("all held", flush=True)
time.sleep(float(sys.argv[1]))
"""

TERMINALS = """
import os, sys, time
held = [os.openpty() for _ in range(70)]
print("all held", flush=True)
time.sleep(float(sys.argv[1]))
"""


async def beside(payload: str, hold_s: str) -> tuple[ExecResult, bytes]:
    """How the payload ended, and what its own sandbox and a neighbour's server say after that.
    Where root is the caller, a mount bounds terminals, so that the watcher has none to see."""
    without = frozenset({Protection.TERMINALS})
    async with lease(ROOMY, without=without) as sandbox, lease(ROOMY) as neighbour:
        server = await neighbour.open_stdio(["cat"])
        done = await sandbox.exec(python(payload, hold_s))
        again = await sandbox.exec(["echo", "again"])
        await server.write(b"and the neighbour")
        return done, again.stdout + await server.read()


@pytest.mark.parametrize("payload", [LOCKS, TERMINALS], ids=["locks", "terminals"])
def test_who_holds_too_much_is_killed_and_nobody_else(
    payload: str, caplog: pytest.LogCaptureFixture
) -> None:
    done, after = asyncio.run(beside(payload, "50"))
    assert (done.exit_code, done.timed_out) == (137, False), done
    assert after == b"again\nand the neighbour"
    assert "the programs of a sandbox were killed: they held " in caplog.text


@pytest.mark.parametrize("payload", [LOCKS, TERMINALS], ids=["locks", "terminals"])
def test_the_same_is_left_alone_below_the_bound(
    payload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: it is the watcher that ends it, and its bounds that decide."""
    monkeypatch.setattr(watcher, "MOST_LOCKS", 20_000)
    monkeypatch.setattr(watcher, "MOST_TERMINALS", 200)
    done, _ = asyncio.run(beside(payload, "0.8"))
    assert (done.stdout, done.exit_code) == (b"all held\n", 0), done
