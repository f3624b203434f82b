"""Sandboxes on this machine: bubblewrap, one agent process in each, limits on everything.

What is contained: files outside, the network, other processes, the caller's environment and
rights, and memory, processes, CPU, disk and output as far as `sandboxes.local.doctor` says for this
machine. What is not: bugs of the kernel, and how long the host's other programs wait for its
disks and caches. A command may end its own sandbox, since the agent runs as the same user; that is
a lost sandbox, a TransientError. Nothing ever runs outside a sandbox: where none can be made,
`lease` raises.
"""

import asyncio
import logging
import os
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from functools import cache
from typing import IO

from records.errors import ConfigError, TransientError
from sandboxes.core.sandbox import Sandbox
from sandboxes.core.template import WORKSPACE, SandboxTemplate
from sandboxes.local import bwrap, cgroups, doctor, rlimits, snapshots
from sandboxes.local.protections import NOTHING, Protection
from sandboxes.local.reaper import reap_once
from sandboxes.local.snapshots import WorkspaceSnapshot

log = logging.getLogger(__name__)

JOIN = """
for file do shift; [ "$file" = -- ] && break; echo $$ > "$file" || exit 125; done; exec "$@"
"""
"""Shell that joins control groups, then becomes the sandbox: no process of it was ever outside."""


def available() -> str | None:
    """None, or the reason why this machine cannot run sandboxes."""
    return bwrap.unavailable()


@asynccontextmanager
async def lease(
    template: SandboxTemplate, *, without: Set[Protection] = NOTHING
) -> AsyncIterator[Sandbox]:
    """A fresh sandbox, ended and removed on leaving, whatever is still running in it.

    Raises as `start` does. It dies with the thread that opened it (that is how the kernel ties it
    to its owner), which for asyncio is the thread of the event loop. `without` is for the attack
    suite (see `protections`).
    """
    async with closing(await start(template, without=without)) as sandbox:
        yield sandbox


@asynccontextmanager
async def closing(sandbox: Sandbox) -> AsyncIterator[Sandbox]:
    try:
        yield sandbox
    finally:
        sandbox.end("the sandbox was closed")  # at once, whatever becomes of the event loop
        await asyncio.shield(sandbox.close())


async def start(
    template: SandboxTemplate,
    snapshot: WorkspaceSnapshot | None = None,
    *,
    without: Set[Protection] = NOTHING,
) -> Sandbox:
    """A sandbox that answers; the caller closes it. ConfigError where none can run here or where
    a bind is missing, TransientError where this one did not start."""
    if (reason := available()) is not None:
        raise ConfigError(f"no sandbox can run here: {reason}")
    if (missing := unenforced()) and template.limits.strict:
        raise ConfigError(f"limits.strict: this machine cannot wholly enforce {missing}")
    reap_once()
    mounted = snapshot if snapshot is not None and snapshots.overlay_works() else None
    with os.fdopen(os.memfd_create("errors"), "w+b") as errors:
        try:
            sandbox = await spawn(template, errors, mounted, without)
        except OSError as error:
            raise TransientError(f"a sandbox could not be started: {error}") from error
        try:
            async with asyncio.timeout(template.limits.start_timeout_s):
                await sandbox._agent.ready
            if snapshot is not None and mounted is None:
                await asyncio.to_thread(snapshots.put, snapshot, sandbox._outside(WORKSPACE))
        except BaseException as error:
            sandbox.end("the sandbox did not start")
            await asyncio.shield(sandbox.close())
            if not isinstance(error, TransientError | TimeoutError):
                raise
            errors.seek(0)
            why = errors.read(2000).decode(errors="replace").strip()
            raise TransientError(f"a sandbox did not start: {why or error}") from error
    return sandbox


@cache
def unenforced() -> str:
    """What limits do not wholly hold here and why, empty where all do; logged when first asked."""
    found = "; ".join(f"{gap.what} ({gap.how})" for gap in doctor.gaps())
    if found:
        log.warning("sandboxes of this machine do not wholly enforce: %s", found)
    return found


async def spawn(
    template: SandboxTemplate,
    errors: IO[bytes],
    snapshot: WorkspaceSnapshot | None = None,
    without: Set[Protection] = NOTHING,
) -> Sandbox:
    root = bwrap.is_root()
    limits = rlimits.rlimits_for(template.limits, have=set(cgroups.controllers()), root=root)
    workspace = None if snapshot is None else str(snapshot.files)
    command, fds = bwrap.sandbox_command(
        template, limits, root=root, workspace=workspace, without=without
    )
    if snapshot is not None:
        command = [*snapshot.command(), *command]
    try:
        group = cgroups.make_group(template.limits)
        try:
            loop = asyncio.get_running_loop()
            transport, protocol = await loop.subprocess_exec(
                lambda: SubprocessStreamProtocol(limit=1 << 20, loop=loop),
                "/bin/sh", "-c", JOIN, "sh", *group.entries, "--", *command,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors,
                pass_fds=fds, env=dict(os.environ) if Protection.ENVIRONMENT in without else {},
            )  # fmt: skip
        except BaseException:
            await group.remove()
            raise
    finally:
        for fd in fds:
            os.close(fd)
    return Sandbox(template, transport, Process(transport, protocol, loop), group)
