"""A sandbox of this machine as tests look at it from outside."""

import os
import signal

from sandboxes.core.sandbox import Sandbox
from sandboxes.local.body import LocalBody


def body_of(sandbox: Sandbox) -> LocalBody:
    assert isinstance(sandbox.body, LocalBody)
    return sandbox.body


def pid_of(sandbox: Sandbox) -> int:
    """The host's id of its outermost process, above all others."""
    return body_of(sandbox).pid


def kill_agent(sandbox: Sandbox) -> None:
    """End the sandbox from outside, as nothing inside can."""
    agent = body_of(sandbox).agent
    assert agent is not None
    os.kill(agent.pid, signal.SIGKILL)
